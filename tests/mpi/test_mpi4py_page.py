"""What the page on mpi4py says, by its own programs: algorithms chosen from Python decide, on both MPIs."""

import os
import re
import sys
from pathlib import Path

import pytest
from jobs import ON_EITHER, crowded, for_mpi4py

from colltune.bench.workbench import MachineOptions, open_workbench
from colltune.core.rules import Rule, RuleSet
from colltune.core.sample import DEFAULT, Choice, SizeBasis
from colltune.mpi.installation import Installation, Library
from colltune.store.tuning import save_tuning
from commands import run_to_end

pytest.importorskip("mpi4py", reason="mpi4py is not installed in this environment")

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "mpi4py.md"
IN_FORCE, CHOOSE = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
RING = {
    Library.MPICH: ["MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM=ring"],
    Library.OPENMPI: ["OMPI_MCA_coll_tuned_use_dynamic_rules=1", "OMPI_MCA_coll_tuned_allreduce_algorithm=4"],
}


def printed(mpi: Installation, program: str, place: Path, *words: str) -> list[float]:
    (place / "choose.py").write_text(program, encoding="utf-8")
    around = {**os.environ, **ON_EITHER, **for_mpi4py(mpi), "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [str(mpi.mpiexec), *crowded(mpi), "-n", "4", sys.executable, "choose.py", *words]
    done = run_to_end(command, cwd=place, env=around, check=True)
    return [float(word) for word in done.stdout.strip().strip("[]").split(",")]


def test_a_variable_that_is_set_before_mpi_begins_chooses_the_algorithm(either: Installation, tmp_path: Path) -> None:
    assert printed(either, CHOOSE, tmp_path) == [0.0] * 8
    assert 1.0 in printed(either, CHOOSE, tmp_path, *RING[either.library])


def test_a_tuning_that_is_put_in_force_inside_the_program_decides(either: Installation, tmp_path: Path) -> None:
    machine = MachineOptions(mpiexec=str(either.mpiexec), nodes=1, ppn=4, thread_level="multiple")
    bench = open_workbench(machine, os.environ)
    rest = (Rule(4, 4, None, DEFAULT), Rule(4, None, None, DEFAULT), Rule(None, None, None, DEFAULT))
    # Of Open MPI the ring is no candidate: a rule cannot ask whether the operation commutes.
    choice = Choice("nonoverlapping" if either.library is Library.OPENMPI else "ring")
    rule_set = RuleSet("allreduce", SizeBasis.MESSAGE, (Rule(4, 4, 4096, choice), *rest))
    save_tuning(tmp_path / "tuned-python", bench.tuning({"allreduce": bench.expressible(rule_set)}))
    assert printed(either, IN_FORCE + CHOOSE, tmp_path) != [0.0] * 8
