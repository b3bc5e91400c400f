"""What `colltune tune` does."""
