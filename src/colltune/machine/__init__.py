"""Processes, compiled C programs, files, and what a node is made of: what touches the machine, without knowing MPI."""
