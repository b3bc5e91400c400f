"""Which MPI is here, which job is this, and the command line that starts a program on it."""
