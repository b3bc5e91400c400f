"""The live selector on calls that do not block: what runs, its results, and that the program finds all as it was."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from jobs import colltune
from live_jobs import Live, live, sanitized
from one_call import OneCall, making, messages, ucx_counter

from colltune.core.rules import Rule, RuleSet
from colltune.core.sample import DEFAULT, NONBLOCKING, Choice, SizeBasis, parse_choice
from colltune.deploy.live_selector import only_live
from colltune.emit.live_rules import live_basis
from colltune.mpi.installation import Installation, Library
from colltune.prove.replay.conformance import replay_arguments
from colltune.store.tuning import load_tuning
from compiled import program

# No library has more choices of one collective than this.
MOST_CHOICES = 18


@pytest.fixture(params=["mpich", "openmpi"])
def either(request: pytest.FixtureRequest, tmp_path: Path) -> Live:
    return live(request.getfixturevalue("mpi" if request.param == "mpich" else "openmpi"), tmp_path)


def choices_of(mpi: Live, name: str) -> tuple[Choice, ...]:
    return mpi.bench.catalogue.choices(name)[1:] if name in mpi.bench.catalogue.entries else ()


def prefer(mpi: Live, number: int, bound: int | None = None) -> list[RuleSet]:
    """The ``number``-th choice of each collective up to ``bound`` bytes of a block or a vector."""
    found = []
    for name in NONBLOCKING:
        choices = choices_of(mpi, name)
        basis = live_basis(mpi.bench.catalogue, name) if choices else SizeBasis.MESSAGE
        if choices:
            first = Rule(None, None, bound, choices[number % len(choices)])
            rules = (first,) if bound is None else (first, Rule(None, None, None, DEFAULT))
            found.append(RuleSet(name, basis, rules))
    return found


# Messages of one call on 8 ranks, by the textbook; the last two words are collective and bytes.
ON_MPICH = {
    "tsp_ring(chunk_size=8192) ibcast 16000": 7 * 2,
    "tsp_ring iallreduce 16000": 2 * 7 * 8,
    "sched_brucks ialltoall 16000": 8 * 3,
    "sched_ring iallgather 16000": 8 * 7,
}
ON_OPENMPI = {
    "ring iallreduce 16000": 2 * 7 * 8,
    "rabenseifner iallreduce 16000": 2 * 3 * 8,
    "recursive_doubling iallreduce 16000": 3 * 8,
    "recursive_doubling iallgather 16000": 3 * 8,
}


def sent(
    mpi: Live, rules: bytes, calls: Sequence[OneCall], setting: Mapping[str, str] | None = None
) -> dict[OneCall, int]:
    """Messages of all ranks in each of ``calls``, under a ``setting`` of the environment."""
    beside: Path | None = None
    variables: Mapping[str, str] = {"OMPI_MCA_pml_monitoring_enable": "1"}
    if mpi.bench.installation.library is Library.MPICH:
        beside = Path(ucx_counter())
        variables = {"MPIR_CVAR_CH4_NETMOD": "ucx", "MPIR_CVAR_NOLOCAL": "1"}
    made = making(mpi.bench.installation.mpicc, calls, 8)
    done = mpi.run(8, made, rules, beside, **variables, **(setting or {}))
    assert done.returncode == 0, done.stderr
    assert "selector is off" not in done.stderr
    return messages(done.stdout, calls)


@pytest.mark.parametrize("case", [*ON_MPICH, *ON_OPENMPI])
def test_the_rule_holds_up_to_its_bound_in_both_forms(
    request: pytest.FixtureRequest, tmp_path: Path, case: str
) -> None:
    """Non-blocking and persistent calls send the messages of the choice, and those above the bound the default's."""
    mpi = live(request.getfixturevalue("mpi" if case in ON_MPICH else "openmpi"), tmp_path)
    key, name, size = case.split()
    choice, bound = parse_choice(key), int(size)
    if choice not in choices_of(mpi, name):
        pytest.skip("this version has not the choice")
    basis = live_basis(mpi.bench.catalogue, name)
    limit = bound * 8 if basis is SizeBasis.TOTAL else bound
    rules = RuleSet(name, basis, (Rule(None, None, limit, choice), Rule(None, None, None, DEFAULT)))
    blocking = name.removeprefix("i")
    calls = [(one, at) for one in (name, f"{blocking}_init", blocking) for at in (bound, bound + 4)]
    tuned, default = sent(mpi, mpi.emit(rules), calls), sent(mpi, mpi.emit(), calls)
    due = (ON_MPICH if case in ON_MPICH else ON_OPENMPI)[case]
    assert {call: tuned[call] for call in [(name, bound), (f"{blocking}_init", bound)]} == {
        (name, bound): due,
        (f"{blocking}_init", bound): due,
    }
    others = [call for call in calls if call[1] > bound or call[0] == blocking]
    assert {call: tuned[call] for call in others} == {call: default[call] for call in others}
    assert default[name, bound] != due


