"""What goes wrong beside a tuning: a store that cannot be read, settings of the user's own, a terminal that closes."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from memory_bench import MemoryLibrary
from test_site_memory import small

from colltune.cli.stopping import ended_by_signals, heed_scheduler
from colltune.core.rules import Rule, RuleSet
from colltune.core.sample import DEFAULT, Choice, Environment, SizeBasis
from colltune.core.stop import StopRequest
from colltune.machine.process import RunningProgram
from colltune.mpi.launch_line import job_shape
from colltune.mpi.libraries import RECORDS
from colltune.mpi.mpich_settings import overriding
from colltune.session.own_settings import settings_line
from colltune.session.site.state import command_text
from colltune.session.tuning.options import Listener, TuneOptions
from colltune.session.tuning.tune import tune
from colltune.site.store import INBOX, MARK, SiteStore
from colltune.store.tuning import Tuning, load_tuning, save_tuning
from commands import colltune, run_to_end
from lint_trees import complete_file

ROOT = Path(__file__).parents[2]
FILE = "MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE"
OWN = "MPICH_BCAST_INTRA_ALGORITHM"
SLURM = {"SLURM_JOB_NODELIST": "n[1-4]", "SLURM_TASKS_PER_NODE": "8(x4)"}


@pytest.mark.parametrize("way", ["damaged", "no inbox", "whole"])
def test_a_store_that_cannot_be_read_costs_a_warning_and_not_the_tuning(
    way: str, store: SiteStore, tmp_path: Path
) -> None:
    said: list[str] = []
    if way == "damaged":
        (store.directory / MARK).write_text("{")
    elif way == "no inbox":
        (store.directory / INBOX).rmdir()
    options = TuneOptions(["bcast"], 1 << 12, 1 << 20, 300.0, seed=1, store=store.directory)
    tune(small(MemoryLibrary), options, tmp_path / "tuned", Listener(note=said.append))
    assert load_tuning(tmp_path / "tuned").rule_sets.keys() == {"bcast"}
    warned = [text for text in said if text.startswith("warning: the store")]
    assert [text.startswith("warning: the store is not used") for text in warned] == [True] * (way != "whole")


@pytest.mark.parametrize(
    ("environ", "others", "line"),
    [
        ({"HOME": "/"}, {}, ""),
        ({"MPIR_CVAR_BCAST_INTRA_ALGORITHM": "auto"}, {}, ""),
        ({"MPIR_CVAR_BCAST_INTRA_ALGORITHM": "binomial"}, {}, "your own MPIR_CVAR_BCAST_INTRA_ALGORITHM=binomial goes"),
        ({FILE: "/own"}, {FILE: "/tuned"}, f"your own {FILE} gives way to the tuning's"),
        ({FILE: "/tuned"}, {FILE: "/tuned"}, ""),
        ({"LD_PRELOAD": "/own.so"}, {"LD_PRELOAD": "/own.so:/ours.so"}, ""),
        ({"LD_PRELOAD": "/own.so"}, {"LD_PRELOAD": "/ours.so"}, ""),  # what the selector adds stands behind it
        ({FILE: "/own"}, {FILE: None}, f"your own {FILE} is left out while this measures"),
    ],
)
def test_settings_of_the_users_own_are_told(environ: dict[str, str], others: dict[str, str | None], line: str) -> None:
    found = settings_line(environ, ["bcast"], others)
    assert found.startswith(line)
    assert bool(found) == bool(line)


@pytest.mark.parametrize(
    ("environment", "site", "found"),
    [
        ({}, "", ""),
        ({"MPIR_CVAR_BCAST_INTRA_ALGORITHM": "binomial"}, "", "MPIR_CVAR_BCAST_INTRA_ALGORITHM=binomial"),
        ({OWN: "binomial"}, "", f"{OWN}=binomial"),
        ({"MPIR_PARAM_BCAST_COMPOSITION": "1"}, "", "MPIR_PARAM_BCAST_COMPOSITION=1"),
        # Of two names MPIR_CVAR counts.
        ({OWN: "ring", "MPIR_CVAR_BCAST_INTRA_ALGORITHM": "auto"}, "", ""),
        ({"MPIR_CVAR_REDUCE_INTRA_ALGORITHM": "binomial", "MPIR_CVAR_BCAST_DEVICE_COLLECTIVE": "yes"}, "", ""),
        ({"MPIR_CVAR_DEVICE_COLLECTIVES": "all"}, "", "MPIR_CVAR_DEVICE_COLLECTIVES=all"),
        ({}, f"# ours\n\n{OWN}=ring\nno setting\n", f"{OWN}=ring (of SITE)"),
        # The site's file gives way to the environment, unless it says otherwise.
        ({OWN: "auto"}, f"{OWN}=ring\n", ""),
        ({OWN: "auto"}, f"{OWN}:force=ring\n", f"{OWN}=ring (of SITE)"),
        ({}, f"{FILE}=/a.json\n", ""),
        ({}, f"{FILE}:force=/a.json\n", f"{FILE}=/a.json (of SITE)"),
    ],
)
def test_what_goes_before_the_rules(environment: dict[str, str], site: str, found: str, tmp_path: Path) -> None:
    path = tmp_path / "mpich.conf"
    path.write_text(site)
    assert overriding(environment, ["bcast"], path) == [found.replace("SITE", str(path))][: bool(found)]
    assert overriding(environment, [], path) == []


def test_a_file_that_is_no_text_sets_nothing(tmp_path: Path) -> None:
    (tmp_path / "mpich.conf").write_bytes(b"\xff\xfeA=1\n")
    assert overriding({}, ["bcast"], tmp_path / "mpich.conf") == []
    assert overriding({}, ["bcast"], tmp_path / "none") == []


def tuning_of(place: Path, rules: RuleSet) -> dict[str, str]:
    """Saves a tuning of 1 x 2 ranks; the environment in which a command looks at it."""
    here = Environment("mpich", "5.0.2", "0" * 64, "a machine", 1, 2, "single")
    files = {"mpich/mpich-coll.json": complete_file()}
    save_tuning(place, Tuning(here, {"bcast": rules}, files, {FILE: "{directory}/mpich/mpich-coll.json"}))
    return {"PATH": "", "HOME": str(place), "PYTHONPATH": os.pathsep.join(sys.path)}


def run_under(environment: dict[str, str], *words: object) -> list[str]:
    """What `colltune WORDS` writes to standard error."""
    return colltune(*map(str, words), environ=environment, code=0).stderr.splitlines()


def test_run_and_env_say_in_one_line_what_goes_before_the_tuning(tmp_path: Path) -> None:
    environment = tuning_of(tmp_path, RuleSet.always("bcast", SizeBasis.MESSAGE, Choice("binomial")))
    own = {"MPIR_CVAR_BCAST_INTRA_ALGORITHM": "binomial", FILE: "/home/me/own.json"}
    for words in (["run", tmp_path, "--", "/bin/true"], ["env", tmp_path]):
        (line,) = run_under({**environment, **own}, *words)
        assert "MPIR_CVAR_BCAST_INTRA_ALGORITHM=binomial goes before" in line
        assert f"{FILE} gives way" in line
        assert run_under({**environment, **own}, words[0], "--quiet", *words[1:]) == []


def test_run_and_env_say_that_a_tuning_has_no_rules_or_none_for_this_job(tmp_path: Path) -> None:
    none = tuning_of(tmp_path / "none", RuleSet.always("bcast", SizeBasis.MESSAGE))
    for words in (["run", tmp_path / "none", "--", "/bin/true"], ["env", tmp_path / "none"]):
        (line,) = run_under(none, *words)
        assert line.removesuffix(".").endswith("has no rules: the library decides every call as before")
    rules = (Rule(None, 2, None, Choice("binomial")), Rule(None, None, None, DEFAULT))
    environment = tuning_of(tmp_path / "two", RuleSet("bcast", SizeBasis.MESSAGE, rules))
    (line,) = run_under({**environment, **SLURM}, "env", tmp_path / "two")
    assert "has no rule for 32 ranks on 4 nodes: it was tuned on 1 x 2" in line
    assert run_under(environment, "env", tmp_path / "two") == []  # nobody knows of which job


@pytest.mark.parametrize(
    ("command", "shape"),
    [
        ("mpiexec -l -ppn 2 -n 4 ./app", (2, 2, 4)),
        ("env X=1 mpirun -np 6 app -n 9", (1, 6, 6)),
        ("./app", None),
        # Hydra
        ("mpiexec -np 4 -perhost 2 ./app", (2, 2, 4)),
        ("mpiexec.hydra -genv A B -env C D --n 4 ./app -n 9", (1, 4, 4)),
        ("mpiexec -l ./app -n 9", None),
        ("mpiexec -n 2 ./a : -n 3 ./b", None),
        ("mpiexec -hosts a,b -n 4 ./app", None),
        ("mpiexec -hosts a,b -n 4 -ppn 2 ./app", (2, 2, 4)),
        ("mpiexec -f hosts -n 4 ./app", None),
        # Open MPI
        ("mpirun -c 4 ./app", (1, 4, 4)),
        ("mpirun --np=4 ./app", (1, 4, 4)),
        ("mpirun --oversubscribe --mca coll ^hcoll -x A -np 4 ./app", (1, 4, 4)),
        ("mpirun --oversubscribe ./app -np 9", None),
        ("mpirun -np 8 -npernode 4 ./app", (2, 4, 8)),
        ("mpirun -np 8 --map-by ppr:4:node:PE=2 ./app", (2, 4, 8)),
        ("prterun --hostfile hosts --np 8 ./app", None),
        # Slurm, outside of a job: srun asks for one
        ("srun --ntasks=4 ./app", (1, 4, 4)),
        ("srun -N2 -n8 --exclusive ./app -n9", (2, 4, 8)),
        ("srun --nodes=2 --ntasks-per-node=4 ./app", (2, 4, 8)),
        ("nice -n 5 srun -N 2 --ntasks-per-node 4 ./app", (2, 4, 8)),
        ("jsrun -n 2 -p 8 ./app", (1, 8, 8)),
    ],
)
def test_the_shape_of_a_job_is_read_from_its_launcher(command: str, shape: tuple[int, int, int] | None) -> None:
    assert job_shape({}, command.split()) == shape


def test_what_the_launch_line_leaves_open_is_of_the_job() -> None:
    for command, shape in (
        ("", (4, 8, 32)),
        ("srun ./app", (4, 8, 32)),
        ("srun -N2 ./app", (2, 8, 16)),
        ("srun --ntasks-per-node=2 ./app", (4, 2, 8)),
        ("srun -N2 --ntasks=8 ./app", (2, 4, 8)),
        ("mpiexec -n 16 ./app", (2, 8, 16)),
        ("mpirun --np 8 --map-by ppr:2:node ./app", (4, 2, 8)),
        ("mpiexec ./app", (4, 8, 32)),
    ):
        assert job_shape(SLURM, command.split()) == shape, command


@pytest.fixture
def unheeded() -> Iterator[None]:
    """Signals do what they do by default; the tests themselves may run under nohup."""
    before = {one: signal.signal(one, signal.SIG_DFL) for one in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)}
    yield
    for one, handler in before.items():
        signal.signal(one, handler)


@pytest.mark.usefixtures("unheeded")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_terminal_that_closes_ends_a_tuning_as_a_scheduler_does(number: signal.Signals) -> None:
    with ended_by_signals():
        stop = StopRequest()
        heed_scheduler(stop)
        with stop.cuts():
            pass
        os.kill(os.getpid(), number)
        assert stop.made
        # The second does not end it half done, but what goes on for too long is ended.
        assert {signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGHUP)} == {signal.SIG_IGN}
        assert signal.alarm(0) > 0
    assert signal.getsignal(number) is signal.SIG_DFL


@pytest.mark.usefixtures("unheeded")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
@pytest.mark.parametrize("heeds", [True, False])
def test_where_nothing_is_measured_yet_a_signal_ends_the_command(number: signal.Signals, heeds: bool) -> None:
    launch = RunningProgram(["sleep", "600"], os.environ)
    with launch.process, ended_by_signals():
        if heeds:
            heed_scheduler(StopRequest())
        with pytest.raises(SystemExit) as ended:
            os.kill(os.getpid(), number)
    assert ended.value.code == 128 + number
    assert launch.process.wait(10) == -signal.SIGTERM


@pytest.mark.usefixtures("unheeded")
def test_a_hangup_that_nohup_ignores_stays_ignored() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    heed_scheduler(StopRequest())
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


def test_a_handler_that_a_preloaded_library_set_before_python_began_costs_no_command_its_end(tmp_path: Path) -> None:
    """As UCX sets one, for SIGHUP; Python knows it only as None."""
    source, library = tmp_path / "handler.c", tmp_path / "handler.so"
    source.write_text(
        "#include <signal.h>\nstatic void heard(int number) { (void)number; }\n"
        "__attribute__((constructor)) static void set(void) { signal(SIGHUP, heard); }\n"
    )
    subprocess.run(["cc", "-shared", "-fPIC", str(source), "-o", str(library)], check=True)
    script = (
        "import os, signal\n"
        "from colltune.cli.stopping import ended_by_signals\n"
        "from colltune.session.application.run_child import run_child\n"
        "assert signal.getsignal(signal.SIGHUP) is None\n"
        "print('child', run_child(['sh', '-c', 'exit 3'], os.environ))\n"
        "with ended_by_signals():\n    print('command')\n"
    )
    done = run_to_end([sys.executable, "-c", script], env={**os.environ, "LD_PRELOAD": str(library)})
    assert (done.returncode, done.stdout) == (0, "child 3\ncommand\n"), done.stderr


def test_no_argument_of_a_command_is_stored_unless_it_is_asked_for() -> None:
    words = ["/home/me/bin/app", "--password", "secret of mine"]
    assert command_text(words, {}) == "app"
    assert command_text(words, {"COLLTUNE_STORE_COMMANDS": "1"}) == "/home/me/bin/app --password 'secret of mine'"


def test_the_page_of_variables_names_every_one() -> None:
    page = (ROOT / "docs/reference/environment.md").read_text()
    sources = [*(ROOT / "src").rglob("*.py"), *(ROOT / "native").rglob("*.c")]
    found = {name for path in sources for name in re.findall(r"\"(COLLTUNE_[A-Z_]*[A-Z])\"", path.read_text())}
    assert len(found) > 10
    assert sorted(name for name in found if f"`{name}`" not in page) == []


def test_the_page_on_uninstalling_finds_every_variable_that_a_tuning_sets() -> None:
    page = (ROOT / "docs/how-to/uninstall.md").read_text()
    (command,) = re.findall(r"`(env \| grep [^`]*)`", page)
    of_libraries = {name for record in RECORDS for name in (*record.files, *record.switches)}
    ours = {"COLLTUNE_RELEASE", "LD_PRELOAD"} | of_libraries
    environment = dict.fromkeys(ours, "") | {"PATH": "/usr/bin:/bin", "OMPI_MCA_btl": "self"}
    done = run_to_end(["sh", "-c", command], env=environment, check=True)
    assert {line.partition("=")[0] for line in done.stdout.splitlines()} == ours
