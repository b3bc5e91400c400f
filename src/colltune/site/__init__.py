"""A site's memory: what jobs measured and proved, kept in a directory that they share, and releases made of it."""
