"""The non-uniform all-to-all: its settings, what they cost, the model of it, and the table that the C library loads."""
