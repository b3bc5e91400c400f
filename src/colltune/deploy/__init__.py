"""Puts a tuning in force: environment variables, the live selector, and the environment of an application."""
