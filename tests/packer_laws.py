"""The laws of a packer, as a test class to inherit."""

import abc
import random
from collections.abc import Sequence
from itertools import combinations

import pytest

from colltune.core.sample import DEFAULT, Scenario
from colltune.core.space import Point
from colltune.core.topology import Top, Topology
from colltune.schedule.contract import Placement, Task
from packing import Packer


def task(nodes: int, duration_s: float, number: int = 0) -> Task:
    """A task that is told from others by its ``number``."""
    return Task(Point(Scenario("bcast", nodes, 2, number), (DEFAULT,)), duration_s)


def groups(count: int, hosts: int, top: Top = Top.CROSSBAR) -> Topology:
    """``hosts`` hosts in ``count`` equal groups."""
    names = [f"n{host}" for host in range(hosts)]
    return Topology.from_paths(names, [(f"g{host * count // hosts}",) for host in range(hosts)], top)


def random_tree(generator: random.Random) -> Topology:
    """A tree of up to three layers, uneven, its hosts in no order."""
    paths = [
        tuple(f"{layer}{generator.randrange(3)}" for layer in range(generator.randrange(4)))
        for _ in range(generator.randint(1, 40))
    ]
    return Topology.from_paths([f"n{host}" for host in range(len(paths))], paths, generator.choice(list(Top)))


def switches_between(topology: Topology, nodes: Sequence[int]) -> set[int]:
    """Switches on the ways between every two of ``nodes``, by walking; the whole network where it is for one alone."""
    if topology.top is Top.ALONE:
        return {0}
    used: set[int] = set()
    for first, second in combinations(nodes, 2):
        above_first, above_second = (_walk_up(topology, topology.leaf[node]) for node in (first, second))
        meeting = next(switch for switch in above_first if switch in above_second)
        for way in (above_first, above_second):
            used |= set(way[: way.index(meeting) + 1])
    return used - {0} if topology.top is Top.CROSSBAR else used


def _walk_up(topology: Topology, switch: int) -> list[int]:
    way = [switch]
    while topology.switches[way[-1]].parent >= 0:
        way.append(topology.switches[way[-1]].parent)
    return way


class PackerContract(abc.ABC):
    """Inherit, and say how the packer under test is made."""

    @abc.abstractmethod
    def make(self, topology: Topology) -> Packer: ...

    @pytest.mark.parametrize("seed", range(12))
    def test_laws_hold_whatever_ends_when(self, seed: int) -> None:
        generator = random.Random(seed)
        topology = random_tree(generator)
        most = len(topology.hosts)
        waiting = [task(generator.randint(1, most), generator.uniform(0.01, 1.0), number) for number in range(60)]
        packer, running, now_s = self.make(topology), list[Placement](), 0.0
        while waiting or running:
            # The learner changes its mind: what waits is another set in another order each time.
            offered = generator.sample(waiting, min(len(waiting), generator.randint(1, 20)))
            started = packer.start(offered, now_s)
            for placement in started:
                assert placement.task in offered
                waiting.remove(placement.task)  # fails where it started twice
            running += started
            assert running or not offered, "nothing runs, something waits, and nothing starts"
            self._require_apart(topology, running)
            if running:
                now_s += generator.uniform(0.0, 0.5)  # ends have nothing to do with what was expected
                packer.finish(running.pop(generator.randrange(len(running))))

    @staticmethod
    def _require_apart(topology: Topology, running: Sequence[Placement]) -> None:
        for placement in running:
            assert len(set(placement.nodes)) == len(placement.nodes) == placement.task.nodes
            assert all(0 <= node < len(topology.hosts) for node in placement.nodes)
        between = [switches_between(topology, placement.nodes) for placement in running]
        for first, second in combinations(range(len(running)), 2):
            assert not set(running[first].nodes) & set(running[second].nodes), "two on one node"
            assert not between[first] & between[second], "two on one layer"

    @pytest.mark.parametrize("top", Top)
    def test_the_whole_job_runs_alone(self, top: Top) -> None:
        packer = self.make(groups(4, 16, top))
        (whole,) = packer.start([task(16, 1.0)], 0.0)
        assert whole.nodes == tuple(range(16))
        assert packer.start([task(1, 1.0, 1), task(2, 1.0, 2)], 0.5) == []
        packer.finish(whole)
        assert len(packer.start([task(2, 1.0, 2)], 1.0)) == 1

    def test_a_group_takes_one_measurement_of_several_nodes_and_a_serial_job_one_in_all(self) -> None:
        serial = Topology.serial([f"n{host}" for host in range(8)])
        for topology, nodes, most in ((groups(4, 16), 4, 4), (groups(1, 16), 4, 1), (serial, 1, 1)):
            packer = self.make(topology)
            assert packer.start([], 0.0) == []
            assert len(packer.start([task(nodes, 1.0, number) for number in range(5)], 0.0)) == most

    def test_more_nodes_than_there_are_is_an_error(self) -> None:
        with pytest.raises(ValueError, match="5 nodes"):
            self.make(groups(2, 4)).start([task(5, 1.0)], 0.0)

    def test_finishing_what_does_not_run_is_an_error(self) -> None:
        packer = self.make(groups(2, 4))
        (placement,) = packer.start([task(2, 1.0)], 0.0)
        packer.finish(placement)
        with pytest.raises(ValueError, match="not"):
            packer.finish(placement)

    def test_equal_calls_give_equal_answers(self) -> None:
        generator = random.Random(5)
        waiting = [task(generator.randint(1, 8), generator.uniform(0.1, 1.0), number) for number in range(30)]
        answers = [self.make(groups(4, 16)).start(waiting, 0.0) for _ in range(2)]
        assert answers[0] == answers[1]