@pytest.mark.parametrize(
    ("library", "name", "variable", "value", "due"),
    [
        ("mpi", "reduce", "MPIR_CVAR_IREDUCE_INTRA_ALGORITHM", "sched_binomial", 7),
        ("mpi", "reduce_scatter_block", "MPIR_CVAR_IREDUCE_SCATTER_BLOCK_INTRA_ALGORITHM", "sched_pairwise", 7 * 8),
        ("openmpi", "reduce", "OMPI_MCA_coll_libnbc_ireduce_algorithm", "binomial", 7),
        ("openmpi", "scan", "OMPI_MCA_coll_libnbc_iscan_algorithm", "recursive_doubling", 3 * 8),
        ("openmpi", "exscan", "OMPI_MCA_coll_libnbc_iexscan_algorithm", "recursive_doubling", 3 * 8),
    ],
)
def test_persistent_calls_without_rules_follow_a_variable_of_the_whole_job(
    request: pytest.FixtureRequest, tmp_path: Path, library: str, name: str, variable: str, value: str, due: int
) -> None:
    mpi = live(request.getfixturevalue(library), tmp_path)
    call = (f"{name}_init", 16000)
    assert sent(mpi, mpi.emit(), [call], {variable: value}) == {call: due}
    assert sent(mpi, mpi.emit(), [call])[call] != due


def test_no_library_has_more_choices_than_are_tried(either: Live) -> None:
    assert 0 < max(len(choices_of(either, name)) for name in NONBLOCKING) <= MOST_CHOICES


@pytest.mark.parametrize(
    "number", [pytest.param(n, marks=[] if n in (0, 2) else [pytest.mark.slow]) for n in range(MOST_CHOICES)]
)
def test_every_choice_is_right_at_1_to_8_ranks(either: Live, number: int) -> None:
    if number >= max(len(choices_of(either, name)) for name in NONBLOCKING):
        pytest.skip("it has no more choices")
    rule_sets = prefer(either, number)
    arguments = replay_arguments(range(1, 9), rule_sets, short=True, collectives=NONBLOCKING, max_bytes=1 << 18)
    done = either.replay(8, either.emit(*rule_sets), arguments, MPIR_CVAR_NUM_CLIQUES="2")
    assert "selector is off" not in done.stderr


def find_all_as_it_was(
    mpi: Live, ranks: int, rule_sets: Sequence[RuleSet], seed: int, cases: int, **variables: str
) -> None:
    """Random calls find attributes, error handlers, environment and control variables as they were."""
    settings = [mpi.bench.settings(rules.collective, rules.rules[0].choice) or () for rules in rule_sets]
    names = sorted({name for some in settings for name, _ in some})
    made = program(mpi.bench.installation.mpicc, "nonblocking_property.c")
    done = mpi.run(ranks, [made, str(seed), str(cases), *names], mpi.emit(*rule_sets), **variables)
    assert done.returncode == 0, done.stdout[-1500:] + done.stderr[-1500:]
    assert f"{ranks} ranks, {cases} cases, 0 mismatches" in done.stdout
    assert "selector is off" not in done.stderr


