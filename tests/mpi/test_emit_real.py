"""MPICH itself loads the files: the algorithm that they name is the one that runs, and no legal call fails."""

import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from jobs import in_force, legal_calls
from one_call import OneCall, making, messages, ucx_counter

from colltune.catalog import load
from colltune.core.rules import Rule, RuleSet
from colltune.core.sample import COLLECTIVES, DEFAULT, Choice, SizeBasis, parse_choice
from colltune.emit.mpich.selection_file import GENERAL_FILE, MpichEmitter
from colltune.emit.mpich.tree import Call, Tree, decide, format_tree, parse_tree
from colltune.mpi.installation import Installation
from commands import run_to_end

# A waiting rank gives its core away, and messages go through UCX, where they are counted.
QUIET = {"MPIR_CVAR_ENABLE_HEAVY_YIELD": "1", "MPIR_CVAR_CH4_NETMOD": "ucx"}
MOST_CHOICES = 19


Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(mpi: Installation, emitter: MpichEmitter, tmp_path: Path) -> Run:
    """Runs a command on ``ranks`` ranks with the files of ``rule_sets`` in force."""

    def run(
        ranks: int, command: Sequence[str], rule_sets: Sequence[RuleSet], **variables: str
    ) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, **QUIET, **variables, **in_force(emitter, tmp_path, rule_sets)}
        return run_to_end([str(mpi.mpiexec), "-n", str(ranks), *command], env=environment)

    return run


Counted = Callable[..., dict[OneCall, int]]


@pytest.fixture
def counted(mpi: Installation, run: Run) -> Counted:
    """How many messages all ranks together send in each of some calls."""

    def counted(
        ranks: int, calls: Sequence[OneCall], rule_sets: Sequence[RuleSet], **variables: str
    ) -> dict[OneCall, int]:
        answer = run(ranks, making(mpi.mpicc, calls, ranks), rule_sets, LD_PRELOAD=ucx_counter(), **variables)
        assert answer.returncode == 0, answer.stderr
        return messages(answer.stdout, calls)

    return counted


def choices_of(mpi: Installation, name: str, *, composed: bool = False) -> list[Choice]:
    """The candidates; ``composed``: those that say what runs below a composition, and not the others."""
    catalogue = load("mpich", mpi.version)
    named = catalogue.choices(name)[1:] if catalogue.collective(name).in_file else ()
    found = [c for c in named if catalogue.algorithm(name, c).composed == composed]
    return found if composed else [DEFAULT, *found]


def always(mpi: Installation, number: int, *, composed: bool = False) -> list[RuleSet]:
    """Rules that prefer, everywhere, the ``number``-th choice of each collective."""
    catalogue, rule_sets = load("mpich", mpi.version), []
    for name in COLLECTIVES:
        choices = choices_of(mpi, name, composed=composed) or [DEFAULT]
        rule_sets.append(RuleSet.always(name, catalogue.collective(name).basis, choices[number % len(choices)]))
    return rule_sets


def check_legal_calls(mpi: Installation, run: Run, rule_sets: list[RuleSet], ranks: int, **variables: str) -> None:
    answer = run(ranks, legal_calls(mpi.mpicc, ranks), rule_sets, **variables)
    said = answer.stdout[-2000:] + answer.stderr[-2000:]
    preferred = [f"{rule_set.collective} {rule_set.rules[0].choice}" for rule_set in rule_sets]
    assert answer.returncode == 0, f"{preferred}: {said}"
    assert "failures=0" in answer.stdout, f"{preferred}: {said}"


def test_no_version_has_more_choices_than_are_tried(mpi: Installation) -> None:
    assert max(len(choices_of(mpi, name)) for name in COLLECTIVES) <= MOST_CHOICES


@pytest.mark.parametrize("number", range(MOST_CHOICES))
def test_whatever_a_file_prefers_every_legal_call_works(mpi: Installation, run: Run, number: int) -> None:
    check_legal_calls(mpi, run, always(mpi, number), 5)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(MOST_CHOICES))
@pytest.mark.parametrize(
    ("ranks", "variables"),
    [(6, {"MPIR_CVAR_NUM_CLIQUES": "2"}), (5, {"MPIR_CVAR_NOLOCAL": "1"}), (8, {})],
    ids=["two nodes", "one rank per node", "one node"],
)
def test_and_so_it_does_on_several_nodes(
    mpi: Installation, run: Run, number: int, ranks: int, variables: dict[str, str]
) -> None:
    check_legal_calls(mpi, run, always(mpi, number), ranks, **variables)


@pytest.mark.parametrize("number", [0, 31, *(pytest.param(n, marks=pytest.mark.slow) for n in range(1, 84, 4))])
def test_whatever_runs_below_a_composition_every_legal_call_works(mpi: Installation, run: Run, number: int) -> None:
    check_legal_calls(mpi, run, always(mpi, number, composed=True), 6, MPIR_CVAR_NUM_CLIQUES="2")


def log2_ceiling(ranks: int) -> int:
    return (ranks - 1).bit_length()


