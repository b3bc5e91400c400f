"""The loop that measures: which points, in which order, and which of them at once."""
