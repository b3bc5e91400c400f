"""Where we measure: a real job or a simulated cluster, and what each MPI library has of its own."""