# How many messages all ranks together send, by algorithm; a tree sends one to each rank but its root.
MESSAGES: dict[str, Callable[[int], int]] = {
    "allgather ring": lambda ranks: ranks * (ranks - 1),
    "allgather brucks": lambda ranks: ranks * log2_ceiling(ranks),
    "alltoall pairwise": lambda ranks: ranks * (ranks - 1),
    "alltoall brucks": lambda ranks: ranks * log2_ceiling(ranks),
    "allreduce ring": lambda ranks: 2 * ranks * (ranks - 1),
    "allreduce tree": lambda ranks: 2 * (ranks - 1),
    "bcast binomial": lambda ranks: ranks - 1,
    "barrier k_dissemination(k=2)": lambda ranks: ranks * log2_ceiling(ranks),
    "barrier k_dissemination(k=8)": lambda ranks: ranks * min(ranks - 1, 7),
}


def by_size_and_ranks(collective: str, basis: SizeBasis, short: Choice, long: Choice) -> RuleSet:
    """``short`` up to 1,024 bytes on up to four ranks; the other way round on more."""
    bound = None if basis is SizeBasis.NONE else 1024
    rules = [Rule(None, 4, bound, short), Rule(None, 4, None, long), Rule(None, None, bound, long)]
    rules.append(Rule(None, None, None, short))
    if basis is SizeBasis.NONE:
        rules = [Rule(None, 4, None, short), Rule(None, None, None, long)]
    return RuleSet(collective, basis, tuple(rules))


@pytest.mark.parametrize("ranks", range(2, 9))
def test_the_file_decides_which_algorithm_runs(mpi: Installation, counted: Counted, ranks: int) -> None:
    rule_sets = [
        by_size_and_ranks("allgather", SizeBasis.TOTAL, Choice("brucks"), Choice("ring")),
        by_size_and_ranks("alltoall", SizeBasis.MESSAGE, Choice("brucks"), Choice("pairwise")),
        by_size_and_ranks("bcast", SizeBasis.MESSAGE, Choice("binomial"), Choice("scatter_ring_allgather")),
    ]
    if not mpi.version.startswith("4.0"):
        radices = [parse_choice(f"k_dissemination(k={k})") for k in (8, 2)]
        rule_sets.append(by_size_and_ranks("barrier", SizeBasis.NONE, *radices))
        tree = parse_choice("tree(k=2)")
        rule_sets.append(by_size_and_ranks("allreduce", SizeBasis.MESSAGE, tree, Choice("ring")))
    sizes = [840, 1024, 1028, 4200]  # every rank has a block of its own to send
    by_name = {rule_set.collective: rule_set for rule_set in rule_sets}
    calls = [(name, size) for name in by_name for size in sizes]
    for (name, size), sent in counted(ranks, calls, rule_sets, MPIR_CVAR_NOLOCAL="1").items():
        basis = {SizeBasis.TOTAL: size * ranks, SizeBasis.MESSAGE: size, SizeBasis.NONE: 0}[by_name[name].basis]
        rule = next(rule for rule in by_name[name].rules if rule.matches(1, ranks, basis))
        label = f"{name} {rule.choice}".replace("tree(k=2)", "tree")
        if label in MESSAGES:
            assert sent == MESSAGES[label](ranks), (label, size)
        else:
            # A scatter over a tree, then a ring: no fewer messages than the ring alone but for the empty blocks.
            assert label == "bcast scatter_ring_allgather"
            assert sent > ranks - 1 or ranks == 2, (label, size)


@pytest.mark.parametrize("ranks", [3, 5])
def test_a_level_of_many_conditions_decides_at_each_of_its_bounds(counted: Counted, ranks: int) -> None:
    """Twelve bounds of ranks, and of sizes at each: more than are written one after another."""
    by_turns = (Choice("binomial"), Choice("scatter_ring_allgather"))
    bounds = [*(1024 * n for n in range(1, 12)), None]
    rules = RuleSet(
        "bcast",
        SizeBasis.MESSAGE,
        tuple(
            Rule(None, most, size, by_turns[(row + column) % 2])
            for row, most in enumerate([*range(2, 13), None])
            for column, size in enumerate(bounds)
        ),
    )
    calls = [("bcast", size + more) for size in bounds if size for more in (0, 4)]
    for (_, size), count in counted(ranks, calls, [rules], MPIR_CVAR_NOLOCAL="1").items():
        rule = next(rule for rule in rules.rules if rule.matches(1, ranks, size))
        assert (count == ranks - 1) == (rule.choice == by_turns[0]), (size, count)


@pytest.mark.parametrize("ranks", [3, 5])
def test_a_composition_in_the_file_runs(mpi: Installation, counted: Counted, ranks: int) -> None:
    """On two nodes: the flat tree sends to every rank of the other node, the composition once to its first rank."""
    sent = {}
    for choice in (Choice("alpha"), Choice("scatter_ring_allgather"), DEFAULT):
        if choice.algorithm == "alpha" and mpi.version.startswith("4.0"):
            pytest.skip("MPICH 4.0 cannot measure compositions, so none is written for it")
        rules = [RuleSet.always("bcast", SizeBasis.MESSAGE, choice)]
        (sent[choice.algorithm],) = counted(ranks, [("bcast", 64)], rules, MPIR_CVAR_NUM_CLIQUES="2").values()
    assert sent["alpha"] == 1
    assert sent["scatter_ring_allgather"] > 1
    assert sent["default"] == 1  # MPICH's own tree is in the file too, and names the same composition