def test_random_calls_find_all_as_it_was(either: Live) -> None:
    """Three requests at once, in any order."""
    find_all_as_it_was(either, 3, prefer(either, 1, bound=4096), 3, 60)


def test_random_calls_are_clean_under_sanitizers(either: Live) -> None:
    variables = {"COLLTUNE_PROFILE": str(either.directory / "profile"), "ASAN_OPTIONS": "detect_leaks=0"}
    find_all_as_it_was(sanitized(either), 2, prefer(either, 1), 5, 40, **variables)


# Ranks and cases, for each of five choices: 10,000 in all, fewer where ranks share the cores.
WHOLE = {1: 700, 2: 800, 3: 200, 4: 120, 5: 100, 8: 80}


@pytest.mark.slow
@pytest.mark.parametrize("checked", [False, True], ids=["plain", "sanitizers"])
@pytest.mark.parametrize("ranks", WHOLE)
def test_ten_thousand_random_calls(either: Live, ranks: int, checked: bool) -> None:
    assert 5 * sum(WHOLE.values()) == 10_000
    kit = sanitized(either) if checked else either
    for number in range(5):
        seed, rule_sets = 1000 * ranks + number, prefer(either, number)
        find_all_as_it_was(kit, ranks, rule_sets, seed, WHOLE[ranks], ASAN_OPTIONS="detect_leaks=0")


def test_an_operation_that_does_not_commute_keeps_the_default(openmpi: Installation, tmp_path: Path) -> None:
    """libnbc's ring adds in another order; alone, as one variable for all calls, it fails the replay."""
    mpi = live(openmpi, tmp_path)
    rules = RuleSet.always("iallreduce", SizeBasis.MESSAGE, Choice("ring"))
    arguments = replay_arguments([2, 3], short=True, collectives=["iallreduce"], max_bytes=1 << 14)
    with pytest.raises(AssertionError, match=r"FAIL .* op=user_ordered"):
        mpi.replay(3, mpi.emit(), arguments, OMPI_MCA_coll_libnbc_iallreduce_algorithm="1")
    mpi.replay(3, mpi.emit(rules), arguments)


def test_open_mpi_is_tuned_by_the_selector_alone(openmpi: Installation, tmp_path: Path) -> None:
    """Without the proof: whether something is faster is for the machine."""
    tuned, where = tmp_path / "tuned", ["--mpiexec", str(openmpi.mpiexec), "--ppn", "4"]
    names = ["iallgather", "iallreduce", "ibcast"]
    sizes = ["--min-size", "4KiB", "--max-size", "8KiB"]
    done = colltune("tune", *names, *sizes, *where, "--gate", "off", "--budget", "30s", "--out", str(tuned), code=0)
    found = load_tuning(tuned)
    assert not any(found.rule_sets[name].departs for name in names)
    unsaid = ", ".join(only_live(found))
    if not unsaid:
        pytest.skip("nothing looked faster here")
    said = " ".join((done.stdout + done.stderr).split())
    assert f"no file of this MPI decides {unsaid}: `colltune run --via live` does" in said
    assert "run --via live" in said.partition("use it")[2]
    crowded = ["--oversubscribe", "--bind-to", "none"]
    job = [str(openmpi.mpiexec), *crowded, "-n", "4", program(openmpi.mpicc, "nonblocking_property.c"), "1", "40"]
    by_file = colltune("run", str(tuned), "--", *job)
    assert f"no file of this MPI decides {unsaid}: for these use --via live" in by_file.stderr
    by_selector = colltune("run", "--prove", "--via", "live", str(tuned), "--", *job, code=0)
    assert "0 mismatches" in by_selector.stdout
    assert f"calls of {only_live(found)[0]} met a rule" in by_selector.stderr
    refused = colltune(
        "tune", "ibcast", *where, "--thread-level", "multiple", "--out", str(tmp_path / "threads"), code=2
    )
    assert "no file of this MPI decides ibcast, and the live selector does not work" in refused.stderr
