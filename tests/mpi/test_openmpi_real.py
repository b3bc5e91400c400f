"""Open MPI itself: the agent measures it, the file decides which algorithm runs, and no legal call fails under one."""

import os
import re
import shutil
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from itertools import takewhile
from pathlib import Path

import pytest
from jobs import OPENMPI, SHORT, colltune, in_force, measure
from one_call import NAMED, OneCall, algorithms, making, namer

from colltune.bench.backends import open_backend
from colltune.bench.workbench import MachineOptions, Workbench, open_workbench
from colltune.core.rules import Rule, RuleSet
from colltune.core.sample import COLLECTIVES, DEFAULT, Choice, Scenario, SizeBasis, Status, parse_choice
from colltune.core.space import Point, shapes
from colltune.emit.lint.check import Severity
from colltune.emit.live_rules import LIVE_FILE, LiveEmitter, live_basis
from colltune.emit.openmpi.lint_rules import lint_rules_files
from colltune.emit.openmpi.reader import read_rows
from colltune.emit.openmpi.rules_file import RULES_FILE, OpenMpiEmitter
from colltune.machine.compile import build, cache_directory
from colltune.measure.contract import Effort
from colltune.mpi.installation import Installation
from colltune.mpi.programs import library_for
from colltune.prove.replay.conformance import replay_arguments, run_conformance
from colltune.prove.replay.on_workbench import non_default
from colltune.store.journal import read_journal
from colltune.store.tuning import JOURNAL, load_tuning
from commands import run_to_end
from compiled import program

# What runs, by choice, where the function is not called as the choice.
FUNCTIONS = {
    "allgather linear": "basic_linear",
    "allgather recursive_doubling": "recursivedoubling",
    "allgather neighbor": "neighborexchange",
    "allgatherv gather_bcast": "basic_default",
    "allgatherv neighbor": "neighborexchange",
    "allreduce recursive_doubling": "recursivedoubling",
    "allreduce rabenseifner": "redscat_allgather",
    "alltoall linear": "basic_linear",
    "alltoall modified_bruck": "intra_bruck",
    "barrier linear": "basic_linear",
    "barrier double_ring": "doublering",
    "barrier recursive_doubling": "recursivedoubling",
    "bcast binary_tree": "bintree",
    "exscan recursive_doubling": "recursivedoubling",
    "reduce linear": "basic_linear",
    "reduce rabenseifner": "redscat_gather",
    "reduce_scatter non_overlapping": "nonoverlapping",
    "reduce_scatter_block recursive_doubling": "recursivedoubling",
    "reduce_scatter_block recursive_halving": "recursivehalving",
    "scan recursive_doubling": "recursivedoubling",
}


@pytest.fixture(scope="module")
def bench(openmpi: Installation) -> Workbench:
    return open_workbench(MachineOptions(mpiexec=str(openmpi.mpiexec), ppn=4), {**os.environ, **OPENMPI})


@pytest.fixture(scope="module")
def emitter(openmpi: Installation) -> OpenMpiEmitter:
    emitter = open_backend(openmpi).emitter
    assert isinstance(emitter, OpenMpiEmitter)
    return emitter


Shown = dict[OneCall, str]
Show = Callable[[int, Sequence[int], bytes | None], Shown]


@pytest.fixture
def show(openmpi: Installation, emitter: OpenMpiEmitter, tmp_path: Path) -> Show:
    """Which algorithms run on so many ranks at some sizes, with a file of rules or without any."""

    def show(ranks: int, sizes: Sequence[int], rules: bytes | None) -> Shown:
        environment = {**os.environ, **OPENMPI}
        if rules is not None:
            (tmp_path / RULES_FILE).write_bytes(rules)
            environment |= emitter.environment(tmp_path)
        calls = [(name, size) for size in sizes for name in NAMED]
        command = [str(openmpi.mpiexec), "--oversubscribe", "-n", str(ranks), "-x", f"LD_PRELOAD={namer()}"]
        done = run_to_end([*command, *making(openmpi.mpicc, calls, ranks)], env=environment, check=True)
        return algorithms(done.stdout, calls)

    return show


