"""Sources of samples: a real MPI job, recorded tables and simulations."""
