"""Patterns that share a cell of the look-up table, what settings cost, and what is kept for all that look alike."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from colltune.alltoallv.lookup_table import (
    FILLS,
    LIBRARY,
    Setting,
    Shape,
    alike,
    choice_of,
    exists,
    fill_class,
    peers_among,
    runs,
    setting_of,
    usual,
)
from colltune.alltoallv.matrices import alltoallv_share, called_by, load_matrix, load_recorded, write_matrices
from colltune.alltoallv.prove import PatternProof
from colltune.alltoallv.samples import Blocks
from colltune.core.errors import InputError, LaunchError
from colltune.core.proven import Verdict
from colltune.core.sample import DEFAULT, Choice, Environment, Scenario
from colltune.core.stop import StopRequest
from colltune.distill.decide import Decided
from colltune.profile.application_profile import Calls, Communicator, CountsPerRank, Profile
from colltune_study.research.alltoallv_cost import work
from colltune_study.research.alltoallv_models import CostModel, Query, plain_features
from colltune_study.research.time_models import COMPARED, unseen_error
from colltune_study.simulated.drawn import QUIET, SimulatedSource


@pytest.mark.parametrize("ranks", [3, 4, 8, 16, 33, 1024])
def test_every_number_of_peers_is_in_one_class_and_its_ends_are_tried(ranks: int) -> None:
    for peers in range(1, ranks):
        fill = fill_class(peers / (ranks - 1))
        fewest, most = (peers_among(f"{name}{fill}", ranks) for name in ("few", "most"))
        assert fewest is not None
        assert most is not None
        assert (fewest or ranks - 1) <= peers <= (most or ranks - 1)
        assert fill_class((fewest or ranks - 1) / (ranks - 1)) == fill_class((most or ranks - 1) / (ranks - 1)) == fill
    classes = {fill_class(peers / (ranks - 1)) for peers in range(1, ranks)}
    assert {fill for fill in range(len(FILLS)) if exists(usual(fill), fill, ranks)} == classes


def test_the_usual_pattern_of_a_class_comes_first_and_those_that_gain_least_follow() -> None:
    def found(fill: int, ranks: int) -> list[tuple[str, int | None]]:
        some = [usual(fill), *alike(fill)]
        return [(name, peers_among(peers, ranks)) for name, peers in some if exists((name, peers), fill, ranks)]

    assert found(4, 8) == [("constant", 0), ("constant", 6), ("skewed", 6), ("power", 6)]
    assert found(0, 8) == []
    assert found(4, 3) == [("constant", 0), ("skewed", 0), ("power", 0)]


@pytest.mark.parametrize("text", ["", "most", "few5", "least3", "-1", "most1.5"])
def test_text_that_means_no_number_of_peers_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a number of peers"):
        peers_among(text, 8)


def test_a_run_has_no_gap_and_one_setting() -> None:
    assert runs({4: "a", 8: "a", 32: "a", 64: "b", 128: "b"}) == [[4, 8], [32], [64, 128]]


SIZES = [1 << power for power in range(2, 12)]
WORLD, ROWS = Communicator(16, 4, 4), Communicator(4, 4, 1)
ONE = Calls(WORLD, "alltoallv", "blocking", "none", 160, 1000, 4.0, 20, 24.0, 30)


def profile(*calls: Calls) -> Profile:
    return Profile(calls, ((WORLD, 1.0), (ROWS, 4.0)), 16, 4, 2.0, 16)


def test_parts_and_sizes_are_those_of_the_calls_with_room_for_the_busiest_rank() -> None:
    rows = replace(ONE, communicator=ROWS, collective="alltoallw", size_least=500, size_most=900)
    found = called_by(profile(ONE, rows), Shape(4, 4), SIZES)
    assert found.parts == (Shape(4, 1), Shape(4, 4))
    assert found.sizes == (16, 32, 64, 512, 1024, 2048)
    assert found.fills == (0, 1, 2, 3, 4)
    assert found.share == alltoallv_share(profile(ONE, rows)) == pytest.approx(8.0 / 32.0)
    # Where a quarter of the blocks for others has bytes, classes that are denser need no proof.
    sparse = replace(ONE, blocks=CountsPerRank(count=160, empty=122, total_bytes=4000))
    assert called_by(profile(sparse), Shape(4, 4), SIZES).fills == (0, 1, 2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (replace(ONE, collective="alltoall"), "no blocking MPI_Alltoallv"),
        (replace(ONE, form="nonblocking"), "its nonblocking calls are the library's"),
        (replace(ONE, gaps=160), "its calls whose data have gaps are the library's"),
        (replace(ONE, communicator=Communicator(2, 2, 1)), "no blocking"),
        (replace(ONE, communicator=Communicator(32, 8, 4)), "a job of 4 x 4 can form"),
        (replace(ONE, communicator=Communicator(16, 4, 4, remote_size=4)), "no blocking"),
        (replace(ONE, size_least=1 << 20, size_most=1 << 20), "of 4 to 2048 B"),
    ],
)
def test_a_profile_without_calls_that_can_be_tuned_is_refused(call: Calls, message: str) -> None:
    with pytest.raises(InputError, match=message):
        called_by(profile(call), Shape(4, 4), SIZES)


FEW_SIZES = [4, 8, 16, 32, 64]


def test_text_and_npy_say_the_same_and_come_back_as_they_are_written(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("# bytes\n0 5 9\n\n1, 2, 3  # the second rank\n4 0 0\n")
    matrix = load_matrix(tmp_path / "a.txt")
    assert matrix.bytes.tolist() == [[0, 5, 9], [1, 2, 3], [4, 0, 0]]
    np.save(tmp_path / "a.npy", matrix.bytes.astype(np.uint16))
    assert (load_matrix(tmp_path / "a.npy").bytes == matrix.bytes).all()
    (again,) = write_matrices(load_recorded([tmp_path / "a.npy"], Shape(1, 3), FEW_SIZES), tmp_path)
    assert (load_matrix(again).bytes == matrix.bytes).all()


def test_a_matrix_is_in_the_cell_that_its_calls_have(tmp_path: Path) -> None:
    """The busiest rank sends 14 bytes to two others; one rank sends nothing to one, and gets from both."""
    (tmp_path / "a.txt").write_text("999 5 9\n1 999 3\n4 0 999\n")
    (one,) = load_recorded([tmp_path / "a.txt"], Shape(1, 3), FEW_SIZES)
    assert (one.matrix.average_bytes, one.plain.size_bytes, one.fill) == (7, 8, 3)
    assert (one.plain.collective, Blocks.of(one.scenario)) == ("alltoallv", Blocks("counts0"))
    (tmp_path / "b.txt").write_text("0 9 0\n0 0 9\n9 0 0\n")
    (other,) = load_recorded([tmp_path / "b.txt"], Shape(1, 3), FEW_SIZES)
    assert (other.matrix.average_bytes, other.fill) == (4, 2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty, and no matrix"),
        ("1 2\n3\n", "line 2 has 1 numbers, and the first has 2"),
        ("1 2 3\n4 5 6\n", "2 x 3 values"),
        ("1 2\n3 x\n", "line 2 has more than whole numbers"),
        ("1 2.5\n3 4\n", "line 1 has more than whole numbers"),
        ("1 2\n-3 4\n", "rank 1 sends -3 bytes to rank 0"),
        ("1 2147483647\n2 1\n", "over 2 GiB"),
        ("1 2\n3 4\n", "2 x 2 counts, and this job has 3 ranks"),
        ("7 0 0\n0 7 0\n0 0 7\n", "no bytes for another rank"),
        ("0 0 1\n0 0 0\n0 0 0\n", "blocks of 0 B on average"),
        ("0 999 1\n0 0 0\n0 0 0\n", "blocks of 500 B on average, and 4 to 64 B are tuned"),
    ],
)
def test_what_is_no_matrix_of_this_job_is_refused_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "a.txt").write_text(text)
    with pytest.raises(InputError, match=message) as refused:
        load_recorded([tmp_path / "a.txt"], Shape(1, 3), FEW_SIZES)
    assert "a.txt" in str(refused.value)
    assert refused.value.next_step


def test_files_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.npy").write_bytes(b"no array")
    np.save(tmp_path / "b.npy", np.ones((2, 2)))
    for name, message in (("a.npy", "no matrix of counts"), ("b.npy", "float64"), ("c.txt", "cannot read")):
        with pytest.raises(InputError, match=message):
            load_matrix(tmp_path / name)


_SHAPE = Shape(64, 16)


@pytest.mark.parametrize(
    ("nodes", "setting", "expected"),
    [
        # A rank sends each of radix - 1 digits by every power of the radix, and a block once for each that is not 0.
        (4, Setting("parata", 4), {"messages": 9, "blocks": 144}),
        (64, Setting("parata", 32), {"messages": 62, "blocks": 1984, "waits": 2}),
        (256, Setting("parata", 64), {"messages": 126, "blocks": 8064}),
        (64, Setting("parata", 32, 4), {"messages": 62, "waits": 16}),  # a batch makes more waits alone
        (64, Setting("hieata", 16), {"messages": 15 + 63, "off_node_bytes": 63 * 16 * 100.0}),
    ],
)
def test_what_a_setting_sends_follows_closed_forms(nodes: int, setting: Setting, expected: dict[str, float]) -> None:
    found = work(Shape(nodes, 16), setting, 100.0)
    assert {name: getattr(found, name) for name in expected} == expected


def _queries() -> list[Query]:
    settings = [LIBRARY, Setting("hieata", 16), *(Setting("parata", radix) for radix in (2, 4, 8, 16, 32))]
    return [
        Query(Shape(nodes, 16), setting, mean)
        for nodes in (8, 16, 32)
        for setting in settings
        for mean in (4.0, 64.0, 512.0)
    ]


def _cost_s(query: Query) -> float:
    found = work(query.shape, query.setting, query.mean_bytes)
    return 6e-7 * found.messages + 1e-6 * found.waits + 1e-10 * found.off_node_bytes


def test_times_that_are_a_sum_of_costs_are_predicted_where_nothing_was_measured() -> None:
    queries = _queries()
    model = CostModel().fit(queries, np.array([_cost_s(query) for query in queries]))
    unseen = [Query(Shape(24, 16), query.setting, 100.0) for query in queries]
    expected = np.array([_cost_s(query) for query in unseen])
    assert np.abs(model.predict(unseen) / expected - 1.0).max() < 0.05
    best = min(unseen, key=_cost_s).setting
    assert model.choose(Shape(24, 16), [query.setting for query in queries], 100.0) == best


def test_what_was_never_measured_is_not_chosen() -> None:
    queries = [query for query in _queries() if query.setting.algorithm != "hieata"]
    model = CostModel().fit(queries, np.array([_cost_s(query) for query in queries]))
    assert np.isinf(model.predict([Query(_SHAPE, Setting("hieata", 16), 8.0)]))[0]
    assert model.choose(_SHAPE, [Setting("hieata", 16), LIBRARY], 8.0) == LIBRARY
    with pytest.raises(ValueError, match="no timings"):
        CostModel().fit([], np.array([]))


@pytest.mark.parametrize("name", COMPARED)
def test_every_model_learns_what_grows_with_the_ranks(name: str) -> None:
    features = plain_features(_queries())
    assert unseen_error(name, features, np.exp(0.1 * features[:, 0]), 0) < 0.2


@pytest.mark.parametrize("name", ["linear", "tree"])
def test_the_test_error_is_of_rows_that_were_not_seen(name: str) -> None:
    queries = _queries()
    features = plain_features(queries)
    noise = np.exp(np.random.default_rng(1).normal(size=len(queries)))
    assert unseen_error(name, features, noise, 0) > 0.2  # nothing to learn: a tree that had seen them would be at 0
    assert unseen_error("linear", features, np.exp(features[:, 0]), 0) < 1e-6


_FORWARDING = choice_of(Setting("parata", 2, 0, 1024))
_WHOLE = Shape(8, 1)


class Machine:
    """Its library takes 1 ms, and its candidate what is said for a pattern; 0.5 ms elsewhere.

    Each launch takes a second, and what it measures nearly nothing; that of number ``fails`` does not start.
    """

    environment = Environment("mpich", "5.0.2", "0" * 64, "in memory", 8, 1, "single")

    def __init__(self, slow_s: dict[Blocks, float], stop_after: int = 0, fails: int = 0) -> None:
        self.slow_s, self.stop_after, self.fails = slow_s, stop_after, fails
        self.seen, self.launches, self.stop = set[Blocks](), 0, StopRequest()

    def open(self) -> SimulatedSource:
        self.launches += 1
        if self.launches == self.stop_after:
            self.stop.make()
        if self.launches == self.fails:
            raise LaunchError("the job does not start", "Try again")
        return SimulatedSource(self.environment, self.truth, 1, self.launches, replace(QUIET, spread=0.0))

    def truth(self, scenario: Scenario, choice: Choice) -> float:
        blocks = Blocks.of(scenario)
        self.seen.add(blocks)
        return 1e-3 if choice == DEFAULT else self.slow_s.get(blocks, 0.5e-3)


def prove(
    machine: Machine, sizes: Iterable[int] = (8, 16), budget_s: float = 1e4, shapes: Iterable[Shape] = (_WHOLE,)
) -> tuple[PatternProof, dict[int, set[tuple[Shape, int]]]]:
    """What was kept, by class of fill."""
    grid = [Scenario("alltoallv", shape.nodes, shape.ppn, size) for shape in shapes for size in sizes]
    gains, default_s = dict.fromkeys(grid, 0.69), dict.fromkeys(grid, 1e-3)
    record, clock = (lambda _samples: None), (lambda: float(machine.launches))
    proof = PatternProof(_WHOLE, machine.open, record, budget_s, launch_s=1.0, clock=clock, stop=machine.stop)
    kept = proof.run(Decided(dict.fromkeys(grid, _FORWARDING), gains, default_s))
    places = {fill: {(Shape(s.nodes, s.ppn), s.size_bytes) for s in found} for fill, found in kept.items()}
    return proof, places


def test_what_is_faster_for_every_pattern_is_kept_in_every_class_that_eight_ranks_have() -> None:
    machine = Machine({})
    _, kept = prove(machine)
    assert kept == {fill: {(_WHOLE, 8), (_WHOLE, 16)} for fill in (4, 3, 2, 1)}
    assert {Blocks("constant"), *(Blocks(name, "few4") for name in ("constant", "skewed", "power"))} <= machine.seen
    assert Blocks("constant", "most0") not in machine.seen


@pytest.mark.parametrize(
    ("slow", "slow_s", "kept", "refused"),
    [
        # Measured on 4 x 4 at 4 KiB: uniform blocks 1.39 as fast by a rule, blocks of one size 0.92.
        (Blocks("constant"), 1.1e-3, {3, 2, 1}, True),
        # A pattern that is slower withdraws the rule for all that look alike.
        *((Blocks(name, "few4"), 1.1e-3, {3, 2, 1}, True) for name in ("constant", "skewed", "power")),
        (Blocks("skewed", "few4"), 1e-3, {4, 3, 2, 1}, False),  # it gains nothing, and loses nothing
        (Blocks("constant", "most3"), 1e-3, {4, 2, 1}, True),  # in its class it does not pay
    ],
)
def test_one_pattern_decides_for_all_that_are_alike(slow: Blocks, slow_s: float, kept: set[int], refused: bool) -> None:
    machine = Machine({slow: slow_s})
    proof, places = prove(machine)
    assert set(places) == kept
    lost = {result.scenario.collective for result in proof.results if result.verdict is not Verdict.KEPT}
    assert lost == ({slow.collective} if refused else set())
    assert (Blocks("skewed", "few3") in machine.seen) == (3 in kept)  # what does not pay is looked at no further


@pytest.mark.parametrize(
    ("machine", "budget_s"), [(Machine({}), 1.5), (Machine({}, stop_after=2), 1e4), (Machine({}, fails=1), 1e4)]
)
def test_without_time_cut_off_or_where_a_launch_fails_nothing_is_kept(machine: Machine, budget_s: float) -> None:
    proof, kept = prove(machine, budget_s=budget_s)
    assert kept == {}
    assert proof.results
    assert all(result.verdict is not Verdict.KEPT for result in proof.results)
    assert not machine.fails or {result.verdict for result in proof.results} == {Verdict.NOT_TRIED}


def test_a_part_that_a_class_does_not_fit_is_not_kept_in_it() -> None:
    _, kept = prove(Machine({}), shapes=[_WHOLE, Shape(3, 1)])
    three = {fill for fill, places in kept.items() if any(shape == Shape(3, 1) for shape, _ in places)}
    assert three == {4, 2}


def test_a_pattern_and_a_setting_come_back_from_their_names() -> None:
    for blocks in (Blocks(), Blocks("uniform", "6"), Blocks("counts0"), Blocks("power", "few2")):
        assert Blocks.of(Scenario(blocks.collective, 2, 2, 8)) == blocks
    with pytest.raises(ValueError, match="allgather"):
        Blocks.of(Scenario("allgather", 2, 2, 8))
    assert setting_of(_FORWARDING) == Setting("parata", 2, 0, 1024)
    with pytest.raises(ValueError, match="3 ranks cannot"):
        Blocks("uniform", "few3").peers_among(3)
