"""What `colltune site` does."""
