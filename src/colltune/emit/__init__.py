"""Writes rules as the files of each MPI library and reads such files back; lint checks files of any origin."""
