"""MPICH's selection files: what they decide for any call, however unlucky."""

import os
import random
from dataclasses import replace
from itertools import product
from math import isqrt
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from mpich_trees import default_trees, leaves_of, meets

from colltune.catalog import load
from colltune.core.errors import InputError
from colltune.core.rules import Rule, RuleSet
from colltune.core.sample import DEFAULT, TUNABLE, Choice, Scenario, SizeBasis, parse_choice
from colltune.emit.lint.json_text import DEEPEST
from colltune.emit.mpich.below import written_by_file
from colltune.emit.mpich.pruned import Known
from colltune.emit.mpich.selection_file import CH4_FILE, GENERAL_FILE, POSIX_FILE, MpichEmitter
from colltune.emit.mpich.tree import MOST_IN_A_ROW, Call, Leaf, Tree, decide, format_tree, is_leaf, parse_tree
from emitter_laws import choices_in_file, random_rules, scenarios_at_bounds

VERSIONS = ("4.0.3", "4.1.3", "4.2.3", "4.3.2", "5.0.2")
GOLDEN = Path(__file__).parents[1] / "golden" / "mpich"


def emitter(version: str) -> MpichEmitter:
    return MpichEmitter(load("mpich", version), default_trees())


def uncomposed(version: str, collective: str) -> list[Choice]:
    """The choices that say nothing of what runs below a composition."""
    catalogue = load("mpich", version)
    choices = choices_in_file(catalogue, collective)
    return [c for c in choices if c == DEFAULT or not catalogue.algorithm(collective, c).composed]


def chosen(rule_set: RuleSet, call: Call) -> Choice:
    """What the rules say of ``call``; the default for calls that rules do not speak of."""
    if call.ranks == 1 or call.comm_type == "inter" or call.hierarchy not in ("parent", "flat"):
        return DEFAULT
    by_total = rule_set.collective.startswith(("allgather", "iallgather", "reduce_scatter"))
    size = call.total_bytes if by_total else call.message_bytes
    for rule in rule_set.rules:
        ppn_fits = rule.max_ppn is None or call.ranks <= rule.max_ppn * call.nodes
        if ppn_fits and rule.matches(0, call.ranks, 0 if rule_set.basis is SizeBasis.NONE else size):
            return rule.choice
    raise AssertionError("a rule set is total")


