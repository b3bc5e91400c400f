"""The networks of our own simulator: every route of every pair of nodes, against what such a network is."""

import ctypes
import shutil
import subprocess
from collections import Counter
from itertools import permutations
from pathlib import Path

import pytest

from alltoallv_simulators import NETWORKS

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
_SOURCE = Path(__file__).parents[2] / "benchmarks" / "native" / "alltoallv_cluster" / "routes.c"
_MOST = 64
_NODES = (2, 5, 16, 33, 64, 100)
_ROUTE = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_int] * 3, ctypes.POINTER(ctypes.c_int))


class _Network(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("constants", ctypes.c_double * 5),
        ("links", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)),
        ("route", _ROUTE),
    )


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    path = tmp_path_factory.mktemp("routes") / "routes.so"
    subprocess.run(
        ["cc", "-std=c11", "-Wall", "-Werror", "-shared", "-fPIC", str(_SOURCE), "-o", str(path)], check=True
    )
    found = ctypes.CDLL(str(path))
    found.ct_network_find.restype = ctypes.POINTER(_Network)
    found.ct_network_find.argtypes = [ctypes.c_char_p]
    return found


def _routes(library: ctypes.CDLL, network: str, nodes: int) -> tuple[dict[tuple[int, int], list[int]], int]:
    """The links from each node to each other one, and how many links there are."""
    kind = library.ct_network_find(network.encode()).contents
    found, links = {}, (ctypes.c_int * _MOST)()
    for pair in permutations(range(nodes), 2):
        count = kind.route(nodes, *pair, links)
        found[pair] = list(links[:count])
    return found, kind.links(nodes)


@pytest.mark.parametrize("nodes", _NODES)
@pytest.mark.parametrize("network", NETWORKS)
def test_a_route_takes_links_that_there_are_and_none_twice(library: ctypes.CDLL, network: str, nodes: int) -> None:
    routes, links = _routes(library, network, nodes)
    for route in routes.values():
        assert route
        assert len(set(route)) == len(route)
        assert all(0 <= link < links for link in route)


@pytest.mark.parametrize("nodes", _NODES)
@pytest.mark.parametrize("network", ["fattree", "dragonfly"])
def test_a_route_begins_and_ends_at_the_cards(library: ctypes.CDLL, network: str, nodes: int) -> None:
    for (source, target), route in _routes(library, network, nodes)[0].items():
        assert (route[0], route[-1]) == (source, nodes + target)


@pytest.mark.parametrize(("nodes", "sides"), [(2, (2, 1, 1)), (16, (4, 2, 2)), (64, (4, 4, 4)), (100, (8, 4, 4))])
def test_a_torus_goes_the_shortest_way_from_node_to_node(
    library: ctypes.CDLL, nodes: int, sides: tuple[int, int, int]
) -> None:
    def place(node: int) -> tuple[int, int, int]:
        return node % sides[0], node // sides[0] % sides[1], node // sides[0] // sides[1]

    for (source, target), route in _routes(library, "torus", nodes)[0].items():
        at = list(place(source))
        for link in route:
            node, dimension, up = link // 6, link // 2 % 3, link % 2
            assert place(node) == tuple(at)
            at[dimension] = (at[dimension] + (1 if up else -1)) % sides[dimension]
        assert tuple(at) == place(target)
        apart = [abs(a - b) for a, b in zip(place(source), place(target), strict=True)]
        assert len(route) == sum(min(far, side - far) for far, side in zip(apart, sides, strict=True))


@pytest.mark.parametrize(("nodes", "groups"), [(16, 1), (64, 2), (128, 4)])
def test_a_dragonfly_leaves_a_group_once_and_shares_its_links_evenly(
    library: ctypes.CDLL, nodes: int, groups: int
) -> None:
    routes, links = _routes(library, "dragonfly", nodes)
    first = links - 32 * groups  # of the links between groups
    used: Counter[int] = Counter()
    for (source, target), route in routes.items():
        outside = [link for link in route if link >= first]
        used.update(outside)
        assert len(route) <= 5
        assert [(link - first) // 32 for link in outside] == [source // 32] * (source // 32 != target // 32)
    whole = [used[link] for link in range(first, first + 32)]  # the first group has all of its nodes
    if groups > 1:
        assert min(whole) > 0
        assert max(whole) <= 3 * min(whole)


def test_a_network_that_there_is_not_is_not_found(library: ctypes.CDLL) -> None:
    assert not library.ct_network_find(b"hypercube")
