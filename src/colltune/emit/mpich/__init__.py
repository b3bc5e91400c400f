"""The selection file of MPICH."""
