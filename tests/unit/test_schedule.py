"""What the packers do with time, and how occupied trees are kept."""

import random

import pytest

from colltune.core.topology import Top, Topology
from colltune.schedule.filling import FillingPacker, Occupancy
from packer_laws import groups, random_tree, switches_between, task
from packing import GreedyBatchPacker, simulate


def test_the_anomaly_of_the_greedy_batch() -> None:
    # ACCLAiM, figure 11a: with more parallelism the short point takes a place beside the first long one, and the
    # second long one then runs after it instead of beside it.
    short, long_1, long_2 = task(33, 1.0, 1), task(31, 10.0, 2), task(31, 10.0, 3)
    two, many = groups(2, 64), groups(64, 64)
    assert simulate(GreedyBatchPacker(two), [short, long_1, long_2], 3).makespan_s == 11.0
    assert simulate(GreedyBatchPacker(many), [short, long_1, long_2], 3).makespan_s == 20.0
    for topology in (two, many):
        assert simulate(FillingPacker(topology), [short, long_1, long_2], 3).makespan_s == 11.0


def test_greedy_takes_the_next_nodes_and_stops_at_the_first_that_does_not_fit() -> None:
    packer = GreedyBatchPacker(groups(4, 16))
    first, second = packer.start([task(2, 1.0, 1), task(8, 1.0, 2), task(8, 1.0, 3), task(1, 1.0, 4)], 0.0)
    assert first.nodes == (0, 1)
    assert second.nodes == (4, 5, 6, 7, 8, 9, 10, 11)
    packer.finish(first)
    assert packer.start([task(1, 1.0, 4)], 1.0) == [], "the batch is not over"
    packer.finish(second)
    assert len(packer.start([task(1, 1.0, 4)], 2.0)) == 1


def test_filling_has_no_barrier() -> None:
    packer = FillingPacker(groups(2, 8))
    long_, short = packer.start([task(4, 9.0, 1), task(4, 1.0, 2)], 0.0)
    assert (long_.task.duration_s, short.task.duration_s) == (9.0, 1.0)
    packer.finish(short)
    (next_,) = packer.start([task(4, 2.0, 3)], 1.0)
    assert next_.nodes == short.nodes


def test_a_wide_point_is_not_delayed_for_ever_and_short_ones_fill_its_gap() -> None:
    packer = FillingPacker(groups(4, 16))
    running = packer.start([task(4, duration_s, index) for index, duration_s in enumerate((1.0, 5.0))], 0.0)
    assert len(running) == 2
    # The whole job is wanted next, which cannot be before 5 s: what ends by then may start, the rest may not.
    started = packer.start([task(16, 1.0, 10), task(4, 4.5, 11), task(4, 5.5, 12), task(1, 3.0, 13)], 0.0)
    assert sorted(placement.task.duration_s for placement in started) == [3.0, 4.5]


def test_what_runs_elsewhere_may_outlast_the_reservation() -> None:
    paths = [("large",)] * 8 + [("small",)] * 4
    packer = FillingPacker(Topology.from_paths([str(host) for host in range(12)], paths, Top.CROSSBAR))
    packer.start([task(8, 5.0, 1)], 0.0)
    started = packer.start([task(7, 1.0, 2), task(4, 100.0, 3)], 0.0)
    assert [placement.nodes for placement in started] == [(8, 9, 10, 11)]


def test_one_node_goes_where_several_cannot_and_nothing_where_something_is() -> None:
    occupancy = Occupancy(groups(2, 8))
    occupancy.take([0, 1])
    for taken in ([1], [2, 3]):
        with pytest.raises(ValueError, match="in use"):
            occupancy.take(taken)
    assert occupancy.find(1) in {(2,), (3,)}
    assert occupancy.find(4) == (4, 5, 6, 7)
    assert occupancy.find(5) is None


def test_a_measurement_goes_into_the_smallest_part_that_holds_it() -> None:
    paths = [("g0", "c0")] * 4 + [("g0", "c1")] * 2 + [("g1", "c0")] * 3
    occupancy = Occupancy(Topology.from_paths([str(host) for host in range(9)], paths, Top.CROSSBAR))
    assert occupancy.find(2) == (4, 5)
    assert occupancy.find(3) == (6, 7, 8)
    assert occupancy.find(4) == (0, 1, 2, 3)
    assert occupancy.find(6) == (0, 1, 2, 3, 4, 5)


@pytest.mark.parametrize("seed", range(15))
def test_occupancy_finds_room_exactly_where_there_is_some(seed: int) -> None:
    generator = random.Random(seed)
    topology = random_tree(generator)
    occupancy = Occupancy(topology)
    held: list[tuple[tuple[int, ...], frozenset[int]]] = []
    for _ in range(80):
        if held and generator.random() < 0.4:
            occupancy.free(*held.pop(generator.randrange(len(held))))
            continue
        wanted = generator.randint(1, len(topology.hosts))
        found = occupancy.find(wanted)
        assert (found is not None) == (wanted <= _most(topology, held))
        assert occupancy.has_room(wanted) == (found is not None)
        if found is not None:
            assert len(set(found)) == wanted
            held.append((found, occupancy.take(found)))
    for nodes, layers in held:
        occupancy.free(nodes, layers)
    assert occupancy.find(len(topology.hosts)) == tuple(range(len(topology.hosts)))


def _most(topology: Topology, held: list[tuple[tuple[int, ...], frozenset[int]]]) -> int:
    """The most nodes that one more measurement can have, by trying every switch as its highest."""
    if held and topology.top is Top.ALONE:
        return 0
    busy = {node for nodes, _ in held for node in nodes}
    used = set().union(*(switches_between(topology, nodes) for nodes, _ in held)) if held else set()
    most = 1 if len(busy) < len(topology.hosts) else 0
    for highest in range(len(topology.switches)):
        free = [topology.paths[leaf] for host, leaf in enumerate(topology.leaf) if host not in busy]
        below = [path for path in free if highest in path and not used & set(path[: path.index(highest) + 1])]
        most = max(most, len(below))
    return most


@pytest.mark.parametrize("count", [1, 2, 4, 64])
def test_filling_is_never_slower_than_one_after_another_nor_than_greedy(count: int) -> None:
    generator = random.Random(count)
    tasks = [task(2 ** generator.randrange(7), generator.uniform(0.01, 0.1), number) for number in range(150)]
    greedy = simulate(GreedyBatchPacker(groups(count, 64)), tasks, 32)
    filling = simulate(FillingPacker(groups(count, 64)), tasks, 32)
    assert greedy.serial_s == pytest.approx(filling.serial_s)
    assert filling.makespan_s <= greedy.makespan_s <= greedy.serial_s * (1 + 1e-9)
    assert {id(run.placement.task) for run in filling.runs} == {id(one) for one in tasks}
