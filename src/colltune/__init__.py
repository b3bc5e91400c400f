"""colltune: tunes the collectives of an MPI library inside the job that will use them."""

__version__ = "0.1.0"
