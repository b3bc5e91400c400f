"""The live selector on calls that do not block: what runs, and its results."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from jobs import colltune, crowded
from live_jobs import Live, live, sanitized
from one_call import OneCall, making, messages, ucx_counter

from colltune.core.rules import Rule, RuleSet
from colltune.core.sample import DEFAULT, NONBLOCKING, Choice, SizeBasis, parse_choice
from colltune.deploy.live_selector import only_live
from colltune.emit.live_rules import live_basis
from colltune.machine.compile import build
from colltune.mpi.installation import Installation, Library
from colltune.prove.replay.conformance import PROGRAM, replay_arguments
from colltune.store.tuning import load_tuning

# No library has more choices of one collective than this.
MOST_CHOICES = 18


def choices_of(mpi: Live, name: str) -> tuple[Choice, ...]:
    return mpi.bench.catalogue.choices(name)[1:] if name in mpi.bench.catalogue.entries else ()


def prefer(mpi: Live, number: int) -> list[RuleSet]:
    """The ``number``-th choice of each collective."""
    return [
        RuleSet.always(name, live_basis(mpi.bench.catalogue, name), choices[number % len(choices)])
        for name in NONBLOCKING
        if (choices := choices_of(mpi, name))
    ]


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


def test_no_library_has_more_choices_than_are_tried(on_either: Live) -> None:
    assert 0 < max(len(choices_of(on_either, name)) for name in NONBLOCKING) <= MOST_CHOICES


@pytest.mark.parametrize(
    "number", [pytest.param(n, marks=[] if n in (0, 2) else [pytest.mark.slow]) for n in range(MOST_CHOICES)]
)
def test_every_choice_is_right_at_1_to_8_ranks(on_either: Live, number: int) -> None:
    if number >= max(len(choices_of(on_either, name)) for name in NONBLOCKING):
        pytest.skip("it has no more choices")
    rule_sets = prefer(on_either, number)
    arguments = replay_arguments(range(1, 9), rule_sets, short=True, collectives=NONBLOCKING, max_bytes=1 << 18)
    done = on_either.replay(8, on_either.emit(*rule_sets), arguments, MPIR_CVAR_NUM_CLIQUES="2")
    assert "selector is off" not in done.stderr


def test_the_library_is_clean_under_sanitizers(on_either: Live) -> None:
    rule_sets = prefer(on_either, 1)
    arguments = replay_arguments([2, 3], rule_sets, short=True, collectives=NONBLOCKING, max_bytes=1 << 16)
    told = {"COLLTUNE_PROFILE": str(on_either.directory / "profile"), "ASAN_OPTIONS": "detect_leaks=0"}
    sanitized(on_either).replay(3, on_either.emit(*rule_sets), arguments, **told)


@pytest.mark.slow
@pytest.mark.parametrize("checked", [False, True], ids=["plain", "sanitizers"])
@pytest.mark.parametrize("number", range(5))
def test_every_call_of_the_whole_replay_is_right(on_either: Live, number: int, checked: bool) -> None:
    kit, rule_sets = sanitized(on_either) if checked else on_either, prefer(on_either, number)
    arguments = replay_arguments(range(1, 9), rule_sets, collectives=NONBLOCKING)
    kit.replay(8, on_either.emit(*rule_sets), arguments, ASAN_OPTIONS="detect_leaks=0")


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
    sizes = [word for name in names for word in ("--sizes", f"{name}=6000")]
    calls = [*replay_arguments([4], short=True, collectives=names), *sizes]
    job = [str(openmpi.mpiexec), *crowded(openmpi), "-n", "4", str(build(openmpi.mpicc, PROGRAM)), *calls]
    by_file = colltune("run", str(tuned), "--", *job)
    assert f"no file of this MPI decides {unsaid}: for these use --via live" in by_file.stderr
    by_selector = colltune("run", "--prove", "--via", "live", str(tuned), "--", *job, code=0)
    assert "failures=0" in by_selector.stdout
    assert f"calls of {only_live(found)[0]} met a rule" in by_selector.stderr
    refused = colltune(
        "tune", "ibcast", *where, "--thread-level", "multiple", "--out", str(tmp_path / "threads"), code=2
    )
    assert "no file of this MPI decides ibcast, and the live selector does not work" in refused.stderr
