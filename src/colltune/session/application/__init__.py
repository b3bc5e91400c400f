"""What `colltune run` does."""