@st.composite
def calls(draw: st.DrawFn, collective: str) -> Call:
    hierarchy = draw(st.sampled_from(["parent", "parent", "parent", "flat", "node", "node_roots"]))
    ranks = draw(st.integers(1, 72))
    nodes = {"flat": ranks, "node": 1, "node_roots": ranks}.get(hierarchy) or draw(st.integers(1, max(1, ranks // 2)))
    call = Call(
        collective,
        ranks,
        nodes,
        hierarchy,
        # There is no scan between groups.
        "intra" if "scan" in collective else draw(st.sampled_from(["intra", "intra", "intra", "inter"])),
        draw(st.integers(0, 2**25)),
        draw(st.integers(0, 2**25)),
        draw(st.integers(0, 100)),
        *(draw(st.booleans()) for _ in range(6)),
    )
    return replace(call, builtin_op=call.builtin_op and call.commutative)  # those of MPI commute


@given(st.data(), st.sampled_from(VERSIONS), st.sampled_from(TUNABLE), st.integers(0, 10**6))
def test_any_call_gets_the_chosen_algorithm_or_where_that_cannot_run_the_default(
    data: st.DataObject, version: str, collective: str, seed: int
) -> None:
    catalogue, number = load("mpich", version), emitter(version).version
    basis = catalogue.collective(collective).basis
    rule_set = random_rules(seed, collective, basis, uncomposed(version, collective))
    rule_set = emitter(version).agreeing(rule_set)
    files = emitter(version).emit([rule_set])
    call = data.draw(calls(collective))
    expected = leaves_of(catalogue, chosen(rule_set, call), call)
    assert tuple(decide(parse_tree(files[name]), call, number) for name in (GENERAL_FILE, CH4_FILE)) == expected


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("collective", ["bcast", "allreduce", "alltoall", "iallreduce"])
def test_no_condition_is_asked_that_those_before_it_decide(version: str, collective: str) -> None:
    catalogue = load("mpich", version)
    basis = catalogue.collective(collective).basis
    rules = random_rules(5, collective, basis, uncomposed(version, collective))
    for content in emitter(version).emit([rules]).values():
        tree = parse_tree(content).get(f"collective={collective}")
        if tree is not None:
            require_open(tree["comm_type=intra"], Known(catalogue.release))


def require_open(tree: Tree, known: Known) -> None:
    for key, subtree in {} if is_leaf(tree) else tree.items():
        last = key == list(tree)[-1]
        assert known.holds(key) is (True if last and len(tree) > 1 else None), key
        if not is_leaf(subtree):
            assert not key.endswith("any"), "what it leads to could stand beside it"
            require_open(subtree, known.given(key, holds=True))
        known = known.given(key, holds=False)


def many_rules(sizes: int, ranks: int, ppns: int) -> RuleSet:
    """So many bounds at each level, with two choices by turns."""
    choices = (Choice("binomial"), Choice("scatter_ring_allgather"))
    rules = [
        Rule(ppn, most, size, choices[(a + b + c) % 2])
        for a, ppn in enumerate([*range(2, 2 + ppns), None])
        for b, most in enumerate([*range(4, 4 + ranks), None])
        for c, size in enumerate([*(16 * n for n in range(1, 1 + sizes)), None])
    ]
    return RuleSet("bcast", SizeBasis.MESSAGE, tuple(rules))


def depth(tree: Tree) -> int:
    return 1 + max(map(depth, tree.values()), default=0)


def tried(tree: Tree) -> int:
    """Sizes that MPICH compares with that of a call, at most."""
    most = before = 0
    for key, subtree in {} if is_leaf(tree) else tree.items():
        before += "msg_size<" in key
        most = max(most, before + tried(subtree))
    return most


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("counts", [(16, 0, 0), (17, 0, 0), (40, 2, 1), (3, 20, 9), (1, 2, 70), (300, 0, 0)])
def test_many_sizes_are_searched_in_groups(version: str, counts: tuple[int, int, int]) -> None:
    rules, one = many_rules(*counts), emitter(version)
    files = one.emit([rules])
    tree = parse_tree(files[GENERAL_FILE])["collective=bcast"]
    assert tried(tree) <= max(MOST_IN_A_ROW, 2 * isqrt(counts[0]) + 4)
    assert depth(parse_tree(files[GENERAL_FILE])) < DEEPEST
    shapes = [(ranks, nodes) for ranks in (2, 4, 5, 9, 23, 24, 70) for nodes in (1, 2, 5) if nodes <= ranks // 2]
    for size, shape in product((1, 16, 17, 127, 128, 129, 640, 641, 10**6), shapes):
        call = Call("bcast", *shape, "parent", message_bytes=size)
        leaf = decide(parse_tree(files[GENERAL_FILE]), call, one.version)
        assert leaf.name == load("mpich", version).algorithm("bcast", chosen(rules, call)).selection_name


LEADING = ("allreduce", "barrier", "bcast", "reduce")


@given(st.sampled_from(VERSIONS[1:]), st.sampled_from(LEADING), st.integers(0, 10**6))
@example("4.1.3", "allreduce", 14)
def test_what_runs_below_a_composition_is_what_was_chosen(version: str, collective: str, seed: int) -> None:
    catalogue, defaults, number = load("mpich", version), default_trees(), emitter(version).version
    composed = [c for c in catalogue.choices(collective) if c not in uncomposed(version, collective)]
    basis = catalogue.collective(collective).basis
    wished = random_rules(seed, collective, basis, random.Random(seed).sample(composed, 2))
    rule_set = emitter(version).agreeing(wished)
    files = emitter(version).emit([rule_set])
    general, posix = parse_tree(files[GENERAL_FILE]), parse_tree(files.get(POSIX_FILE, b"{}")) or defaults.posix
    assert posix is not None
    for scenario in scenarios_at_bounds(rule_set):
        choice = rule_set.evaluate(scenario)
        if choice not in composed or scenario.nodes == 1 or scenario.ppn == 1:
            continue
        algorithm = catalogue.algorithm(collective, choice)
        size, count = scenario.size_bytes, 2**20
        roots = Call(collective, scenario.nodes, scenario.nodes, "node_roots", message_bytes=size, count=count)
        node = Call(collective, scenario.ppn, 1, "node", message_bytes=size, count=count)
        for call in (roots, node) if algorithm.general_on_node else (roots,):
            expected = decide(defaults.general, call, number)
            if algorithm.leaders is not None and all(meets(call, need) for need in algorithm.leaders.needs):
                parameters = catalogue.selection_parameters(collective, choice)
                expected = Leaf(algorithm.leaders.selection_name, parameters)
            assert decide(general, call, number) == expected, (scenario, choice)
        shared = None if algorithm.general_on_node else decide(defaults.posix or {}, node, number)
        if algorithm.shares_nodes:
            assert decide(posix, node, number) == shared, (scenario, choice)


def test_rules_that_meet_below_a_composition_have_to_agree() -> None:
    """Four nodes of 2 and of 4 ranks have the same four leaders."""
    two, four = parse_choice("alpha+tree(k=2)"), parse_choice("beta+tree(k=3)")

    def rules(of_two: Choice, of_four: Choice) -> RuleSet:
        blocks = [
            Rule(1, None, None, DEFAULT),
            *(Rule(2, 7, None, DEFAULT), Rule(2, 8, None, of_two), Rule(2, None, None, DEFAULT)),
            *(Rule(3, None, None, DEFAULT), Rule(4, 15, None, DEFAULT), Rule(4, 16, None, of_four)),
            *(Rule(4, None, None, DEFAULT), Rule(None, None, None, DEFAULT)),
        ]
        return RuleSet("bcast", SizeBasis.MESSAGE, tuple(blocks))

    one = emitter("5.0.2")
    same = rules(two, replace(four, parameters=two.parameters))
    assert one.agreeing(same) == same
    assert one.emit([same])
    apart = rules(two, four)
    with pytest.raises(InputError, match="below a composition"):
        one.emit([apart])
    kept = one.agreeing(apart)
    assert kept.evaluate(Scenario("bcast", 4, 4, 64)) == four
    assert kept.evaluate(Scenario("bcast", 4, 2, 64)) == DEFAULT
    # The library's own choice of the leaders is a choice as well.
    assert one.agreeing(rules(Choice("alpha"), four)).evaluate(Scenario("bcast", 4, 2, 64)) == DEFAULT
    assert one.agreeing(rules(Choice("binomial"), four)) == rules(Choice("binomial"), four)


def test_a_posix_file_is_written_only_where_a_rule_needs_it() -> None:
    one = emitter("5.0.2")
    assert POSIX_FILE not in one.emit([RuleSet.always("bcast", SizeBasis.MESSAGE, Choice("alpha"))])
    files = one.emit([RuleSet.always("bcast", SizeBasis.MESSAGE, Choice("alpha.mpir"))])
    tree = parse_tree(files[POSIX_FILE])
    assert decide(tree, Call("bcast", 4, 1, "node"), (5, 0)) is None
    assert tree["collective=reduce"] == (default_trees().posix or {})["collective=reduce"]
    bare = MpichEmitter(load("mpich", "5.0.2"), replace(default_trees(), posix=None))
    with pytest.raises(InputError, match="shared memory"):
        bare.emit([RuleSet.always("bcast", SizeBasis.MESSAGE, Choice("alpha.mpir"))])


def test_every_other_collective_stays_as_it_was() -> None:
    defaults = default_trees()
    files = emitter("5.0.2").emit([RuleSet.always("bcast", SizeBasis.MESSAGE, Choice("binomial"))])
    for name, tree in ((GENERAL_FILE, defaults.general), (CH4_FILE, defaults.ch4)):
        written = parse_tree(files[name])
        assert list(written) == list(tree)
        written["collective=bcast"]["comm_type=intra"] = tree["collective=bcast"]["comm_type=intra"]
        assert written == tree


def test_bounds_beyond_31_bits_are_cut() -> None:
    bounds = ((2**31, Choice("binomial")), (2**40, Choice("nb")), (None, DEFAULT))
    rules = tuple(Rule(None, None, size, choice) for size, choice in bounds)
    text = emitter("5.0.2").emit([RuleSet("bcast", SizeBasis.MESSAGE, rules)])[GENERAL_FILE]
    assert b"avg_msg_size<=2147483647" in text
    assert b"2147483648" not in text
    call = Call("bcast", 4, message_bytes=2**31 - 1)
    assert decide(parse_tree(text), call, (5, 0)) == Leaf("MPIR_Bcast_intra_binomial")


def test_no_file_has_a_length_of_whole_pages() -> None:
    lengths = [len(format_tree({"algorithm=" + "x" * extra: {}})) for extra in range(4000, 8200)]
    assert all(length % 4096 for length in lengths)
    assert sum(length % 4096 == 1 for length in lengths) == 4


def always(collective: str, basis: SizeBasis, choice: str) -> RuleSet:
    return RuleSet.always(collective, basis, parse_choice(choice))


GATHERV = always("gather", SizeBasis.NONE, "gatherv")
# MPI_Allgather with ``nb`` is MPI_Iallgather, on the same communicator.
NB = always("allgather", SizeBasis.TOTAL, "nb")


@pytest.mark.parametrize(
    ("version", "rule_sets", "says"),
    [
        ("5.0.2", [always("scan", SizeBasis.MESSAGE, "nb")], "compare sizes"),
        ("5.0.2", [GATHERV], "gather gatherv cannot be written to a file"),
        ("4.2.3", [always("allreduce", SizeBasis.MESSAGE, "recursive_multiplying(k=2)")], "recursive_multiplying"),
        ("4.3.2", [always("allreduce", SizeBasis.MESSAGE, "recursive_multiplying(k=2)")], ""),
        ("5.0.2", [NB, always("iallgather", SizeBasis.TOTAL, "sched_ring")], "allgather makes the non-blocking call"),
        ("5.0.2", [NB, always("iallgather", SizeBasis.TOTAL, "default"),
                   always("ibcast", SizeBasis.MESSAGE, "sched_binomial")], ""),
    ],
)  # fmt: skip
def test_what_no_file_can_say_is_refused(version: str, rule_sets: list[RuleSet], says: str) -> None:
    if says:
        with pytest.raises(InputError, match=says):
            emitter(version).emit(rule_sets)
    else:
        assert emitter(version).emit(rule_sets)


def test_what_no_file_can_say_keeps_the_default() -> None:
    catalogue, tree = load("mpich", "5.0.2"), always("allreduce", SizeBasis.MESSAGE, "tree(k=2)")
    assert not written_by_file(catalogue, GATHERV).departs
    assert written_by_file(catalogue, tree) == tree


def test_a_call_is_what_the_scenario_measures() -> None:
    call = Call.of(Scenario("allgather", 2, 3, 100))
    assert (call.ranks, call.total_bytes, call.hierarchy) == (6, 600, "parent")
    assert Call.of(Scenario("reduce_scatter", 2, 2, 80)) == replace(
        Call("reduce_scatter", 4, 2), message_bytes=80, total_bytes=80, count=20
    )
    assert Call.of(Scenario("allreduce", 4, 1, 80), "multiple").multi_threaded
    assert Call.of(Scenario("allreduce", 4, 1, 80)).hierarchy == "flat"


@pytest.mark.parametrize("version", ["4.0.3", "4.2.3", "5.0.2"])
def test_golden_files(version: str) -> None:
    """The files for a fixed set of rules, byte for byte. RENEW_GOLDEN=1 writes them anew."""
    for name, content in emitter(version).emit(golden_rules(version)).items():
        golden = GOLDEN / version[:3] / name
        if "RENEW_GOLDEN" in os.environ:
            golden.write_bytes(content)
        assert content == golden.read_bytes()


def golden_rules(version: str) -> list[RuleSet]:
    old = version.startswith("4.0")
    rows: dict[str, list[tuple[int | None, int | None, int | None, str]]] = {
        "bcast": [(1, None, 1024, "binomial" if old else "tree(k=4)"), (1, None, None, "default"),
                  (None, 4, None, "default" if old else "alpha"),
                  (None, None, 65536, "scatter_recursive_doubling_allgather"),
                  (None, None, None, "scatter_ring_allgather")],
        "allreduce": [(None, None, 64, "recursive_doubling"), (None, None, None, "reduce_scatter_allgather")],
        "barrier": [(None, None, None, "dissemination" if old else "k_dissemination(k=4)")],
        "alltoall": [(None, None, None, "pairwise")],
        "ibcast": [(1, None, None, "default"), (None, None, 65536, "tsp_tree(k=4)"),
                   (None, None, None, "tsp_ring(chunk_size=8192)")],
        "iallreduce": [(None, 8, 64, "tsp_recexch_multiple_buffer(k=3)"),
                       (None, 8, None, "sched_reduce_scatter_allgather"), (None, None, None, "tsp_tree(k=2)")],
        "ialltoall": [(None, None, None, "sched_brucks")],
        "iallgather": [(None, None, None, "sched_recursive_doubling")],
    }  # fmt: skip
    basis = load("mpich", version).collective
    return [
        RuleSet(name, basis(name).basis, tuple(Rule(*bounds, parse_choice(text)) for *bounds, text in some))
        for name, some in rows.items()
    ]
