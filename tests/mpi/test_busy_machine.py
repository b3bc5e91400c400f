"""Beside a spinning process nothing is proven and nothing judged, and everybody says so: on both MPIs."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import repeat, takewhile
from pathlib import Path
from typing import Any

import pytest
from jobs import AS_ROOT

from colltune.bench import workbench
from colltune.bench.workbench import MachineOptions, open_workbench
from colltune.core.disturbance import VARIABLE, Calmness, Disturbance
from colltune.core.sample import DEFAULT, Scenario, Status
from colltune.core.space import Point
from colltune.machine.compile import source_directory
from colltune.measure.contract import Effort
from colltune.measure.live import LiveSource
from colltune.mpi.installation import Installation
from colltune.session.doctor import diagnose
from commands import Done, run_to_end
from compiled import program

POINT = Point(Scenario("bcast", 1, 2, 1024), (DEFAULT,))


@pytest.fixture
def spinners() -> Iterator[None]:
    """Two for each processor, so that no rank has one for itself."""
    count = 2 * len(os.sched_getaffinity(0))
    started = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    yield
    for process in started:
        process.send_signal(signal.SIGKILL)
        process.wait()


def environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != VARIABLE}


def colltune(*arguments: object) -> Done:
    command = [sys.executable, "-m", "colltune", *map(str, arguments)]
    return run_to_end(command, env=environment(), timeout=600, check=True)


@pytest.mark.usefixtures("spinners")
def test_the_agent_sees_spinning_processes(either: Installation) -> None:
    bench = open_workbench(MachineOptions(mpiexec=str(either.mpiexec), ppn=2), environment())
    bench.watch.patience_s = 0.0
    source, until_s = bench.launch(seed=1), bench.now_s() + 3.0
    in_time = takewhile(lambda _point: bench.now_s() < until_s, repeat(POINT))
    try:
        samples = [sample for _, some in source.measure(in_time, Effort()) for sample in some]
    finally:
        source.close()
    disturbed = [sample for sample in samples if sample.status is Status.DISTURBED]
    assert disturbed
    assert all(sample.times_s and sample.load is not None for sample in disturbed)
    found = bench.watch.tally.total()
    assert found.is_busy
    assert "nothing is judged" in found.sentence


@pytest.mark.usefixtures("spinners")
def test_a_launch_that_ends_at_once_is_judged_too(either: Installation) -> None:
    bench = open_workbench(MachineOptions(mpiexec=str(either.mpiexec), ppn=2), environment())
    source = bench.launch(seed=1)
    source.start()
    source.close()
    assert source.disturbed
    assert bench.watch.tally.total().is_busy


def test_no_rank_of_a_short_launch_ends_before_what_it_used_is_read(either: Installation) -> None:
    """What an ended process used is known to nobody, and looked like that of other programs: 30% in 0.1 s."""
    load = source_directory("load")
    sources = [load / name for name in ("watch.c", "load.c", "load_files.c")]
    asking = program(either.mpicc, "last_look.c", f"-I{load}", *sources)
    command = [str(either.mpiexec), "-n", "2", asking]
    done = run_to_end(command, env=environment() | AS_ROOT, timeout=120, check=True)
    # The window is 0.1 s, from the start of the watch on.
    assert float(done.stdout) > 0.05


@pytest.mark.usefixtures("spinners")
def test_a_tuning_beside_them_proves_nothing_and_says_why(either: Installation, tmp_path: Path) -> None:
    words = ["tune", "bcast", "--max-size", "64", "--ppn", "2", "--budget", "10s", "--mpiexec", either.mpiexec]
    done = colltune(*words, "--out", tmp_path / "tuned")
    summary = json.loads((tmp_path / "tuned" / "tuning.json").read_text())["summary"]
    assert "kept" not in {decision["verdict"] for decision in summary["gate"]}
    sentence = Disturbance(**summary["disturbance"]).sentence
    assert "other programs" in sentence
    assert "not known" not in sentence
    said = " ".join(done.stdout.split())
    assert sentence in said, done.stdout
    assert "next       the same command again, when no other program uses these processors" in done.stdout


@pytest.mark.usefixtures("spinners")
def test_doctor_beside_them_says_what_to_do_and_the_command_for_afterwards(either: Installation) -> None:
    done = colltune("doctor", "--ppn", "2", "--mpiexec", either.mpiexec)
    told = dict(line.split(maxsplit=1) for line in done.stdout.replace("not ready", "not_ready").splitlines())
    assert "end them, or wait" in told["not_ready"]
    assert told["afterwards"].partition(" ")[2].startswith(f"tune bcast allreduce --mpiexec {either.mpiexec} --ppn 2")


def test_doctor_judges_the_machine_and_asks_the_library_nothing_while_it_measures(
    either: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A question is a process of its own, which the processors would show as somebody else's."""
    order: list[str] = []
    for owner, name in ((workbench, "resolve_settings"), (LiveSource, "start"), (LiveSource, "close")):
        called = getattr(owner, name)

        def noted(*given: Any, name: str = name, called: Callable[..., Any] = called) -> Any:
            order.append(name)
            return called(*given)

        monkeypatch.setattr(owner, name, noted)
    found = diagnose(MachineOptions(mpiexec=str(either.mpiexec), ppn=2), environment())
    assert "resolve_settings" not in order[order.index("start") :]
    assert "resolve_settings" in order
    assert found.disturbance.state is not Calmness.UNKNOWN
