"""A proposal for MPICH from two tunings written by hand: the library reads it, and every collective is right."""

import os
import random
from pathlib import Path

import pytest
from jobs import QUIET

from colltune.bench.backends import open_backend
from colltune.catalog.named_files import FILES
from colltune.core.choice import DEFAULT, Choice
from colltune.core.proven import Decision, Verdict
from colltune.core.sample import Environment, Sample, Status
from colltune.core.scenario import Scenario
from colltune.core.summary import Summary
from colltune.machine.compile import build
from colltune.mpi.installation import Installation
from colltune.mpi.reads import Asked, refusal_of
from colltune.prove.replay.conformance import PROGRAM, replay_arguments, run_conformance
from colltune.session.lint import lint_selection
from colltune.session.site.propose import DIFF, propose
from colltune.store.journal import Journal
from colltune.store.tuning import JOURNAL, Tuning, save_tuning, write_files

pytestmark = pytest.mark.mpi
COLLECTIVES = ("allgather", "allreduce", "alltoall", "bcast", "reduce", "reduce_scatter")
SIZES = (4, 64, 1024, 16384)


def site(place: Path, mpi: Installation, seed: int) -> dict[Scenario, tuple[Verdict, Choice]]:
    """Writes a tuning with a decision on each call, and returns these; every fourth is refused."""
    backend = open_backend(mpi)
    facts = {"mpiexec": str(mpi.mpiexec), "libmpi": str(mpi.libmpi)}
    where = Environment("mpich", mpi.version, mpi.build, "a machine", 1, 4, "single", facts)
    same, own = random.Random(7), random.Random(seed)
    said = {}
    for scenario in (Scenario(name, 1, ranks, size) for name in COLLECTIVES for ranks in (2, 3, 4) for size in SIZES):
        choice = same.choice(backend.catalogue.legal(scenario)[1:])
        said[scenario] = (Verdict.REFUSED if own.random() < 0.25 else Verdict.KEPT, choice)
    ratios = {Verdict.KEPT: 1.5, Verdict.REFUSED: 0.8}
    decisions = tuple(Decision(one, choice, what, (ratios[what],) * 9, "") for one, (what, choice) in said.items())
    place.mkdir()
    save_tuning(place, Tuning(where, {}, {}, {}, Summary(decisions=decisions)))
    with Journal.create(place / JOURNAL, where) as journal:
        journal.append([Sample(Scenario("bcast", 1, 4, 8), DEFAULT, Status.OK, (1e-6,))])
    return said


def test_mpich_reads_what_is_proposed_and_every_collective_is_right(mpi: Installation, tmp_path: Path) -> None:
    said = [site(tmp_path / f"site-{seed}", mpi, seed) for seed in (1, 2)]
    found = propose([tmp_path / "site-1", tmp_path / "site-2"], "mpich", str(mpi.mpiexec))
    out = tmp_path / "out"
    write_files(out, found.files)
    variables = {k: str(out / name) for k, name in FILES["mpich"].items() if name in found.files}
    assert lint_selection([Path(name) for name in variables.values()], {}, mpi_version=mpi.version).errors == 0

    emitter = open_backend(mpi).emitter
    vetoed = [one for one in said[0] if Verdict.REFUSED in (said[0][one][0], said[1][one][0])]
    assert vetoed
    for one in said[0]:
        decided = emitter.parse(found.files, one.collective).evaluate(one)
        assert decided == found.choices.get(one, DEFAULT), one
        assert decided == DEFAULT or one not in vetoed, one
    assert len(found.choices) > 20
    changed = found.files[DIFF].decode()
    assert changed.startswith("--- default/mpich-coll.json\n+++ proposed/mpich-coll.json\n")
    everything = b"".join(found.files.values()).decode()
    assert str(tmp_path) not in everything
    assert mpi.build not in everything

    for name in variables:
        asked = Asked([name], files={name: variables[name]})
        assert refusal_of(mpi.libmpi, mpi.build, asked, os.environ) == ("", "")
    program = build(mpi.mpicc, PROGRAM, tmp_path / "cache")
    environment = {**os.environ, **variables, **QUIET}
    arguments = replay_arguments([2, 3, 4], short=True, collectives=COLLECTIVES)
    result = run_conformance([str(mpi.mpiexec), "-n", "4", str(program), *arguments], environment, 120.0)
    assert result.passed, result.message
