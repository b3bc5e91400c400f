"""The tree of layers."""

import random

import pytest

from colltune.core.topology import Switch, Top, Topology
from greedy_batches import tree_order
from packer_laws import groups, random_tree, switches_between


def test_equal_names_under_different_parents_are_different() -> None:
    topology = Topology.from_paths(["a", "b", "c"], [("g1", "c0"), ("g2", "c0"), ("g1", "c0")], Top.SHARED)
    assert [switch.name for switch in topology.switches] == ["", "g1", "c0", "g2", "c0"]
    assert topology.leaf == (2, 4, 2)


@pytest.mark.parametrize("seed", range(60))
def test_layers_used_are_the_switches_between_the_nodes(seed: int) -> None:
    generator = random.Random(seed)
    topology = random_tree(generator)
    for _ in range(20):
        nodes = generator.sample(range(len(topology.hosts)), generator.randint(1, min(6, len(topology.hosts))))
        assert topology.layers_used(nodes) == switches_between(topology, nodes)


def test_a_dragonfly_lets_pairs_of_groups_meet_apart() -> None:
    topology = groups(4, 8)
    assert topology.layers_used([0, 2]) & topology.layers_used([4, 6]) == set()
    assert groups(4, 8, Top.SHARED).layers_used([0, 2]) & groups(4, 8, Top.SHARED).layers_used([4, 6]) == {0}


def test_tree_order_puts_neighbours_side_by_side_and_keeps_the_job_order_else() -> None:
    paths = [("g1", "c0"), ("g0", "c0"), ("g1", "c1"), ("g0", "c0"), ("g1", "c0")]
    topology = Topology.from_paths("abcde", paths, Top.SHARED)
    assert tree_order(topology) == (0, 4, 2, 1, 3)
    assert tree_order(groups(4, 16)) == tuple(range(16))


@pytest.mark.parametrize("seed", range(20))
def test_tree_order_keeps_every_switch_together(seed: int) -> None:
    topology = random_tree(random.Random(seed))
    assert sorted(tree_order(topology)) == list(range(len(topology.hosts)))
    for switch in range(len(topology.switches)):
        below = [switch in topology.paths[topology.leaf[host]] for host in tree_order(topology)]
        assert 0 not in below[below.index(True) : len(below) - below[::-1].index(True)], "strangers in between"


def test_serial() -> None:
    topology = Topology.serial(["a", "b"])
    assert topology.layers_used([0]) == topology.layers_used([1]) == {0}


@pytest.mark.parametrize(
    ("switches", "leaf"),
    [((), ()), ((Switch("", 0),), (0,)), ((Switch("", -1), Switch("a", 1)), (0,)), ((Switch("", -1),), (1,))],
)
def test_what_is_no_tree(switches: tuple[Switch, ...], leaf: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="switch"):
        Topology(("a",), switches, leaf)
