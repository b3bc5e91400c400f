"""The exhaustive table: its grid, its rows, what is left after an interruption, and what a resumed run measures."""

import csv
import gzip
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from colltune.core.errors import InputError
from colltune.core.sample import DEFAULT, Choice, Environment, Sample, Scenario, Status
from colltune.core.space import Space, counts
from colltune.store.journal import read_journal
from colltune_study.recorded.dataset import load_grids, parse_algorithm
from colltune_study.simulated.drawn import SimulatedSource
from colltune_study.tables.collect import CollectOptions, Subject, collect, journal_of, scenarios_of, sizes_of
from colltune_study.tables.table import rows_of, save_rows

# What readers of the tables expect.
COLUMNS = {
    **dict.fromkeys(("dataset", "cluster", "mpi", "mpi_version", "collective", "algorithm", "family"), str),
    "is_default": bool,
    **dict.fromkeys(("nodes", "ppn", "nprocs", "msg_bytes", "buf_bytes"), int),
    "dtype": str,
    **dict.fromkeys([f"{name}_us" for name in ("time", "mean", "std", "min", "p10", "p25", "p75", "p90")], float),
    **{"n_reps": int, "gpu": bool, "run_id": str, "notes": str, "cost_s": float},
}
ENVIRONMENT = Environment("mpich", "5.0.2", "abc", "simulated", 4, 2, "single")
TREE, RING, BAD = Choice("tree", (("k", 2),)), Choice("ring"), Choice("bad")
OPTIONS = CollectOptions(["bcast"], 1, 256, seed=3)


def truth(scenario: Scenario, choice: Choice) -> float | Status:
    if choice == BAD:
        return Status.CRASHED
    if choice == RING and scenario.size_bytes == 1:
        return Status.INAPPLICABLE
    return {DEFAULT: 3e-6, TREE: 1e-6, RING: 2e-6}[choice] * scenario.ranks


class Fake:
    """A subject on known times, which counts launches and pairs, and can be interrupted after some points."""

    def __init__(self, choices: Sequence[Choice] = (DEFAULT, RING, TREE), interrupt_after: int = 10**9) -> None:
        self.choices, self.interrupt_after = tuple(choices), interrupt_after
        self.launches, self.measured = 0, []

    def subject(self) -> Subject:
        def space(collective: str, scenarios: Sequence[Scenario]) -> Space:
            return Space(collective, tuple(scenarios), lambda _scenario: self.choices)

        return Subject(ENVIRONMENT, "nowhere", 4, 2, space, self._open)

    @contextmanager
    def _open(self, seed, on_event) -> Iterator[SimulatedSource]:
        self.launches += 1
        on_event("launch", {"number": self.launches})
        source = SimulatedSource(ENVIRONMENT, truth, seed, launch=1)
        measure = source.measure

        def watched(points, effort):
            for number, (point, samples) in enumerate(measure(points, effort)):
                if number == self.interrupt_after:
                    raise KeyboardInterrupt
                self.measured += [(point.scenario, choice) for choice in point.choices]
                yield point, samples

        source.measure = watched
        yield source


def test_the_grid_has_counts_and_sizes_that_are_no_powers_of_two() -> None:
    scenarios = scenarios_of("bcast", Fake().subject(), OPTIONS)
    assert {s.nodes for s in scenarios} == {1, 2, 3, 4}
    assert {s.ppn for s in scenarios} == {1, 2}
    assert (1, 1) not in {(s.nodes, s.ppn) for s in scenarios}
    sizes = sizes_of("bcast", OPTIONS)
    assert {1 << power for power in range(9)} <= set(sizes)
    # One between each two neighbours from 2 on: there is none between 1 and 2.
    assert len(sizes) == 9 + 7
    assert [s.size_bytes for s in scenarios if (s.nodes, s.ppn) == (3, 2)] == sizes
    with pytest.raises(InputError, match="nodes 2, 8: there are 1 to 4"):
        scenarios_of("bcast", Fake().subject(), replace(OPTIONS, node_counts=[2, 8]))


@pytest.mark.parametrize("nodes", [1, 4, 5, 12, 16, 20, 24, 127])
def test_nodes_are_counted_as_tuning_counts_them(nodes: int) -> None:
    subject = replace(Fake().subject(), nodes=nodes)
    found = {scenario.nodes for scenario in scenarios_of("bcast", subject, OPTIONS)}
    assert sorted(found) == counts(nodes)
    assert not {15, 18} & found


def test_sizes_of_reductions_are_whole_elements_and_do_not_depend_on_the_bounds() -> None:
    small, large = (sizes_of("allreduce", replace(OPTIONS, largest_bytes=top)) for top in (1024, 4096))
    assert all(size % 4 == 0 for size in large)
    assert set(small) <= set(large)
    assert len(sizes_of("allreduce", replace(OPTIONS, between=0))) == 7
    assert len(sizes_of("bcast", replace(OPTIONS, between=3))) > len(sizes_of("bcast", OPTIONS))
    assert sizes_of("barrier", OPTIONS) == [0]


