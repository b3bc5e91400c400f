"""How many messages a choice has in flight at a node at once, and how many of them machines were seen to bear.

An algorithm that posts all its messages at once is faster than its twin that sends them turn by turn, until the network
runs out of what it keeps of each of them; it is then slower by a factor of hundreds, not of two. Where that begins
differs between machines, and how a time grows up to there says nothing of it. MPICH's throttle of scattered all-to-alls
is there for the same reason.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from colltune.core.choice import Choice
from colltune.core.scenario import Scenario

Times = Mapping[tuple[Scenario, Choice], float]
_AT_ONCE = re.compile(r"non_?blocking|scatter_?dest|(?:^|_)linear(?!_sync)")
_GROUP = re.compile(r"(\d+)_procs_leader")
# Posting at once is no longer borne where it took more than this over the time of sending turn by turn.
_OVER_TWIN = 2.0
# How far beyond what was borne elsewhere it is believed to be borne, in doublings.
_BEYOND = 0.5


def posts_at_once(choice: Choice) -> bool:
    """Whether a rank starts all its messages before it waits for any of them."""
    return bool(_AT_ONCE.search(choice.algorithm))


def turn_by_turn(choice: Choice) -> Choice:
    """The choice that sends the same messages one after the other, whether or not there is one."""
    return Choice(re.sub(r"non_?blocking", "pairwise", choice.algorithm), choice.parameters)


def in_flight(scenario: Scenario, choice: Choice) -> float:
    """Messages that one node's ranks have under way at once: senders on a node times partners of each.

    With groups of g ranks (``procs_per_leader``; a node where the name holds none): one leader of each group sends to
    all leaders (hierarchical) or to one of each node (multileader); every rank sends to one rank of each group or node
    (locality or node aware).
    """
    name, ppn, nodes = choice.algorithm, scenario.ppn, scenario.nodes
    match = _GROUP.search(name)
    group = int(match[1]) if match else int(dict(choice.parameters).get("procs_per_leader", 0))
    senders, partners = float(ppn), float(scenario.ranks)
    if "hierarchical" in name:
        senders, partners = ppn / (group or ppn), scenario.ranks / (group or ppn)
    elif "multileader" in name:
        senders, partners = ppn / (group or ppn), float(nodes)
    elif "locality_aware" in name or "node_aware" in name:
        partners = scenario.ranks / (group or ppn)
    return max(1.0, senders * (partners if posts_at_once(choice) else 1.0))


def bearable(sources: Sequence[Times]) -> float:
    """How many messages in flight every source bore, and half a doubling; infinite where none has twins to tell it."""
    slowest: defaultdict[float, float] = defaultdict(float)
    for times in sources:
        for (scenario, choice), time_s in times.items():
            twin = turn_by_turn(choice)
            if twin != choice and (scenario, twin) in times:
                count = in_flight(scenario, choice)
                slowest[count] = max(slowest[count], time_s / times[scenario, twin])
    if not slowest:
        return np.inf
    borne = min(slowest)
    for count in sorted(slowest):
        if slowest[count] > _OVER_TWIN:
            break
        borne = count
    return float(borne * 2.0**_BEYOND)
