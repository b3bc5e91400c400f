"""Compares learning strategies on recorded tables, and draws the figures of the papers."""
