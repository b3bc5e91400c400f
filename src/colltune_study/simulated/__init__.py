"""Clusters that exist only in a simulation: SimGrid runs our own algorithms, and nothing is measured."""
