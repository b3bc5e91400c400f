"""The rules file of Open MPI."""
