"""MPICH by thresholds: the model, the exact optimum, and the file.

`colltune export`: every format from a tuning of its library, and the refusals.
"""

import math
import random
from pathlib import Path

import pytest
from typer.testing import CliRunner

from colltune.bench.backends import open_backend
from colltune.cli.app import app
from colltune.core.errors import InputError
from colltune.core.rules import Rule, RuleSet
from colltune.core.sample import DEFAULT, Choice, Environment, Sample, Scenario, SizeBasis, Status
from colltune.emit.mpich.defaults import holds_named_trees
from colltune.emit.thresholds import CVARS_FILE, MODELS, fit, format_fits
from colltune.mpi.installation import Installation, Launcher, Library
from colltune.session.export import FORMATS, export
from colltune.store.journal import Journal
from colltune.store.tuning import JOURNAL, Tuning, save_tuning
from thresholds_file import parse_thresholds

TIMES = dict[tuple[Scenario, Choice], float]


def table(collective: str, algorithms: list[str], seed: int, ranks: tuple[int, ...] = (8, 16)) -> TIMES:
    draw = random.Random(f"{collective} {seed}")
    sizes = [4 << power for power in range(0, 18, 2)]
    return {
        (Scenario(collective, count, 1, size), Choice(name)): draw.uniform(1.0, 9.0)
        for count in ranks
        for size in sizes
        for name in algorithms
    }


ALGORITHMS = {
    "alltoall": ["brucks", "scattered", "pairwise"],
    "allgather": ["recursive_doubling", "brucks", "ring"],
    "allreduce": ["recursive_doubling", "reduce_scatter_allgather"],
    "bcast": ["binomial", "scatter_recursive_doubling_allgather", "scatter_ring_allgather"],
    "reduce": ["binomial", "reduce_scatter_gather"],
    "reduce_scatter": ["recursive_halving", "pairwise"],
}


def loss_of(collective: str, times: TIMES, values: tuple[int, ...]) -> float:
    model = MODELS[collective]
    scenarios = sorted({scenario for scenario, _ in times})
    best = {s: min(t for (other, _), t in times.items() if other == s) for s in scenarios}
    logs = [math.log(times[s, Choice(model.decide(s, values))] / best[s]) for s in scenarios]
    return math.exp(sum(logs) / len(logs))


@pytest.mark.parametrize("collective", ALGORITHMS)
@pytest.mark.parametrize("seed", range(3))
def test_no_thresholds_are_better_than_those_found(collective: str, seed: int) -> None:
    """Against many drawn ones, each measured size and its neighbours among them."""
    times = table(collective, ALGORITHMS[collective], seed)
    found = fit(collective, times)
    assert found is not None
    assert found.loss == pytest.approx(loss_of(collective, times, found.values))
    assert found.default_loss == pytest.approx(loss_of(collective, times, MODELS[collective].defaults))
    draw = random.Random(seed)
    near = [s.size_bytes * factor + step for s, _ in times for factor in (1, s.ranks) for step in (-1, 0, 1)]
    for _ in range(400):
        values = tuple(draw.choice(near) for _ in MODELS[collective].variables)
        assert found.loss <= loss_of(collective, times, values) + 1e-9


def test_the_thresholds_of_mpich_itself_stay_where_they_are_best() -> None:
    """Equal times everywhere: nothing is gained by another value."""
    times = dict.fromkeys(table("bcast", ALGORITHMS["bcast"], 1), 1.0)
    found = fit("bcast", times)
    assert found is not None
    assert found.values == MODELS["bcast"].defaults
    assert found.loss == 1.0


def test_a_call_that_was_not_measured_with_all_algorithms_says_nothing() -> None:
    times = table("reduce", ["binomial"], 1)
    assert fit("reduce", times) is None
    assert fit("gather", times) is None
    with pytest.raises(InputError, match="no thresholds of barrier"):
        fit("barrier", times)


@pytest.mark.parametrize(
    ("collective", "nodes", "size", "algorithm"),
    [
        ("alltoall", 8, 256, "brucks"),
        ("alltoall", 8, 257, "scattered"),
        ("alltoall", 7, 256, "scattered"),
        ("alltoall", 8, 32768, "scattered"),
        ("alltoall", 8, 32769, "pairwise"),
        ("allgather", 8, 65535, "recursive_doubling"),
        ("allgather", 8, 65536, "ring"),
        ("allgather", 10, 8191, "brucks"),
        ("allgather", 10, 8192, "ring"),
        ("allreduce", 4, 2048, "recursive_doubling"),
        ("allreduce", 4, 2052, "reduce_scatter_allgather"),
        ("bcast", 8, 12287, "binomial"),
        ("bcast", 8, 12288, "scatter_recursive_doubling_allgather"),
        ("bcast", 9, 12288, "scatter_ring_allgather"),
        ("bcast", 7, 1 << 20, "binomial"),
        ("bcast", 8, 524288, "scatter_ring_allgather"),
        ("reduce", 4, 2048, "binomial"),
        ("reduce", 4, 2052, "reduce_scatter_gather"),
        ("reduce_scatter", 4, 524284, "recursive_halving"),
        ("reduce_scatter", 4, 524288, "pairwise"),
    ],
)
def test_the_model_decides_as_mpich_3_does(collective: str, nodes: int, size: int, algorithm: str) -> None:
    model = MODELS[collective]
    assert model.decide(Scenario(collective, nodes, 1, size), model.defaults) == algorithm


