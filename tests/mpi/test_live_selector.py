"""The live selector on the real libraries: what it makes run, at which bound, and where it stays out of the way."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
from live_jobs import Live, live, sanitized
from one_call import NAMED, algorithms, making, messages, namer, ucx_counter

from colltune.core.errors import InputError
from colltune.core.rules import Rule, RuleSet
from colltune.core.sample import COLLECTIVES, DEFAULT, Choice, Scenario, SizeBasis, parse_choice
from colltune.deploy.live_selector import FOLDER, in_force_via, with_live
from colltune.emit.live_rules import LIVE_FILE, live_basis
from colltune.mpi.installation import Installation, Library
from colltune.prove.replay.conformance import replay_arguments
from colltune.store.tuning import Tuning, load_tuning, save_tuning
from compiled import shared


@pytest.fixture
def on_openmpi(openmpi: Installation, tmp_path: Path) -> Live:
    return live(openmpi, tmp_path)


def test_the_selector_decides_at_each_bound(on_openmpi: Live) -> None:
    """By bytes of a block or of the vector; for gather and scatter too, which no file can do."""
    bounds = {
        "allgather": 960,
        "alltoall": 960,
        "bcast": 960,
        "gather": 960,
        "scatter": 960,
        "reduce_scatter_block": 960,
    }
    low = {"allgather": "ring", "alltoall": "linear", "bcast": "pipeline", "gather": "binomial"}
    low |= {"scatter": "binomial", "reduce_scatter_block": "butterfly"}
    names = {"linear": "basic_linear"}
    ranks, rule_sets = 4, []
    for name, bound in bounds.items():
        basis = live_basis(on_openmpi.bench.catalogue, name)
        bound *= ranks if basis is SizeBasis.TOTAL else 1
        low_rule = Rule(None, None, bound, parse_choice(low[name]))
        rule_sets.append(RuleSet(name, basis, (low_rule, Rule(None, None, None, DEFAULT))))
    calls = [(name, size) for name in NAMED for size in (944, 960, 976)]
    show = making(on_openmpi.bench.installation.mpicc, calls, ranks)
    done = on_openmpi.run(ranks, show, on_openmpi.emit(*rule_sets), Path(namer()))
    plain = on_openmpi.run(ranks, show, on_openmpi.emit(), Path(namer()))
    assert done.returncode == 0, done.stderr
    default = algorithms(plain.stdout, calls)
    for (name, size), ran in algorithms(done.stdout, calls).items():
        if name in low and size <= 960:
            assert names.get(low[name], low[name]) in ran, (name, size, ran)
        elif name in low:
            assert ran == default[name, size]


def test_the_selector_decides_on_mpich(mpi: Installation, tmp_path: Path) -> None:
    """Messages of all ranks together show which algorithm ran (every rank is its own node here: ppn is 1)."""
    mpich = live(mpi, tmp_path)
    if mpi.version.startswith("4.0"):
        pytest.skip("4.0 has no radix to choose")
    radices = [parse_choice(f"k_dissemination(k={k})") for k in (2, 8)]
    by_ppn = RuleSet("barrier", SizeBasis.NONE, (Rule(1, None, None, radices[1]), Rule(None, None, None, radices[0])))
    ring = RuleSet(
        "allgather", SizeBasis.TOTAL, (Rule(None, None, 960 * 5, Choice("ring")), Rule(None, None, None, DEFAULT))
    )
    calls = [("barrier", 0), ("allgather", 960), ("allgather", 964)]
    variables = {"MPIR_CVAR_CH4_NETMOD": "ucx", "MPIR_CVAR_NOLOCAL": "1"}
    made, beside = making(mpi.mpicc, calls, 5), Path(ucx_counter())
    done = mpich.run(5, made, mpich.emit(by_ppn, ring), beside, **variables)
    plain = mpich.run(5, made, mpich.emit(), beside, **variables)
    assert done.returncode == 0, done.stderr
    sent, default = (messages(run.stdout, calls) for run in (done, plain))
    assert sent["barrier", 0] == 5 * 4
    assert default["barrier", 0] == 5 * 3
    assert sent["allgather", 960] == 5 * 4
    assert sent["allgather", 964] == default["allgather", 964] != 5 * 4


BARRIERS = ["--ranks", "2", "--short", "--only", "barrier"]
MOCK_UPS = b"""colltune-rules 2
choice 0 - COLLTUNE_GATHER_MOCK_UP=1
choice 1 - COLLTUNE_SCATTER_MOCK_UP=1
rules gather message
rule - - - {0}
rules scatter message
rule - - - {1}
"""


@pytest.mark.parametrize("chosen", [True, False])
def test_gather_and_scatter_are_made_of_other_calls_where_a_rule_says_so(on_either: Live, chosen: bool) -> None:
    """Every form of them: types with gaps, in place, any root, communicators of 1 to 4 ranks, and of two groups."""
    beside = shared("gathers_by_others.c", compiler=on_either.bench.installation.mpicc)
    rules = MOCK_UPS.replace(b"{0}", b"0" if chosen else b"-").replace(b"{1}", b"1" if chosen else b"-")
    replayed = replay_arguments(range(1, 5), short=True, collectives=["gather", "scatter"])
    done = on_either.replay(4, rules, replayed, beside)
    assert ("reached gatherv" in done.stderr, "reached scatterv" in done.stderr) == (chosen, chosen)


def prefer(mpi: Live, number: int) -> list[RuleSet]:
    """One choice of each collective up to 4 KiB, another for each ``number``."""
    rule_sets = []
    for name in COLLECTIVES:
        choices = mpi.bench.catalogue.choices(name)[1:]
        if choices:
            basis = live_basis(mpi.bench.catalogue, name)
            tuned = choices[number % len(choices)]
            bounds = [Rule(None, None, 4096, tuned), Rule(None, None, None, DEFAULT)]
            rules = (Rule(None, None, None, tuned),) if basis is SizeBasis.NONE else tuple(bounds)
            rule_sets.append(RuleSet(name, basis, rules))
    return rule_sets


@pytest.mark.parametrize("number", [1, 2, *(pytest.param(n, marks=pytest.mark.slow) for n in range(3, 19))])
def test_whatever_the_rules_prefer_every_legal_call_works(on_either: Live, number: int) -> None:
    rule_sets = prefer(on_either, number)
    on_either.replay(4, on_either.emit(*rule_sets), replay_arguments([2, 3, 4], rule_sets, short=True))


@pytest.mark.parametrize("number", [1, *(pytest.param(n, marks=pytest.mark.slow) for n in (2, 3))])
def test_the_library_is_clean_under_sanitizers(on_either: Live, number: int) -> None:
    """Selector and profile on every legal call: no byte beyond a buffer, and nothing that C leaves undefined."""
    checked = sanitized(on_either)
    rule_sets = prefer(on_either, number)
    done = checked.replay(
        3, on_either.emit(*rule_sets), replay_arguments([3], rule_sets, short=True, max_bytes=20_000),
        COLLTUNE_PROFILE=str(on_either.directory / "profile"), COLLTUNE_MEASURE=str(on_either.directory / "measure"),
        COLLTUNE_MEASURE_SHARE="50", ASAN_OPTIONS="detect_leaks=0",
    )  # fmt: skip
    assert "selector is off" not in done.stderr


@pytest.mark.parametrize("nodes", [1, 2])
def test_what_runs_below_a_composition_meets_its_needs(mpi: Installation, tmp_path: Path, nodes: int) -> None:
    """Where an algorithm does not fit MPICH falls back; here that is an error, even as it begins to share memory."""
    mpich = live(mpi, tmp_path)
    if mpi.version.startswith("4.0"):
        pytest.skip("4.0 has no compositions to choose")
    below = {
        "allreduce": "alpha+reduce_scatter_allgather",
        "bcast": "alpha+scatter_recursive_doubling_allgather",
        "reduce": "alpha+reduce_scatter_gather",
    }
    rule_sets = [RuleSet.always(c, live_basis(mpich.bench.catalogue, c), Choice(key)) for c, key in below.items()]
    variables = {"MPIR_CVAR_COLLECTIVE_FALLBACK": "error", "MPIR_CVAR_NUM_CLIQUES": str(nodes)}
    arguments = replay_arguments([2, 4], rule_sets, short=True, max_bytes=2000)
    done = mpich.replay(4, mpich.emit(*rule_sets), arguments, MPIR_CVAR_POSIX_NUM_COLLS_THRESHOLD="99999", **variables)
    assert "selector is off" not in done.stderr


def test_threads_that_call_at_once_are_refused(on_either: Live) -> None:
    """Nor is anything measured where they do."""
    rules = on_either.emit(RuleSet.always("bcast", SizeBasis.MESSAGE, on_either.bench.catalogue.choices("bcast")[1]))
    arguments = ["--thread-level", "multiple", "--ranks", "2", "--short", "--only", "bcast"]
    measured = {"COLLTUNE_MEASURE": str(on_either.directory / "measure")}
    for variables in ({}, measured):
        done = on_either.replay(2, rules, arguments, **variables)
        assert "live selector is off: the program asked for MPI_THREAD_MULTIPLE" in done.stderr
        assert "refused" not in done.stdout
    assert not any("\ncell " in path.read_text() for path in on_either.directory.glob("measure.*"))


@pytest.mark.parametrize(
    ("rules", "why"),
    [
        (b"", "cannot be read"),
        (b"colltune-live 2\n", 'line 1 is not "colltune-rules 2"; tune again'),
        (b"colltune-rules 2\nrules bcast message\nrule - 4..8 - -\n", "line 3"),
        (b"colltune-live 1\nchoice 0 - no_such_variable=1\n", "no control variable no_such_variable"),
        (b"colltune-live 1\nrules bcast message\nrule - - - 3\n", "line 3"),
        (b"colltune-live 1\nchoice 0 two-heads -\n", "need that is not known"),
    ],
)
def test_rules_that_cannot_be_read_turn_it_off(on_openmpi: Live, rules: bytes, why: str) -> None:
    done = on_openmpi.replay(2, rules, BARRIERS)
    assert "live selector is off" in done.stderr
    assert why in done.stderr


@pytest.mark.parametrize("unreadable", ["COLLTUNE_SELECT", "COLLTUNE_CANDIDATES"])
def test_of_two_files_the_one_that_cannot_be_read_is_named(on_openmpi: Live, unreadable: str, tmp_path: Path) -> None:
    """The other one can, and its last line is not what is wrong."""
    candidates = tmp_path / "candidates.rules"
    candidates.write_bytes(on_openmpi.emit(*prefer(on_openmpi, 1)))
    missing = {unreadable: str(tmp_path / "missing")}
    variables = {"COLLTUNE_MEASURE": str(tmp_path / "m"), "COLLTUNE_EXPLORE_RISK": "1000"}
    variables |= {"COLLTUNE_CANDIDATES": str(candidates), **missing}
    done = on_openmpi.replay(2, on_openmpi.emit(*prefer(on_openmpi, 2)), BARRIERS, **variables)
    assert f"live selector is off: {tmp_path / 'missing'} cannot be read" in done.stderr


def test_a_tuning_says_by_which_way_it_is_in_force(on_either: Live, tmp_path: Path) -> None:
    bench = on_either.bench
    choice = bench.catalogue.choices("bcast")[1]
    rules = RuleSet.always("bcast", live_basis(bench.catalogue, "bcast"), choice)
    tuning = Tuning(bench.environment, {"bcast": RuleSet.always("bcast", rules.basis)}, {}, {})
    save_tuning(tmp_path, with_live(bench, tuning, {"bcast": rules}))
    tuning = load_tuning(tmp_path)
    assert tuning.files == {f"{FOLDER}/{LIVE_FILE}": on_either.emit(rules)}
    scenario = Scenario("bcast", 1, 4, 64)

    def here() -> Installation:
        return bench.installation

    assert in_force_via(tuning, "file", os.environ, here).rule_sets["bcast"].evaluate(scenario) == DEFAULT
    found = in_force_via(tuning, "live", os.environ, here)
    assert found.rule_sets["bcast"].evaluate(scenario) == choice
    assert found.variables_at(tmp_path)["COLLTUNE_SELECT"] == str(tmp_path / FOLDER / LIVE_FILE)
    with pytest.raises(InputError, match="no way"):
        in_force_via(tuning, "air", os.environ, here)
    with pytest.raises(InputError, match="holds no rules for the live selector"):
        in_force_via(replace(tuning, live=None), "live", os.environ, here)
    with pytest.raises(InputError, match="takes algorithms when a job starts"):
        in_force_via(replace(tuning, live={}, files={}), "live", os.environ, here)
    assert bench.installation.library in (Library.MPICH, Library.OPENMPI)
