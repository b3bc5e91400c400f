"""Tuning the all-to-all from end to end, where its launches answer from a formula, and the text of its table.

The text of live rules, which has the same head.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from math import log2
from pathlib import Path

import numpy as np
import pytest

from alltoallv_lookup import find
from colltune.alltoallv.launches import AlltoallvExploration, AlltoallvOptions
from colltune.alltoallv.lookup_table import (
    BOUND_TO,
    TABLE,
    AlltoallvRule,
    Setting,
    Shape,
    TableEntry,
    candidates,
    load_table,
    neighbours,
    parts_of,
    places,
    save_table,
    setting_of,
)
from colltune.alltoallv.matrices import load_recorded
from colltune.alltoallv.samples import Blocks
from colltune.alltoallv.tune_table import AlltoallvResult, sizes_up_to, tune_alltoallv
from colltune.core.errors import InputError
from colltune.core.sample import DEFAULT, Choice, Environment, Sample, Status
from colltune.core.space import Point
from colltune.core.stop import StopRequest
from colltune.emit.live_rules import HEAD, parse_lines, parse_live
from colltune.measure.contract import Effort
from colltune.profile.application_profile import Calls, Communicator, Profile
from colltune.store.journal import read_journal

ENVIRONMENT = Environment("mpich", "5.0.2", "0" * 64, "in memory", 8, 1, "single")
OPTIONS = AlltoallvOptions(sizes_up_to(256), budget_s=120.0)


@dataclass
class Launch:
    """50 repetitions of each choice, on the clock of its bench."""

    bench: "Patterns"
    number: int
    environment: Environment
    group: int = 0
    closed: bool = False
    disturbed: bool = False

    def set_up_s(self) -> float:
        return 0.02

    def measure(self, points: Iterable[Point], effort: Effort) -> Iterator[tuple[Point, list[Sample]]]:
        for point in points:
            self.group += 1
            samples = []
            for choice in point.choices:
                time_s = self.bench.time_s(point, choice)
                self.bench.spent_s += 50 * time_s
                made = Sample(point.scenario, choice, Status.OK, (time_s,) * 50, cost_s=50 * time_s)
                samples.append(replace(made, launch=self.number, group=self.group))
            self.bench.points += 1
            if self.bench.points == self.bench.stop_after:
                self.bench.stop.make()
            yield point, samples

    def close(self) -> None:
        self.closed = True


@dataclass
class Patterns:
    """A job: parata takes half of the library's time for blocks of ``pays`` bytes at most, others longer.

    On fewer nodes than ``pays_from`` it takes longer too.
    """

    pays: int = 64
    pays_from: int = 1
    pays_recorded: tuple[str, int] = ("linear", 0)
    launch_s: float = 0.5
    stop_after: int = 0
    stop: StopRequest = field(default_factory=StopRequest)
    nodes: int = 8
    ppn: int = 1
    environment: Environment = ENVIRONMENT
    launches: list[Launch] = field(default_factory=list)
    spent_s: float = 0.0
    points: int = 0
    watch: None = None

    def now_s(self) -> float:
        return self.spent_s + self.launch_s * len(self.launches)

    def launch(self, seed: int, number: int) -> Launch:
        self.launches.append(Launch(self, number, self.environment))
        return self.launches[-1]

    def time_s(self, point: Point, choice: Choice) -> float:
        size, setting = point.scenario.size_bytes, setting_of(choice)
        library_s = 1e-3 + 1e-7 * size
        if choice == DEFAULT:
            return library_s
        pays = size <= self.pays and point.scenario.nodes >= self.pays_from
        fast = self.pays_recorded if Blocks.of(point.scenario).is_recorded else (("parata", 2) if pays else None)
        return library_s * (0.5 if (setting.algorithm, setting.radix) == fast else 1.2)


def tune(
    bench: Patterns, out: Path, options: AlltoallvOptions = OPTIONS, note: Callable[[str], object] = print
) -> AlltoallvResult:
    return tune_alltoallv(bench, bench.launch, options, out, note=note, stop=bench.stop)


def test_what_pays_is_proven_in_fresh_launches_and_written(tmp_path: Path) -> None:
    bench = Patterns()
    result = tune(bench, tmp_path)
    assert not result.outcome.interrupted
    entries = load_table(result.table)
    rules = [rule for entry in entries for rule in entry.rules]
    assert {(rule.setting.algorithm, rule.setting.radix) for rule in rules} == {("parata", 2)}
    assert max(rule.high for rule in rules) < 2 * 64
    assert min(rule.low for rule in rules) <= 4
    assert {shape.nodes for shape in result.rules} >= {4, 6, 8}
    assert len({sample.launch for sample in read_journal(tmp_path / "alltoallv.jsonl").samples}) == len(bench.launches)
    assert all(launch.closed for launch in bench.launches)
    assert bench.now_s() <= OPTIONS.budget_s


@pytest.mark.parametrize(
    ("calls", "start_s", "made"), [(3, 0.0, False), (2000, 0.06, True), (2000, 0.6, False), (20000, 0.6, True)]
)
def test_a_table_has_rules_where_they_pay(calls: int, start_s: float, made: bool, tmp_path: Path) -> None:
    """By a run as profiled, after preloading. A call of 1 ms can take half of it from call 1,000 on."""
    where, notes = Communicator(8, 8, 1), list[str]()
    called = Calls(where, "alltoallv", "blocking", "none", 8 * calls, 256 * calls, 8e-3 * calls, 32, 32.0, 32)
    profile = Profile((called,), ((where, 1.0),), ranks=8, nodes=8, elapsed_s=30.0, reporting=8, start_s=start_s)
    result = tune(Patterns(), tmp_path, replace(OPTIONS, profile=profile), notes.append)
    assert bool(result.rules) is bool(load_table(result.table)) is made
    assert any(note.startswith("no table") and "Profile one" in note for note in notes) is not made


class Valley(Patterns):
    """On 64 nodes ParAta takes least time with one radix, and more the farther from it."""

    best: int

    def time_s(self, point: Point, choice: Choice) -> float:
        setting = setting_of(choice)
        return 1e-3 * (1.0 + abs(log2(setting.radix / self.best))) if setting.algorithm == "parata" else 8e-3


@pytest.mark.parametrize(("best", "found"), [(24, {24}), (9, {9}), (3, {3}), (60, {60, 61}), (47, {48})])
def test_a_radix_between_those_looked_at_first_is_found_without_a_sweep(best: int, found: set[int]) -> None:
    shape, bench = Shape(64, 1), Valley(nodes=64)
    bench.best = best
    launch = bench.launch(1, 0)
    exploration = AlltoallvExploration(launch, [].extend, AlltoallvOptions([64], 1e6), [shape], 1e6, clock=bench.now_s)
    outcome, decided = exploration.run()
    [(_, choice)] = decided.choices.items()
    assert setting_of(choice).radix in found
    assert len({sample.choice for sample in outcome.samples}) < 50  # of 61 radices with up to four windows each


def test_what_is_next_to_a_setting_is_one_that_can_run() -> None:
    for shape in (Shape(64, 1), Shape(2, 3), Shape(16, 16), Shape(1, 4)):
        for setting in candidates(shape):
            for near in neighbours(setting, shape):
                assert near != setting
                assert near.algorithm == setting.algorithm
                assert 2 <= near.radix <= (shape.ppn if near.algorithm == "hieata" else shape.ranks - 2)
                assert 0 <= near.batch < max(shape.nodes, 5)
    of_nodes = neighbours(Setting("hieata", 4, 8), Shape(32, 16))
    assert {near.batch for near in of_nodes if near.radix == 4} == {6, 7, 9, 12}
    assert {near.radix for near in of_nodes if near.batch == 8} == {3, 5, 6}


def test_a_communicator_gets_the_rules_of_the_part_of_the_job_that_is_nearest(tmp_path: Path) -> None:
    bench = Patterns(nodes=4, ppn=4, pays_from=3, environment=replace(ENVIRONMENT, nodes=4, ppn=4))
    entries = load_table(tune(bench, tmp_path).table)

    def algorithm(nodes: int, ppn: int) -> str:
        return find(entries, nodes * ppn, ppn, 32).algorithm

    assert {algorithm(nodes, ppn) for nodes in (3, 4) for ppn in (1, 2, 3, 4)} == {"parata"}
    assert {algorithm(nodes, ppn) for nodes in (1, 2) for ppn in (2, 3, 4)} == {"library"}
    assert algorithm(5, 4) == algorithm(4, 5) == "library"  # beyond the job


@pytest.mark.parametrize(("pays", "expected"), [(("linear", 0), "linear"), (("", 0), "library")])
def test_a_recorded_matrix_decides_its_cell_alone(tmp_path: Path, pays: tuple[str, int], expected: str) -> None:
    matrix = 32 * (np.ones((8, 8), dtype=np.int64) - np.eye(8, dtype=np.int64))
    np.save(tmp_path / "counts.npy", matrix)
    recorded = load_recorded([tmp_path / "counts.npy"], Shape(8, 1), sizes_up_to(256))
    options = AlltoallvOptions(sizes_up_to(256), 120.0, recorded=recorded)
    entries = load_table(tune(Patterns(pays_recorded=pays), tmp_path, options).table)
    assert find(entries, 8, 1, 32).algorithm == expected
    assert find(entries, 8, 1, 16).algorithm == find(entries, 8, 1, 64).algorithm == "parata"
    assert find(entries, 6, 1, 32).algorithm == "parata"


def test_every_number_of_nodes_is_nearest_to_one_part() -> None:
    found = places(parts_of(64, 16))
    for nodes in range(1, 65):
        for ppn in range(1, 17):
            ranks = nodes * ppn
            within = {
                shape: [r[0] <= ranks <= r[1] and p[0] <= ppn <= p[1] for r, p in found[shape]] for shape in found
            }
            mine = [shape for shape, some in within.items() if any(some)]
            if ranks >= 3:
                assert len(mine) == 1, (nodes, ppn, mine)
                assert 0.7 < mine[0].nodes / nodes < 1.5
                assert 0.7 < mine[0].ppn / ppn < 1.5
    assert found[Shape(64, 16)][-1] == ((55 * 16 + 1, 1024), (16, 16))
    assert places([]) == {}  # where there was no time to measure any


def test_what_is_far_from_every_part_has_none() -> None:
    found = places([Shape(2, 4), Shape(16, 4), Shape(4, 16)])
    assert found == {
        Shape(2, 4): [((4 + 1, 12), (4, 4)), ((5 + 1, 15), (5, 5)), ((6 + 1, 18), (6, 6))],
        Shape(16, 4): [((10 * ppn + 1, 16 * ppn), (ppn, ppn)) for ppn in (4, 5, 6)],
        Shape(4, 16): [((3 * ppn + 1, 4 * ppn), (ppn, ppn)) for ppn in (11, 12, 13, 14, 15, 16)],
    }


def test_where_nothing_pays_the_table_is_empty(tmp_path: Path) -> None:
    result = tune(Patterns(pays=0), tmp_path)
    assert (result.rules, load_table(result.table)) == ({}, [])


@pytest.mark.parametrize("stop_after", [3, 60])
def test_a_tuning_that_is_cut_off_leaves_the_table_and_goes_on(tmp_path: Path, stop_after: int) -> None:
    tune(Patterns(), tmp_path)
    table = (tmp_path / TABLE).read_text()
    (tmp_path / "alltoallv.jsonl").unlink()
    cut_off = tune(Patterns(stop_after=stop_after), tmp_path)
    assert cut_off.outcome.interrupted
    assert (tmp_path / TABLE).read_text() == table
    explored = [s for s in read_journal(tmp_path / "alltoallv.jsonl").samples if s.launch == 0]
    assert explored
    again = tune(Patterns(), tmp_path, AlltoallvOptions(sizes_up_to(256), 120.0, resume=True))
    assert not again.outcome.interrupted
    pairs = [(s.scenario, s.choice) for s in again.outcome.samples]
    assert len(pairs) == len(set(pairs))
    assert set(explored) <= set(again.outcome.samples)


def test_a_budget_that_is_too_short_is_extended_and_told(tmp_path: Path) -> None:
    notes: list[str] = []
    tune(Patterns(launch_s=3.0), tmp_path, AlltoallvOptions(sizes_up_to(256), 5.0), notes.append)
    assert any("extended" in text for text in notes)


def test_two_ranks_have_nothing_to_tune(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="two ranks"):
        tune(Patterns(nodes=2), tmp_path)


LINES = "choice 0 - A=1 # bcast binomial\nrules bcast message\nrule - - 64 0\nrule - - - -\n"


@pytest.mark.parametrize("head", [HEAD, "colltune-live 1"])
def test_live_rules_are_read_under_either_head(head: str) -> None:
    found = parse_live(f"{head}\n{LINES}")["bcast"]
    assert (found.rules[0].max_size, found.rules[0].choice) == (64, Choice("binomial"))


def test_text_under_another_head_is_refused_and_comments_and_empty_lines_say_nothing() -> None:
    for text in ("", LINES, f"colltune-rules 3\n{LINES}", '{"format": 1}'):
        with pytest.raises(InputError, match="first line"):
            parse_live(text)
    assert list(parse_lines(f"{HEAD}\n\n# for people\n  rule  -  - # why\n")) == [("rule", ["-", "-"], "why")]


def test_a_table_written_by_hand_may_leave_bounds_and_fill_open(tmp_path: Path) -> None:
    path = tmp_path / "t.rules"
    path.write_text(f"{HEAD}\nchoice 0 - algorithm=linear,batch=8\nrules alltoallv average\nrule - 64 100..500 0\n")
    (entry,) = load_table(path)
    assert entry.ranks == (0, 64)
    assert find([entry], 64, 5, 100, 0) == find([entry], 3, 1, 500) == Setting("linear", 0, 8)
    assert find([entry], 65, 5, 100) == find([entry], 64, 5, 99) == Setting("library")


def test_entries_come_back_as_they_were_saved(tmp_path: Path) -> None:
    parata = Setting("parata", 3, 1, 256)
    first = TableEntry((4, 4), (2, 2), (AlltoallvRule(1, 9, parata), AlltoallvRule(10, 99, Setting("library"))), 7)
    second = TableEntry((8, 9), (1, 4), (AlltoallvRule(1, 9, parata, (0, 2)),))
    entries = [first, second, TableEntry((3, 3), (1, 1), ())]
    save_table(tmp_path / "t.rules", entries, {"machine": "a # b"})
    assert load_table(tmp_path / "t.rules") == entries


HERE = ENVIRONMENT.with_fabric("InfiniBand 200")


@pytest.mark.parametrize(
    "made",
    [{}, {"note": "by hand"}, {name: getattr(HERE, name) for name in BOUND_TO}, {"machine": HERE.machine, "nodes": 9}],
)
def test_a_table_of_this_machine_or_of_none_is_taken(tmp_path: Path, made: dict[str, object]) -> None:
    save_table(tmp_path / "t.rules", [], made)
    load_table(tmp_path / "t.rules", HERE)


@pytest.mark.parametrize("name", BOUND_TO)
def test_a_table_of_another_machine_or_mpi_is_refused(tmp_path: Path, name: str) -> None:
    save_table(tmp_path / "t.rules", [], {**{key: getattr(HERE, key) for key in BOUND_TO}, name: "other"})
    with pytest.raises(InputError, match=rf"made elsewhere: {BOUND_TO[name]} other, here ") as refused:
        load_table(tmp_path / "t.rules", HERE)
    assert "colltune tune alltoallv" in str(refused.value.next_step)


@pytest.mark.parametrize(
    "text",
    [
        '{"format": 1, "entries": []}',
        f"{HEAD}\nrule - - - -\n",
        f"{HEAD}\nrules bcast message\n",
        f"{HEAD}\nchoice 0 - radix=2\n",
        f"{HEAD}\nchoice 0 - algorithm=linear,beads=2\n",
        f"{HEAD}\nrules alltoallv average\nrule - - 0..9 0\n",
        f"{HEAD}\nrules alltoallv average\nrule - x - -\n",
        *(f"{HEAD}\n# made: {made}\n" for made in ("[1]", "{", '{"machine": ["x"]}')),
    ],
)
def test_a_table_that_cannot_be_read_is_refused_with_what_to_do(tmp_path: Path, text: str) -> None:
    (tmp_path / "t.rules").write_text(text)
    why = "is not a look-up table|does not say where it was made|was made elsewhere"
    with pytest.raises(InputError, match=rf"t\.rules ({why})") as refused:
        load_table(tmp_path / "t.rules", HERE)
    assert "colltune tune alltoallv" in str(refused.value.next_step)
