"""What each algorithm sends: rounds of messages between ranks, and their sums per rank and node.

Other rooms need ``describe`` and ``Traffic``; tests compare ``schedule_of`` with what crosses the wire.
"""

from colltune.traffic.describe import Traffic, describe, known, schedule_of

__all__ = ["Traffic", "describe", "known", "schedule_of"]
