"""Models of other clusters, from their tables."""
