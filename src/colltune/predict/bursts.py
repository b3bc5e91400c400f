"""How many messages a choice has in flight at one node, and how many the measured machines could handle.

An algorithm that posts all its messages at once is faster than one that sends the same messages in turn, until the
network runs out of resources for messages in flight; then it is hundreds of times slower. The limit differs between
machines, and the times below it do not reveal it. MPICH throttles scattered all-to-alls for the same reason.
"""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from colltune.core.choice import Choice
from colltune.core.scenario import Scenario

Times = Mapping[tuple[Scenario, Choice], float]
_AT_ONCE = re.compile(r"non_?blocking|scatter_?dest|(?:^|_)linear(?!_sync)")
_GROUP = re.compile(r"(\d+)_procs_leader")
# The limit is exceeded where posting at once took more than this many times the time of sending in turn.
_OVER_TWIN = 2.0
# How far beyond the largest number that worked elsewhere posting at once is expected to work, in doublings.
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
    """The messages in flight that worked in every source, and half a doubling more; infinite without comparisons."""
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
