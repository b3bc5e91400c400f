"""What each algorithm sends: rounds of messages between ranks, and their sums per rank and node.

Other rooms need ``traffic_of`` and its ``COLUMNS``; tests compare ``schedule_of`` with what crosses the wire.
"""

from colltune.traffic.describe import COLUMNS, known, schedule_of, traffic_of

__all__ = ["COLUMNS", "known", "schedule_of", "traffic_of"]