# Four nodes of two ranks: how many messages the nodes exchange, by what runs below the composition.
BELOW = {
    "bcast alpha+binomial": 3,
    "bcast alpha+scatter_ring_allgather": 3 + 4 * 3,
    "bcast alpha.mpir+scatter_ring_allgather": 3 + 4 * 3,
    "bcast beta+scatter_ring_allgather": 3 + 4 * 3,
    "allreduce alpha+tree(k=2)": 2 * 3,
    "allreduce alpha+recexch(k=4)": 4 * 3,
    "allreduce alpha+ring": 2 * 4 * 3,
    "barrier alpha+k_dissemination(k=2)": 4 * 2,
    "barrier alpha+k_dissemination(k=4)": 4 * 3,
    "barrier alpha.mpir+k_dissemination(k=4)": 4 * 3,
}
ROUNDS = [  # one choice for each collective, since they are counted in one run
    ("bcast alpha+binomial", "allreduce alpha+ring", "barrier alpha+k_dissemination(k=4)"),
    ("bcast alpha+scatter_ring_allgather", "allreduce alpha+tree(k=2)", "barrier alpha+k_dissemination(k=2)"),
    ("bcast alpha.mpir+scatter_ring_allgather", "allreduce alpha+recexch(k=4)"),
    ("bcast beta+scatter_ring_allgather", "barrier alpha.mpir+k_dissemination(k=4)"),
]


@pytest.mark.parametrize("labels", ROUNDS)
def test_what_a_file_puts_below_a_composition_runs_between_the_nodes(
    mpi: Installation, emitter: MpichEmitter, counted: Counted, labels: tuple[str, ...]
) -> None:
    if emitter.version < (4, 3):
        pytest.skip("recexch and tree are not in the files of all older versions")
    rule_sets = []
    for label in labels:
        name, _, text = label.partition(" ")
        basis = load("mpich", mpi.version).collective(name).basis
        rule_sets.append(RuleSet.always(name, basis, parse_choice(text)))
    calls = [(rules.collective, 4096) for rules in rule_sets]
    sent = counted(8, calls, rule_sets, MPIR_CVAR_NUM_CLIQUES="4")
    assert {label: sent[label.partition(" ")[0], 4096] for label in labels} == {label: BELOW[label] for label in labels}


@pytest.mark.parametrize(("choice", "reached"), [("alpha+binomial", False), ("alpha.mpir+binomial", True)])
def test_a_posix_file_hands_calls_inside_a_node_to_the_general_one(
    mpi: Installation, emitter: MpichEmitter, tmp_path: Path, choice: str, reached: bool
) -> None:
    """Two nodes of three ranks: a general file that ends the job where three ranks ask it about 4,096 bytes."""
    if emitter.version < (5, 0):
        pytest.skip("older versions tell the communicators of nodes and leaders apart")
    named = in_force(emitter, tmp_path, [RuleSet.always("bcast", SizeBasis.MESSAGE, parse_choice(choice))])
    general = parse_tree((tmp_path / GENERAL_FILE).read_bytes())
    intra = general["collective=bcast"]["comm_type=intra"]
    rest = list(intra)[-1]  # of those that are not the parent: what it is called follows from what stands before it
    inner = intra[rest]
    trap: Tree = {"algorithm=MPIR_Allgather_intra_ring": {}}
    sizes: Tree = {"avg_msg_size<=4095": inner, "avg_msg_size<=4096": trap, "avg_msg_size=any": inner}
    intra[rest] = {"comm_size<=2": inner, "comm_size=any": sizes}
    (tmp_path / GENERAL_FILE).write_bytes(format_tree(general))
    settings = {"MPIR_CVAR_NUM_CLIQUES": "2", "MPIR_CVAR_POSIX_NUM_COLLS_THRESHOLD": "0", "LD_PRELOAD": ucx_counter()}
    answer = run_to_end(
        [str(mpi.mpiexec), "-n", "6", *making(mpi.mpicc, [("bcast", 4096)], 6)],
        env={**os.environ, **QUIET, **settings, **named},
    )
    assert (answer.returncode != 0) == reached, answer.stderr


def test_the_default_trees_of_this_mpich_decide_every_tuned_collective(emitter: MpichEmitter) -> None:
    for content in emitter.emit([]).values():
        tree = parse_tree(content)
        for name in COLLECTIVES:
            for ranks in (1, 2, 3, 7, 8, 9, 64):
                for commutative in (True, False):
                    call = Call(name, ranks, message_bytes=1000, total_bytes=8000, count=250, commutative=commutative)
                    assert decide(tree, call, emitter.version) is not None, (name, call)