def test_the_file_reads_back_and_has_crays_names() -> None:
    fits = [fit(name, table(name, algorithms, 2)) for name, algorithms in ALGORITHMS.items()]
    data = format_fits([found for found in fits if found is not None])
    assert parse_thresholds(data) == {found.collective: found.values for found in fits if found is not None}
    text = data.decode()
    assert f"export MPICH_REDUCE_SHORT_MSG={parse_thresholds(data)['reduce'][0]}" in text


def environment(mpi: str, version: str) -> Environment:
    return Environment(mpi, version, "0" * 64, "a machine", 1, 8, "single", {})


def two_steps(collective: str, basis: SizeBasis, low: Choice, high: Choice = DEFAULT) -> RuleSet:
    """``low`` to 4 KiB, then ``high``."""
    return RuleSet(collective, basis, (Rule(None, None, 4096, low), Rule(None, None, None, high)))


def saved(place: Path, where: Environment, rules: RuleSet, **files: bytes) -> Path:
    written = {f"{where.mpi}/{name}": data for name, data in files.items()}
    save_tuning(place, Tuning(where, {rules.collective: rules}, written, {}))
    return place


def test_an_mpich_with_named_trees_is_not_measured(tmp_path: Path) -> None:
    """It reads the variables that choose an algorithm once: every candidate would be the default, without a word."""
    library = tmp_path / "libmpi.so"
    library.write_bytes(b'\x7fELF\0{ "name=main": {}}\0')
    mpich = Installation(
        Library.MPICH, "5.0.0b1", Launcher.HYDRA, tmp_path / "mpiexec", tmp_path / "mpicc", library, ""
    )
    with pytest.raises(InputError, match="side by side"):
        open_backend(mpich)
    assert not holds_named_trees(tmp_path / "none")


def measured(place: Path) -> Path:
    where = environment("mpich", "5.0.2")
    saved(place, where, two_steps("allreduce", SizeBasis.MESSAGE, Choice("recursive_doubling")))
    with Journal.create(place / JOURNAL, where) as journal:
        for size in (64, 1024, 16384, 262144):
            for name, slope in (("recursive_doubling", 2e-9), ("reduce_scatter_allgather", 1e-9)):
                time_s = 1e-6 * (1 + (name != "recursive_doubling")) + slope * size
                journal.append([Sample(Scenario("allreduce", 1, 8, size), Choice(name), Status.OK, (time_s,) * 3)])
    return place


def test_cvars_come_from_the_journal_with_what_they_lose(tmp_path: Path) -> None:
    exported = export(measured(tmp_path), "cvars")
    (short,) = parse_thresholds(exported.files[CVARS_FILE])["allreduce"]
    assert 64 <= short < 1024  # they cross at 1,000 bytes
    assert any("allreduce: 1.000 times the best of 4 measured calls" in remark for remark in exported.remarks)


@pytest.mark.parametrize("target", FORMATS)
def test_times_of_another_library_are_refused_with_the_reason(tmp_path: Path, target: str) -> None:
    own = {"cvars": "mpich"}[target]
    for other in {"openmpi", "intelmpi"}:
        saved(tmp_path / other, environment(other, "5.0.2"), two_steps("bcast", SizeBasis.MESSAGE, Choice("binomial")))
        with pytest.raises(InputError, match=f"measured under {other} 5.0.2, and --to {target} needs times of {own}"):
            export(tmp_path / other, target)


def test_the_command_writes_beside_the_tuning_or_where_it_is_told_to(tmp_path: Path) -> None:
    measured(tmp_path)
    result = CliRunner().invoke(app, ["export", str(tmp_path), "--to", "cvars"])
    assert (result.exit_code, result.output.splitlines()[0]) == (0, f"{tmp_path}/export/cvars/{CVARS_FILE}")
    CliRunner().invoke(app, ["export", str(tmp_path), "--to", "cvars", "--out", str(tmp_path / "other")])
    assert (tmp_path / "other" / CVARS_FILE).is_file()
    result = CliRunner().invoke(app, ["export", str(tmp_path), "--to", "nothing"])
    assert isinstance(result.exception, InputError)