def function_of(collective: str, choice: Choice) -> str:
    return FUNCTIONS.get(f"{collective} {choice.algorithm}", choice.algorithm)


def emitted(emitter: OpenMpiEmitter, *rule_sets: RuleSet) -> bytes:
    return emitter.emit([emitter.expressible(rules, shapes(1, 8)) for rules in rule_sets])[RULES_FILE]


@pytest.mark.parametrize("ranks", [2, 3, 4, 5])
def test_the_file_decides_at_each_bound_and_beside_it(show: Show, emitter: OpenMpiEmitter, ranks: int) -> None:
    """A bound in the size that this collective compares, and one byte below and above; two ranks and more.

    Of an alltoall that is a byte of each block, and of a reduce_scatter_block a byte for each rank.
    """
    bound = 960 * ranks
    pairs = {
        "allreduce": ("recursive_doubling", "basic_linear", bound),
        "alltoall": ("linear", "pairwise", bound * ranks),
        "bcast": ("binary_tree", "basic_linear", bound),
        "reduce": ("linear", "in_order_binary(segment_size=0)", bound),
        "reduce_scatter": ("non_overlapping", "butterfly", bound),
        "reduce_scatter_block": ("basic_linear", "butterfly", bound),
    }
    rule_sets = {}
    for name, (low, high, size) in pairs.items():
        basis = emitter.catalogue.collective(name).basis
        rules = (Rule(None, None, size, parse_choice(low)), Rule(None, None, None, parse_choice(high)))
        rule_sets[name] = RuleSet(name, basis, rules)
    shown = show(ranks, [bound - 1, bound, bound + 1], emitted(emitter, *rule_sets.values()))
    for (name, size), ran in shown.items():
        if name in rule_sets:
            choice = rule_sets[name].evaluate(Scenario(name, 1, ranks, size))
            assert function_of(name, choice) in ran, (name, size, ran)


def test_other_rank_counts_and_collectives_keep_the_default(show: Show, emitter: OpenMpiEmitter) -> None:
    """Rules for 4 ranks alone: Open MPI would give them to fewer ranks as well, and to all that are more."""
    rule_sets = []
    for name in ("allgather", "allgatherv", "alltoall", "barrier", "bcast", "gather", "scatter"):
        choice = emitter.catalogue.choices(name)[1]
        basis = emitter.catalogue.collective(name).basis
        rules = (Rule(None, 3, None, DEFAULT), Rule(None, 4, None, choice), Rule(None, None, None, DEFAULT))
        rule_sets.append(RuleSet(name, basis, rules))
    rules_file = emitted(emitter, *rule_sets)
    for ranks in (2, 3, 5):
        assert show(ranks, [960, 61440], rules_file) == show(ranks, [960, 61440], None)
    ran = show(4, [960], rules_file)
    for rule_set in rule_sets:
        assert function_of(rule_set.collective, rule_set.rules[1].choice) in ran[rule_set.collective, 960]


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_file_runs_what_was_measured_by_control_variables(
    show: Show, bench: Workbench, emitter: OpenMpiEmitter, tmp_path: Path, number: int
) -> None:
    """Function by function, for each collective's choice of a number; what calls other collectives is left out.

    The selector takes the same variables for the same kind of communicator as the agent does.
    """
    chosen = {}
    for name in COLLECTIVES:
        choices = [c for c in emitter.catalogue.choices(name)[1:] if not c.algorithm.startswith("non")]
        if choices:
            chosen[name] = choices[number % len(choices)]
    filed = [RuleSet.always(name, emitter.catalogue.collective(name).basis, choice) for name, choice in chosen.items()]
    by_file = show(4, [960], emitted(emitter, *filed))
    live = [RuleSet.always(name, live_basis(emitter.catalogue, name), choice) for name, choice in chosen.items()]
    (tmp_path / LIVE_FILE).write_bytes(LiveEmitter(emitter.catalogue, bench.settings).emit(live)[LIVE_FILE])
    preload = f"{library_for(bench.installation, cache_directory(os.environ))}:{namer()}"
    calls = [(name, 960) for name in NAMED]
    command = bench.command(
        making(bench.installation.mpicc, calls, 4),
        {"LD_PRELOAD": preload, "COLLTUNE_SELECT": str(tmp_path / LIVE_FILE)},
    )
    environment = {key: value for key, value in command.environment.items() if key != "LD_PRELOAD"}
    done = run_to_end(command.argv, env={**os.environ, **OPENMPI, **environment}, check=True)
    by_variables = algorithms(done.stdout, calls)
    for name, choice in chosen.items():
        if (name, 960) in by_variables and choice.algorithm != "two_proc":
            assert by_variables[name, 960] == by_file[name, 960], (name, choice)


