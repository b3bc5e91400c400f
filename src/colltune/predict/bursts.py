"""How many messages a choice has in flight at one node, and how many the measured machines could handle.

An algorithm that posts all its messages at once is faster than one that sends the same messages in turn, until the
network runs out of resources for messages in flight; then it is hundreds of times slower. The limit differs between
machines, and the times below it do not reveal it. MPICH throttles scattered all-to-alls for the same reason.
"""

import re
from functools import cache

from colltune.core.sample import Choice, Scenario

_AT_ONCE = re.compile(r"non_?blocking|scatter_?dest|(?:^|_)linear(?!_sync)")
_GROUP = re.compile(r"(\d+)_procs_leader")


@cache
def posts_at_once(choice: Choice) -> bool:
    """Whether a rank starts all its messages before it waits for any of them."""
    return bool(_AT_ONCE.search(choice.algorithm))


@cache
def _group(choice: Choice) -> int:
    """Ranks of a group; 0 where the whole node is one."""
    match = _GROUP.search(choice.algorithm)
    return int(match[1]) if match else int(dict(choice.parameters).get("procs_per_leader", 0))


def in_flight(scenario: Scenario, choice: Choice) -> float:
    """Messages that one node's ranks have under way at once: senders on a node times partners of each.

    With groups of g ranks (``procs_per_leader``; a node where the name holds none): one leader of each group sends to
    all leaders (hierarchical) or to one of each node (multileader); every rank sends to one rank of each group or node
    (locality or node aware).
    """
    name, ppn, nodes, group = choice.algorithm, scenario.ppn, scenario.nodes, _group(choice)
    senders, partners = float(ppn), float(scenario.ranks)
    if "hierarchical" in name:
        senders, partners = ppn / (group or ppn), scenario.ranks / (group or ppn)
    elif "multileader" in name:
        senders, partners = ppn / (group or ppn), float(nodes)
    elif "locality_aware" in name or "node_aware" in name:
        partners = scenario.ranks / (group or ppn)
    return max(1.0, senders * (partners if posts_at_once(choice) else 1.0))
