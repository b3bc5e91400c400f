"""Proves that a tuning is faster and right: the audit of regions, the files in force, conformance, drift."""