def test_a_file_with_a_fault_is_ignored_without_a_word(show: Show, emitter: OpenMpiEmitter) -> None:
    """That is why `colltune run` reads the file before the library does."""
    good = emitted(emitter, RuleSet.always("alltoall", SizeBasis.TOTAL, Choice("pairwise")))
    assert "pairwise" in show(3, [960], good)["alltoall", 960]
    assert show(3, [960], good[: len(good) // 2]) == show(3, [960], None)


@pytest.mark.parametrize(
    ("text", "ranks", "runs"),
    [
        ("1 set of rules\n7 is bcast\n1 2 1\n0 5 0 0\n", 3, "bintree"),
        ("1 7 1 2 2\n0 1 0 0\n01000 5 0 0\n", 3, "bintree"),
        ("1 7 1 2 2\n0 1 0 0\n1000 5 0 0\n", 3, "basic_linear"),
        ("1 7 2\n4 1 0 5 0 0\n2 1 0 1 0 0\n", 3, "bintree"),
        ("1 7 2\n4 1 0 5 0 0\n2 1 0 1 0 0\n", 5, "basic_linear"),
        ("1 7 1 2 3\n0 1 0 0\n2000 3 0 0\n500 5 0 0\n", 3, "basic_linear"),
    ],
)
def test_lint_reads_a_file_as_the_library_does(
    show: Show, emitter: OpenMpiEmitter, text: str, ranks: int, runs: str
) -> None:
    """Words passed over, numbers as in C, rank counts and sizes that do not ascend: bcast of 960 bytes."""
    assert runs in show(ranks, [960], text.encode())["bcast", 960]
    [collective] = read_rows(text.encode(), "a.conf", emitter.catalogue.version).collectives
    below = list(takewhile(lambda one: one.ranks <= ranks, collective.communicators))
    rows = (below or collective.communicators[:1])[-1].rows
    rule = [row.rule for row in takewhile(lambda row: row.rule.size <= 960, rows)][-1]
    assert rule.algorithm == {"bintree": 5, "basic_linear": 1}[runs]


@pytest.mark.parametrize("text", ["1 7 1 2 1\n0 77 0 0\n", "1 3 1 2 1\n0 5 0 0\n", "1 15 1 2 2\n0 1 0 0\n1000 2 0 0\n"])
def test_a_file_that_ends_a_job_is_found(show: Show, openmpi: Installation, emitter: OpenMpiEmitter, text: str) -> None:
    """An algorithm that is not there, one for two ranks on four, and a scatter by size."""
    found = lint_rules_files({"a.conf": text.encode()}, openmpi.version, emitter.catalogue)
    assert [check.severity for check in found] == [Severity.ERROR]
    with pytest.raises(AssertionError, match=r"MPI_ERR|ompi_mpi_abort|MPI_ABORT"):
        show(4, [960, 61440], text.encode())


def most_choices() -> int:
    from colltune.catalog import load

    return max(len(load("openmpi", "5.0").choices(name)) for name in COLLECTIVES)


@pytest.mark.parametrize(
    "number",
    [number if number < 4 else pytest.param(number, marks=pytest.mark.slow) for number in range(1, most_choices())],
)
def test_whatever_a_file_prefers_every_legal_call_works(
    bench: Workbench, emitter: OpenMpiEmitter, tmp_path: Path, number: int
) -> None:
    rule_sets = []
    for name in COLLECTIVES:
        choices = emitter.catalogue.choices(name)
        if len(choices) > 1:
            basis = emitter.catalogue.collective(name).basis
            rules = RuleSet.always(name, basis, choices[1:][number % (len(choices) - 1)])
            rule_sets.append(emitter.expressible(rules, shapes(1, 8)))
    variables = in_force(emitter, tmp_path, rule_sets)
    program = build(bench.installation.mpicc, "conformance", None)
    command = bench.command([str(program), *replay_arguments([2, 3, 4], rule_sets, short=True)], variables)
    result = run_conformance(command.argv, {**bench.process_environment, **command.environment, **variables}, 200.0)
    assert result.passed, result.message


def test_every_choice_of_the_catalogue_is_measured_and_right(bench: Workbench) -> None:
    with closing(bench.launch(seed=1)) as source:
        for name in COLLECTIVES:
            choices = bench.legal(Scenario(name, 1, 4, 0 if name == "barrier" else 4096))
            for ranks in (2, 4):
                scenario = Scenario(name, 1, ranks, 0 if name == "barrier" else 4096)
                legal = tuple(choice for choice in choices if choice in bench.legal(scenario))
                [(_, samples)] = list(source.measure([Point(scenario, legal)], SHORT))
                assert [(s.choice, s.status) for s in samples] == [(choice, Status.OK) for choice in legal]


def test_a_launch_ends_when_it_is_told_to(bench: Workbench) -> None:
    """Not after the ten seconds that the host waits before it kills: a proof has many launches."""
    source = bench.launch(seed=1)
    source.start()
    assert source._agent.close(timeout_s=250.0) == 0  # and was not killed, however slow the machine


def test_what_does_not_fit_is_inapplicable_and_the_job_goes_on(bench: Workbench) -> None:
    source = bench.launch(seed=1)
    scenario = Scenario("alltoall", 1, 4, 64)
    wanted = Point(scenario, (DEFAULT, Choice("two_proc"), Choice("pairwise")))
    samples = measure(source, [wanted])
    assert [s.status for s in samples] == [Status.OK, Status.INAPPLICABLE, Status.OK]
    assert source.launches == 1


def test_more_choices_than_the_agent_keeps_communicators_for(bench: Workbench) -> None:
    """128 are kept for one group of ranks; then all are given back."""
    source = bench.launch(seed=1)
    points = []
    for turn in range(8):
        for name in COLLECTIVES:
            scenario = Scenario(name, 1, 2, 0 if name == "barrier" else 1 << (6 + turn))
            points.append(Point(scenario, bench.legal(scenario)))
    once = Effort(relative_width=9.0, box_s=1e-5, fewest=1, most=1, warm_up=0)
    samples = measure(source, points, once)
    assert len(samples) == sum(len(point.choices) for point in points)
    assert {sample.status for sample in samples} == {Status.OK}


def test_tune_run_check_verify_and_explain(openmpi: Installation, tmp_path: Path) -> None:
    tuned = tmp_path / "tuned"
    wanted = ["--mpiexec", str(openmpi.mpiexec), "--out", str(tuned), "--budget", "40s"]
    colltune("tune", "alltoall", "allgatherv", "--max-size", "1KiB", "--ppn", "2", *wanted, code=0)
    samples = read_journal(tuned / JOURNAL).samples
    assert {sample.status for sample in samples} == {Status.OK}
    assert len({sample.choice for sample in samples if sample.scenario.collective == "allgatherv"}) > 4
    application = [str(openmpi.mpiexec), "-n", "2", "-x", f"LD_PRELOAD={namer()}"]
    application += making(openmpi.mpicc, [("alltoall", 256)], 2)
    ran = colltune("run", "--prove", str(tuned), "--", *application, code=0)
    # Two ranks may have nothing to gain; a tuning without a rule sets nothing.
    evidence = "the kernel saw" if non_default(load_tuning(tuned).rule_sets) else "it has no rule"
    assert f"the tuning was in force: {evidence}" in ran.stderr
    colltune("verify", "--results", str(tuned), "--short", "--mpiexec", str(openmpi.mpiexec), code=0)
    colltune("verify", str(tuned), "--launches", "2", "--mpiexec", str(openmpi.mpiexec), code=0)
    explained = colltune("explain", str(tuned), "alltoall", "--size", "64", code=0)
    choice = load_tuning(tuned).rule_sets["alltoall"].evaluate(Scenario("alltoall", 1, 2, 64))
    runs = "Open MPI's own decision" if choice == DEFAULT else "coll/tuned, algorithm"
    assert runs in explained.stdout
    (tuned / "openmpi" / RULES_FILE).write_bytes(b"1\n")
    broken = colltune("run", str(tuned), "--", *application, code=2)
    assert "was changed" in broken.stderr


def test_doctor_names_what_goes_before_the_rules(openmpi: Installation) -> None:
    environment = {**os.environ, **OPENMPI, "PYTHONPATH": os.pathsep.join(sys.path)}
    environment |= {"OMPI_MCA_coll_tuned_bcast_algorithm": "3", "OMPI_MCA_coll": "^tuned"}
    command = [sys.executable, "-m", "colltune", "doctor", "--all", "--ppn", "2", "--mpiexec", str(openmpi.mpiexec)]
    done = run_to_end(command, env=environment, check=True)
    assert "coll_tuned_bcast_algorithm is 3, which goes before every rule of bcast" in done.stdout
    assert "coll is ^tuned, which leaves out coll/tuned" in done.stdout
    assert "ibcast         default, linear, binomial, knomial (by colltune run --via live)" in done.stdout


def test_the_open_mpi_of_the_system_is_steered_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Debian's is of the 4.1 series, where the switch of dynamic rules can be set before MPI_Init only."""
    launcher = shutil.which("mpiexec.openmpi")
    if launcher is None:
        pytest.skip("no Open MPI of the system (Debian: openmpi-bin, libopenmpi-dev)")
    out = tmp_path / "tuned"
    more = ("--mpiexec", launcher, "--ppn", "2", "--max-size", "64", "--gate", "off", "--budget", "60s")
    colltune("tune", "allreduce", "allgatherv", *more, "--out", str(out), code=0)
    samples = read_journal(out / JOURNAL).samples
    assert {sample.status for sample in samples} <= {Status.OK, Status.INAPPLICABLE}
    for name in ("allreduce", "allgatherv"):
        ok = {s.choice for s in samples if s.status is Status.OK and s.scenario.collective == name}
        assert len(ok) > 3, name
    # Components that MPI_Init has loaded and dropped are not loaded again for MPI_T: PSM2 takes 0.1 s each time.
    monkeypatch.setenv("LD_DEBUG", "files")
    monkeypatch.setenv("LD_DEBUG_OUTPUT", str(tmp_path / "loads"))
    one_sum = program(Path(launcher).with_name("mpicc.openmpi"), "one_sum.c")
    colltune("run", "--via", "live", str(out), "--", launcher, "-n", "1", one_sum, code=0)
    loads = [re.findall(r"file=(\S+/mca_\S+) \[0\];  dynam", one.read_text()) for one in tmp_path.glob("loads.*")]
    assert any(loads)
    assert all(len(of_process) == len(set(of_process)) for of_process in loads)
