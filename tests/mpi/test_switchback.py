"""The experiment of `run --measure` on the real libraries: all ranks run the same calls by default, and rightly."""

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from live_jobs import Live
from test_live_selector import prefer

from colltune.core.rules import RuleSet
from colltune.emit.live_rules import live_basis
from colltune.prove.replay.conformance import replay_arguments
from compiled import program, shared


@dataclass
class Measured:
    """An MPI with the live selector, the spy preloaded behind it, a program, and where the experiment writes."""

    mpi: Live
    spy: Path
    program: Path
    out: Path

    def rules(self) -> bytes:
        """A choice for every call of three collectives."""
        catalogue, sets = self.mpi.bench.catalogue, []
        for name in ("bcast", "allreduce", "allgather"):
            sets.append(RuleSet.always(name, live_basis(catalogue, name), catalogue.choices(name)[1]))
        return self.mpi.emit(*sets)

    def run(self, share: int, *arguments: str, ranks: int = 4, **variables: str) -> subprocess.CompletedProcess[str]:
        variables = {"COLLTUNE_MEASURE": str(self.out), "COLLTUNE_MEASURE_SHARE": str(share), **variables}
        return self.mpi.run(ranks, [str(self.program), *arguments], self.rules(), self.spy, **variables)

    def parts(self) -> list[Path]:
        return sorted(self.out.parent.glob(self.out.name + ".*"))


def measured_in(mpi: Live, source: str) -> Measured:
    spy = shared("switchback_spy.c", compiler=mpi.bench.installation.mpicc)
    made = Path(shutil.copy(program(mpi.bench.installation.mpicc, source, "-rdynamic"), mpi.directory / "program"))
    return Measured(mpi, spy, made, mpi.directory / "measure")


@pytest.fixture
def mixed(on_either: Live) -> Measured:
    return measured_in(on_either, "switchback_calls.c")


@pytest.mark.parametrize(("seed", "share"), [(1, 50), (2, 20)])
def test_all_ranks_run_the_same_calls_by_default(mixed: Measured, seed: int, share: int) -> None:
    """Communicators that come and go, three collectives and sizes, ranks that are late at random."""
    done = mixed.run(share, str(seed), "2000")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "wrong=0" in done.stdout
    same, defaults = (int(word.partition("=")[2]) for word in done.stdout.splitlines()[-1].split())
    assert same == 1
    assert defaults > 5
    text = "".join(path.read_text() for path in mixed.parts())
    assert text.count("\npair ") > 5
    assert text.count("\nend ") == len(mixed.parts()) >= 1


def test_every_legal_call_works_in_the_experiment(mixed: Measured) -> None:
    """All forms of calls, on communicators of all kinds; most live for too few calls to be compared."""
    rule_sets = prefer(mixed.mpi, 1)
    arguments = replay_arguments([2, 3], rule_sets, short=True, max_bytes=20_000)
    told = {"COLLTUNE_MEASURE": str(mixed.out), "COLLTUNE_MEASURE_SHARE": "50"}
    mixed.mpi.replay(3, mixed.mpi.emit(*rule_sets), arguments, **told)
    text = "".join(path.read_text() for path in mixed.parts())
    assert {f"function={rules.collective} " in text for rules in rule_sets if rules.collective != "allgatherv"} == {
        True
    }
