"""Proves that a tuning is faster and right: the acceptance test, the files in force, conformance, drift."""
