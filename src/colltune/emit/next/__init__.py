"""Formats of libraries that are not released yet."""
