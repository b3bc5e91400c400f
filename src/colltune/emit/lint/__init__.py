"""Checks selection files of MPICH and mends them."""
