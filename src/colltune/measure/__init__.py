"""Sources of samples: a real MPI job, recorded tables, simulations, and the benchmarks of OSU."""