@pytest.mark.parametrize("name", ["data.csv", "data.csv.gz", "data.parquet"])
def test_every_legal_pair_is_in_the_table_and_the_reader_gives_the_same_times(name: str, tmp_path: Path) -> None:
    if name.endswith(".parquet"):
        pytest.importorskip("pyarrow")
    pytest.importorskip("pandas")
    fake = Fake()
    done = collect(fake.subject(), OPTIONS, tmp_path / name)
    shapes, sizes = 7, len(sizes_of("bcast", OPTIONS))
    assert (done.rows, done.failed, done.missing) == (3 * shapes * sizes - shapes, shapes, 0)
    [grid] = load_grids([tmp_path / name])
    assert set(grid.choices) == {TREE, RING}
    assert len(grid.scenarios) == shapes * (sizes - 1), "of one byte there is one algorithm only, and the default"
    samples = {(s.scenario, s.choice): s for s in read_journal(journal_of(tmp_path / name)).samples}
    for scenario, default_s in zip(grid.scenarios, grid.default_s, strict=True):
        for choice in grid.choices:
            assert grid.time(scenario, choice) == pytest.approx(samples[scenario, choice].time_s, rel=1e-4)
        assert default_s == pytest.approx(samples[scenario, DEFAULT].time_s, rel=1e-4)


def test_an_interrupted_collection_leaves_its_table_and_goes_on(tmp_path: Path) -> None:
    out = tmp_path / "data.csv"
    first = Fake(interrupt_after=5)
    done = collect(first.subject(), OPTIONS, out)
    assert done.interrupted
    assert done.missing > 0
    assert len(out.read_text().splitlines()) == 1 + done.rows
    second = Fake()
    resumed = collect(second.subject(), replace(OPTIONS, resume=True), out)
    assert resumed.missing == 0
    assert not set(first.measured) & set(second.measured)
    rows = list(csv.DictReader(out.open()))
    assert len({row["run_id"].split("/")[1] for row in rows}) == 2, "the two launches are told apart"
    third = Fake()
    assert collect(third.subject(), replace(OPTIONS, resume=True), out).rows == resumed.rows
    assert third.launches == 0


def test_time_that_runs_out_is_said_and_leaves_the_rest_missing(tmp_path: Path) -> None:
    ticks, options = iter(range(1000)), replace(OPTIONS, budget_s=10.0)
    done = collect(Fake().subject(), options, tmp_path / "d.csv", clock=lambda: float(next(ticks)))
    assert not done.interrupted
    assert 0 < done.missing < 3 * 7 * 16


def test_what_ends_the_job_is_not_tried_again_and_has_no_row(tmp_path: Path) -> None:
    fake = Fake([DEFAULT, TREE, BAD])
    done = collect(fake.subject(), OPTIONS, tmp_path / "data.csv")
    assert [choice for _, choice in fake.measured].count(BAD) == 1
    assert (done.failed, done.missing) == (1, 0)
    assert "bad" not in {row["algorithm"] for row in csv.DictReader((tmp_path / "data.csv").open())}


def test_a_collection_is_not_overwritten_without_being_asked(tmp_path: Path) -> None:
    collect(Fake().subject(), OPTIONS, tmp_path / "data.csv")
    with pytest.raises(InputError, match="--resume"):
        collect(Fake().subject(), OPTIONS, tmp_path / "data.csv")
    with pytest.raises(InputError, match="format"):
        collect(Fake().subject(), OPTIONS, tmp_path / "data.txt")


def test_a_row_says_what_was_measured() -> None:
    times = tuple(1e-6 * value for value in range(1, 12))
    sample = Sample(Scenario("allgather", 2, 3, 5), TREE, Status.OK, times, cost_s=0.5, launch=4, started_s=0.0)
    [row] = rows_of([sample, replace(sample, status=Status.WRONG, times_s=())], ENVIRONMENT, "nowhere")
    assert list(row) == list(COLUMNS)
    assert {name: type(value) for name, value in row.items()} == COLUMNS
    assert (row["algorithm"], row["is_default"], row["run_id"]) == ("tree(k=2)", False, "19700101T000000/4")
    assert (row["nprocs"], row["msg_bytes"], row["buf_bytes"], row["dtype"]) == (6, 5, 30, "byte")
    figures = [row[name] for name in ("time_us", "mean_us", "min_us", "p10_us", "p75_us", "n_reps", "cost_s")]
    assert figures == pytest.approx([6.0, 6.0, 1.0, 2.0, 8.5, 11, 0.5])
    assert row["std_us"] == pytest.approx(11**0.5)
    assert parse_algorithm(str(row["algorithm"])) == TREE


def test_equal_rows_give_equal_files(tmp_path: Path) -> None:
    sample = Sample(Scenario("bcast", 2, 3, 5), RING, Status.OK, (1e-6,))
    for name in ("one.csv.gz", "two.csv.gz"):
        save_rows(tmp_path / name, rows_of([sample], ENVIRONMENT, "nowhere"))
    assert (tmp_path / "one.csv.gz").read_bytes() == (tmp_path / "two.csv.gz").read_bytes()
    assert gzip.decompress((tmp_path / "one.csv.gz").read_bytes()).startswith(b"dataset,cluster,mpi,")
