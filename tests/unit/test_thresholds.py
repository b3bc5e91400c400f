"""MPICH by thresholds: the model, the exact optimum, and the file.

`colltune export`: every format from a tuning of its library, and the refusals.
"""

import math
import os
import random
import subprocess
from pathlib import Path

import pytest

from colltune.bench.backends import open_backend
from colltune.core.errors import InputError
from colltune.core.rules import Rule, RuleSet
from colltune.core.sample import DEFAULT, Choice, Environment, Sample, Scenario, SizeBasis, Status
from colltune.emit.thresholds import MODELS, fit, format_fits, parse_thresholds, thresholds_file
from colltune.mpi.installation import Installation, Launcher, Library
from colltune.session.export import export, export_to
from colltune.store.journal import Journal
from colltune.store.tuning import JOURNAL, Tuning, save_tuning
from commands import colltune, shell_script

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
    fits = [found for name, own in ALGORITHMS.items() if (found := fit(name, table(name, own, 2))) is not None]
    read = parse_thresholds(format_fits(fits), thresholds_file())
    for found in fits:
        model = MODELS[found.collective]
        assert tuple(int(read[f"MPIR_CVAR_{name}"]) for name in model.variables) == found.values
    assert read["MPICH_REDUCE_SHORT_MSG"] == read["MPIR_CVAR_REDUCE_SHORT_MSG_SIZE"]


@pytest.mark.parametrize(
    "line", ["export PATH=1", "export MPIR_CVAR_BCAST_SHORT_MSG_SIZE=9999999999", "MPICH_REDUCE_SHORT_MSG=1", "rm -r x"]
)
def test_a_file_that_sets_anything_else_is_refused(line: str) -> None:
    with pytest.raises(InputError, match=r"x\.env, line 2: .* sets no threshold"):
        parse_thresholds(f"# of somebody\n{line}\n".encode(), "x.env")


def environment(mpi: str) -> Environment:
    return Environment(mpi, "5.0.2", "0" * 64, "a machine", 1, 8, "single", {})


def saved(place: Path, where: Environment, collective: str, choice: Choice) -> None:
    """A tuning whose rules say ``choice`` to 4 KiB, and then the default."""
    rules = (Rule(None, None, 4096, choice), Rule(None, None, None, DEFAULT))
    save_tuning(place, Tuning(where, {collective: RuleSet(collective, SizeBasis.MESSAGE, rules)}, {}, {}))


def test_an_mpich_with_named_trees_is_not_measured(tmp_path: Path) -> None:
    """It reads the variables that choose an algorithm once: every candidate would be the default, without a word."""
    library = tmp_path / "libmpi.so"
    library.write_bytes(b'\x7fELF\0{ "name=main": {}}\0')
    mpich = Installation(
        Library.MPICH, "5.0.0b1", Launcher.HYDRA, tmp_path / "mpiexec", tmp_path / "mpicc", library, ""
    )
    with pytest.raises(InputError, match="0 general"):
        open_backend(mpich)


SHORT = "MPIR_CVAR_ALLREDUCE_SHORT_MSG_SIZE"


@pytest.fixture
def measured(tmp_path: Path) -> Path:
    """The two algorithms cross at 1,000 bytes on 8 processes, at 100,000 on 16, and never on 32."""
    where = environment("mpich")
    saved(tmp_path, where, "allreduce", Choice("recursive_doubling"))
    with Journal.create(tmp_path / JOURNAL, where) as journal:
        for nodes, crossing in ((1, 1e3), (2, 1e5), (4, 1e12)):
            for size in (64, 1024, 16384, 262144):
                times_s = {"recursive_doubling": 2e-9 * size, "reduce_scatter_allgather": 1e-9 * (size + crossing)}
                for name, time_s in times_s.items():
                    scenario = Scenario("allreduce", nodes, 8, size)
                    journal.append([Sample(scenario, Choice(name), Status.OK, (time_s,) * 3)])
    return tmp_path


def short_of(place: Path, nodes: int, ppn: int) -> tuple[int, str]:
    exported = export(place, "cvars", nodes, ppn)
    [(name, data)] = exported.files.items()
    assert name == thresholds_file(nodes * ppn)
    return int(parse_thresholds(data, name)[SHORT]), exported.remarks[0]


def test_cvars_come_from_the_journal_for_each_number_of_processes(measured: Path) -> None:
    few, told = short_of(measured, 1, 8)
    assert 64 <= few < 1024
    assert "1.000 times the best of 4 measured calls" in told
    assert told.endswith("8 processes: recursive_doubling to 64 B, reduce_scatter_allgather to 256 KiB")
    more, _ = short_of(measured, 2, 8)
    assert 16384 <= more < 262144
    none, told = short_of(measured, 4, 8)
    assert none >= 262144
    assert told.endswith("32 processes: no crossing, recursive_doubling from 64 B to 256 KiB")
    assert short_of(measured, 8, 2)[0] == more  # as many processes, and no such shape
    assert short_of(measured, 0, 0)[0] >= 1024
    with pytest.raises(InputError, match="on another shape of 12 processes; measured: 8, 16, 32"):
        export(measured, "cvars", 3, 4)
    with pytest.raises(InputError, match="both --nodes and --ppn"):
        export(measured, "cvars", nodes=2)


def test_run_takes_the_thresholds_of_the_jobs_number_of_processes(measured: Path) -> None:
    for nodes in (1, 2):
        place, _ = export_to(measured, "cvars", None, nodes, 8)
    launcher = shell_script(measured / "mpiexec", f"echo value ${{{SHORT}}} and ${{HOME}}")

    def ran(ranks: int, **variables: str) -> subprocess.CompletedProcess[str]:
        alone = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM_", "PBS_", "FLUX_"))}
        words = ("run", str(place), "--", str(launcher), "-n", str(ranks), "./app")
        return colltune(*words, environ={**alone, **variables})

    for nodes, ranks in ((1, 8), (2, 16)):
        done = ran(ranks)
        assert done.stdout == f"value {short_of(measured, nodes, 8)[0]} and {os.environ['HOME']}\n"
        assert f"{thresholds_file(ranks)} for {ranks} processes" in done.stderr
    assert ran(8, **{SHORT: "7"}).stdout.startswith("value 7 ")
    refused = ran(4)
    assert refused.returncode == 2
    assert "has thresholds for 8, 16 processes, and this job has 4 processes" in refused.stderr
    export_to(measured, "cvars")
    assert f"{thresholds_file()} for 4 processes" in ran(4).stderr


@pytest.mark.parametrize("other", ["openmpi", "intelmpi"])
def test_times_of_another_library_are_refused_with_the_reason(tmp_path: Path, other: str) -> None:
    saved(tmp_path, environment(other), "bcast", Choice("binomial"))
    with pytest.raises(InputError, match=f"measured under {other} 5.0.2, and --to cvars needs times of mpich"):
        export(tmp_path, "cvars")


def test_the_command_writes_beside_the_tuning_or_where_it_is_told_to(measured: Path) -> None:
    words = ("export", str(measured), "--to")
    told = colltune(*words, "cvars", code=0).stdout
    assert told.splitlines()[0] == f"{measured}/export/cvars/{thresholds_file()}"
    colltune(*words, "cvars", "--out", str(measured / "other"), code=0)
    assert (measured / "other" / thresholds_file()).is_file()
    assert colltune(*words, "nothing").returncode == 2
