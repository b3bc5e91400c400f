"""What `explain` and `diff` say, from tunings written by hand."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner
from written_summary import read_summary

from colltune.cli.app import app
from colltune.core.errors import InputError
from colltune.core.rules import Rule, RuleSet
from colltune.core.sample import DEFAULT, Choice, Environment, Sample, Scenario, SizeBasis, Status
from colltune.judge.spread import median_interval
from colltune.report.explanation import nearest_scenarios
from colltune.session.explain import explain_call
from colltune.store.journal import Journal
from colltune.store.tuning import CONFIRMATION, JOURNAL, Tuning, save_tuning

HERE = Environment("mpich", "5.0.2", "0" * 64, "a machine", 1, 2, "single", {"mpiexec": "/nowhere/bin/mpiexec"})
RING = Choice("ring")
BOUNDS = ((1, None, None), (2, 2, 4096), (2, 2, None), (2, None, None), (None, None, None))
RULES = RuleSet("allreduce", SizeBasis.MESSAGE, tuple(Rule(*one, RING if 4096 in one else DEFAULT) for one in BOUNDS))
GENERAL = b'{"collective=allreduce": {"avg_msg_size<=4096": {"algorithm=A": {"k=2": {}}}, "any": {"algorithm=B": {}}}}'
CH4 = b'{"collective=allreduce": {"composition=MPIDI_Allreduce_intra_composition_beta": {}}}'
RUNNER = CliRunner()


def kept(size: int, *ratios: float, **more: object) -> dict[str, object]:
    """An entry of the proof."""
    scenario = ["allreduce", 1, 2, size]
    return {"scenario": scenario, "choice": "ring", "verdict": "kept", "ratios": list(ratios), **more}


def write(directory: Path, rule_sets: dict[str, RuleSet], environment: Environment = HERE, **summary: object) -> Path:
    files = {"mpich/mpich-coll.json": GENERAL, "mpich/mpich-ch4-coll.json": CH4}
    save_tuning(directory, Tuning(environment, rule_sets, files, {}, read_summary(summary)))
    return directory


def measured(directory: Path, *samples: Sample, name: str = JOURNAL) -> None:
    with Journal.create(directory / name, HERE) as journal:
        journal.append(samples)


def sample(size: int, choice: Choice, *times_us: float, status: Status = Status.OK) -> Sample:
    return Sample(Scenario("allreduce", 1, 2, size), choice, status, tuple(t * 1e-6 for t in times_us))


@pytest.fixture
def tuned(tmp_path: Path) -> Path:
    gate = [kept(4096, 1.5, 1.25, reason="at least 1.25 times as fast in 2 fresh groups")]
    write(tmp_path, {"allreduce": RULES}, gated=True, gate=gate)
    crashed = sample(4096, Choice("tree"), status=Status.CRASHED)
    both = sample(4096, DEFAULT, *[3.0] * 10), sample(4096, RING, *[2.0] * 10)
    measured(tmp_path, *both, crashed, sample(64, DEFAULT, 1.0))
    measured(tmp_path, sample(4096, DEFAULT, 3.0), sample(4096, RING, 2.0), name=CONFIRMATION)
    return tmp_path


def explain(directory: Path, *arguments: str) -> str:
    result = RUNNER.invoke(app, ["explain", str(directory), *arguments], catch_exceptions=False)
    assert result.exit_code == 0
    return result.output


def test_explain_names_the_rule_what_the_file_leads_to_the_measurements_and_the_proof(tuned: Path) -> None:
    text = explain(tuned, "allreduce", "--size", "4KiB")
    assert "2 of 5: 2 ranks per node, 2 ranks, up to 4 KiB: ring" in text
    assert "runs      A (k=2)" in text
    assert "unknown: the library that was tuned is not at /nowhere/lib/libmpi.so.12" in text
    assert explain(tuned, "MPI_Allreduce", "--size", "4KiB") == text
    lines = text.splitlines()
    ring = next(line for line in lines if line.strip().startswith("ring"))
    assert ring.split() == ["ring", "2", "us", "2", "us", "to", "2", "us", "10", "1.50", "<-", "chosen"]
    assert any(line.split() == ["tree", "crashed"] for line in lines)
    assert any("ring kept: at least 1.25 times" in line for line in lines)
    assert any("in 2 fresh comparisons: 1.25, 1.50" in line for line in lines)
    assert len(lines) < 24


def test_all_comparisons_are_listed_and_a_slower_campaign_is_explained(tmp_path: Path) -> None:
    gate = [kept(4096, 0.73, 1.08, *[1.3] * 10, low=1.08, reason="at least 1.08 times as fast")]
    write(tmp_path, {"allreduce": RULES}, gated=True, gate=gate)
    measured(tmp_path, sample(4096, DEFAULT, *[1.9] * 10), sample(4096, RING, *[2.0] * 10))
    text = " ".join(explain(tmp_path, "allreduce", "--size", "4KiB").split())
    assert "in 12 fresh comparisons: 0.73, 1.08, 1.30," in text
    assert "times of the campaign alone" in text
    assert "there ring was slower" in text


def test_a_scenario_that_was_not_compared_shows_the_figures_of_its_region_and_says_so(tmp_path: Path) -> None:
    region = {"reason": "at least 1.12 times as fast", "region": [1.32, 1.12, 1.6]}
    sizes = {4096: [], 2048: [1.4, 1.3]}
    gate = [kept(size, *ratios, **region) for size, ratios in sizes.items()]
    write(tmp_path, {"allreduce": RULES}, gated=True, gate=gate)
    measured(tmp_path, *(sample(size, choice, *[2.0] * 10) for size in sizes for choice in (DEFAULT, RING)))
    here, beside = (" ".join(explain(tmp_path, "allreduce", "--size", size).split()) for size in ("4KiB", "2KiB"))
    said = "allreduce 1 x 2, 2 KiB to 4 KiB: 1.32 times as fast on average, at least 1.12; 2 comparisons in 1 of its 2"
    assert said in here
    assert said in beside
    assert "not compared at this size and shape itself" in here
    assert "in 2 fresh comparisons: 1.30, 1.40" in beside
    assert "not compared at this size" not in beside


@pytest.mark.parametrize("width", [60, 80])
def test_explain_fits_a_narrow_terminal_and_cuts_no_number(tuned: Path, width: int) -> None:
    wide, narrow = (explain_call(tuned, "allreduce", 4096, width=columns) for columns in (200, width))
    assert max(map(len, narrow.splitlines())) <= width
    numbers = re.findall(r"\d+\.\d+", wide)
    assert numbers
    assert all(number in re.findall(r"\d+\.\d+", narrow) for number in numbers)


def test_explain_turns_to_the_neighbours_of_a_size_that_was_not_measured(tuned: Path) -> None:
    text = explain(tuned, "allreduce", "--size", "1KiB")
    for words in ("measured at 64 B", "measured at 4 KiB", "too few to tell"):
        assert words in text
    text = explain(tuned, "allreduce", "--size", "1KiB", "--nodes", "4")
    assert "nothing on 4 x 2; measured were 1 x 2" in text


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["bcast", "--size", "4"], "bcast was not tuned"),
        (["allreduces", "--size", "4"], "there is no collective 'allreduces'. Did you mean allreduce?"),
        (["allreduce"], "the size of the"),
        (["allreduce", "--size", "5"], "no whole number of 4-byte elements"),
        (["allreduce", "--size", "0"], "no bytes"),
        (["allreduce", "--size", "much"], "cannot read the size"),
        (["allreduce", "--size", "4", "--ppn", "1"], "a single rank"),
    ],
)
def test_explain_refuses_what_cannot_be(tuned: Path, arguments: list[str], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        RUNNER.invoke(app, ["explain", str(tuned), *arguments], catch_exceptions=False)


def test_a_proof_that_was_switched_off_is_said_to_be(tmp_path: Path) -> None:
    write(tmp_path, {"allreduce": RULES}, gated=False, gate=[])
    measured(tmp_path, sample(64, DEFAULT, 1.0))
    assert "tuned without a proof" in explain(tmp_path, "allreduce", "--size", "64")


def test_nearest_is_the_size_itself_or_its_two_neighbours() -> None:
    samples = [sample(size, DEFAULT, 1.0) for size in (4, 64, 1024)]

    def sizes(size: int) -> list[int]:
        return [s.size_bytes for s in nearest_scenarios(Scenario("allreduce", 1, 2, size), samples)]

    assert (sizes(64), sizes(100), sizes(2), sizes(4096)) == ([64], [64, 1024], [4], [1024])
    assert nearest_scenarios(Scenario("allreduce", 1, 4, 64), samples) == []


def test_the_interval_of_a_median_is_an_order_statistic() -> None:
    assert median_interval([3.0, 1.0, 2.0, 5.0, 4.0]) is None  # 2 / 2^5 is more than 5%
    assert median_interval([6.0, 3.0, 1.0, 2.0, 5.0, 4.0]) == (1.0, 6.0)
    assert median_interval(range(10)) == (1, 8)  # the textbook's ranks 2 and 9 of 10
    assert median_interval(range(100)) == (39, 60)  # ranks 40 and 61 of 100


def diff(one: Path, other: Path) -> tuple[int, str]:
    result = RUNNER.invoke(app, ["report", str(one), "--diff", str(other)], catch_exceptions=False)
    return result.exit_code, result.output


def test_equal_decisions_are_the_same_whatever_the_machine(tmp_path: Path) -> None:
    one = write(tmp_path / "a", {"allreduce": RULES})
    other = write(tmp_path / "b", {"allreduce": RULES}, replace(HERE, machine="another", mpi_version="4.3.2"))
    code, text = diff(one, other)
    assert code == 0
    assert text.endswith("The same decisions.\n")
    assert text.index("MPI version") < text.index("another") < text.index("The same")


def test_what_was_not_tuned_is_as_the_default(tmp_path: Path) -> None:
    always = RuleSet.always("bcast", SizeBasis.MESSAGE)
    code, text = diff(write(tmp_path / "a[b]", {"bcast": always}), write(tmp_path / "b", {}))
    assert code == 0
    assert f"bcast was tuned in {tmp_path / 'a[b]'} only" in text


def test_a_difference_is_told_with_its_place_and_sizes_of_other_meaning_are_not_compared(tmp_path: Path) -> None:
    always = RuleSet.always("allreduce", SizeBasis.MESSAGE)
    code, text = diff(write(tmp_path / "a", {"allreduce": RULES}), write(tmp_path / "b", {"allreduce": always}))
    assert code == 1
    row = text.splitlines()[-1].split()
    assert row == ["allreduce", "2", "2", "up", "to", "4", "KiB", "ring", "default"]
    of_totals = write(tmp_path / "c", {"allreduce": RuleSet.always("allreduce", SizeBasis.TOTAL)})
    code, text = diff(tmp_path / "b", of_totals)
    assert (code, "cannot be compared" in text) == (1, True)
