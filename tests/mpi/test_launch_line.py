"""The user's own launch line in every launch: stand-ins that take options as srun, aprun, PALS and Flux do."""

import os
import shlex
import sys
from pathlib import Path

import pytest
from jobs import colltune

from colltune.bench.workbench import MachineOptions, open_workbench
from colltune.mpi.installation import Installation
from colltune.store.tuning import load_tuning
from compiled import program

# Writes its arguments beside itself, and starts what is behind its options by the real launcher.
STAND_IN = """#!{python}
import os, pathlib, re, sys
words = sys.argv[1:]
if words == ["--version"]:
    sys.exit("a stand-in")
with open(pathlib.Path(sys.argv[0]).with_suffix(".log"), "a") as log:
    print(*words, file=log)
if pathlib.Path(sys.argv[0]).name == "flux":
    assert words.pop(0) == "run"
ranks = "1"
while words[0].startswith("-"):
    word = words.pop(0)
    name, equals, value = word.partition("=")
    if attached := re.fullmatch(r"-([nN])(\\d+)", word):
        name, value = "-" + attached[1], attached[2]
    elif not equals and not words[0].startswith("-") and word not in ("--label", "--unbuffered"):
        value = words.pop(0)
    if name in ("-n", "--ntasks"):
        ranks = value
os.execv({mpiexec!r}, [{mpiexec!r}, "-n", ranks, *words])
"""
WRAPPER = '#!/bin/sh\necho "wrapped $@" >> "$0.log"\nexec "$@"\n'
# By name: launcher, its options, and which of them bind.
LINES = {
    "srun": ("srun", "--cpu-bind=cores --mpi=pmix -N1 -n 2", ("--cpu-bind=cores",)),
    "mpiexec": ("", "-n 2 -bind-to core:1", ("--bind-to=core:1",)),
    "aprun": ("aprun", "-n 2 -N 2 -cc depth -d 1", ("--cc=depth", "-d=1")),
    "pals": ("mpirun", "-n 2 --ppn 2 --cpu-bind depth --depth 1", ("--cpu-bind=depth", "--depth=1")),
    "flux": ("flux", "run -N1 -n2 -o cpu-affinity=per-task", ("-o=cpu-affinity=per-task",)),
    "ntasks": ("srun", "--label --ntasks=2 --nodes=1 --cpu_bind rank", ("--cpu-bind=rank",)),
}


def executable(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture(params=LINES)
def line(request: pytest.FixtureRequest, mpi: Installation, tmp_path: Path) -> tuple[list[str], Path, Path]:
    """A launch line with a wrapper, the wrapper, and the file in which the stand-in notes what it was given."""
    name, options, _ = LINES[request.param]
    launcher = mpi.mpiexec
    if name:
        launcher = executable(tmp_path / name, STAND_IN.format(python=sys.executable, mpiexec=str(mpi.mpiexec)))
    wrapper = executable(tmp_path / "wrapper.sh", WRAPPER)
    return [str(launcher), *options.split(), str(wrapper)], wrapper, launcher.with_suffix(".log")


def test_the_agent_takes_the_place_of_the_program(
    mpi: Installation, line: tuple[list[str], Path, Path], request: pytest.FixtureRequest
) -> None:
    words, wrapper, log = line
    app = program(mpi.mpicc, "who_and_where.c")
    environ = {**os.environ, "PATH": f"{mpi.mpiexec.parent}:{os.environ['PATH']}"}
    bench = open_workbench(MachineOptions(launch_line=shlex.join([*words, str(app), "its", "arguments"])), environ)
    assert (bench.nodes, bench.ppn, bench.environment.mpi) == (1, 2, "mpich")
    assert bench.environment.launch_line == shlex.join(words)
    assert bench.line.binding == (*LINES[request.node.callspec.params["line"]][2], str(wrapper))
    bench.output_under({"MPIR_CVAR_BCAST_INTRA_ALGORITHM": "binomial"})
    agent = f"{bench.agent} --thread-level single"
    assert wrapper.with_suffix(".sh.log").read_text().splitlines() == [f"wrapped {agent}"] * 2
    if log.exists():
        started = log.read_text().splitlines()[-1]
        assert all(option in started for option in shlex.join(words[1:]).split())
        assert started.endswith(f"{wrapper} {agent}")


@pytest.mark.parametrize("line", ["srun"], indirect=True)
def test_a_line_is_the_same_in_tune_verify_and_run(
    mpi: Installation, line: tuple[list[str], Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words, wrapper, log = line
    monkeypatch.setenv("PATH", f"{mpi.mpiexec.parent}:{os.environ['PATH']}")
    tuned, app = str(tmp_path / "tuned"), str(program(mpi.mpicc, "who_and_where.c"))
    done = colltune("tune", "bcast", "--sizes", "8", "--budget", "40s", "--out", tuned, "--", *words, app, code=0)
    assert "every launch is made by: " in " ".join(done.stdout.split())
    assert load_tuning(Path(tuned)).environment.launch_line == shlex.join(words)
    launches = log.read_text().splitlines()
    assert len(launches) > 1
    assert all("--cpu-bind=cores" in launch and str(wrapper) in launch for launch in launches)
    refused = colltune("verify", tuned, "--results", "--short", code=2)
    assert "tuned under a launch line of its own" in refused.stderr
    colltune("verify", tuned, "--results", "--short", "--", *words, code=0)
    same = colltune("run", tuned, "--", *words, app)
    assert "around the program" not in same.stderr
    other = colltune("run", tuned, "--", words[0], "--cpu-bind=threads", *words[2:], app)
    assert (
        f"tuned with --cpu-bind=cores {wrapper} around the program, and this line has --cpu-bind=threads"
        in other.stderr
    )
