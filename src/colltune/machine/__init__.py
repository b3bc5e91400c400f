"""Processes, compiled C programs and files: what touches the machine, without knowing MPI."""
