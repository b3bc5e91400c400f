"""What each algorithm sends: rounds of messages between ranks, and their sums per rank and node."""

from colltune.traffic.describe import COLUMNS, describe_also, traffic_of

__all__ = ["COLUMNS", "describe_also", "traffic_of"]
