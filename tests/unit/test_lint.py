"""Lint says what MPICH would do with a selection file: no more, no less."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from mpich_trees import default_trees
from test_emit_mpich import calls, meets

from colltune.catalog import Need, load
from colltune.core.sample import TUNABLE, blocking_form
from colltune.emit.lint.check import Check, Severity, format_check
from colltune.emit.lint.json_text import DEEPEST, JsonValue, NotJsonError, read_json
from colltune.emit.lint.leaf import leaf_names
from colltune.emit.lint.selection_file import lint_files
from colltune.emit.mpich.selection_file import MpichEmitter
from colltune.emit.mpich.tree import Call, Leaf, Tree, decide, format_tree
from emitter_laws import choices_in_file, random_rules
from lint_trees import complete_trees, leaf

VERSIONS = ("4.0.3", "4.1.3", "4.2.3", "4.3.2", "5.0.2")
RING = leaf("MPIR_Allgather_intra_ring")
DOUBLING = leaf("MPIR_Allgather_intra_recursive_doubling")
BINOMIAL = leaf("MPIR_Bcast_intra_binomial")
SCATTERED = leaf("MPIR_Alltoall_intra_scattered")
FLAT = leaf("MPIR_Allreduce_intra_recursive_doubling")
LONG = leaf("MPIR_Allreduce_intra_reduce_scatter_allgather")


def lint(data: bytes, version: str = "5.0.2") -> list[Check]:
    return lint_files({"a.json": data}, version, load("mpich", version))


def file_with(collective: str, intra: Any, version: str = "5.0.2") -> bytes:
    """A complete file, with ``intra`` for the intracommunicators of one collective."""
    general = complete_trees(load("mpich", version)).general
    key = f"collective={collective}"
    return json.dumps({**general, key: {**general[key], "comm_type=intra": intra}}, indent=1).encode() + b"\n"


@pytest.mark.parametrize("version", VERSIONS)
def test_complete_trees_are_clean(version: str) -> None:
    trees = complete_trees(load("mpich", version))
    for tree in (trees.general, trees.ch4):
        assert [format_check(check) for check in lint(format_tree(tree), version)] == []


@settings(max_examples=25)
@given(st.sampled_from(VERSIONS), st.sets(st.sampled_from(TUNABLE), min_size=1, max_size=3), st.integers(0, 10**6))
def test_what_colltune_writes_is_clean(version: str, collectives: set[str], seed: int) -> None:
    catalogue = load("mpich", version)
    rule_sets = [
        random_rules(seed, name, catalogue.collective(name).basis, choices_in_file(catalogue, name))
        for name in collectives
        if blocking_form(name) == name or blocking_form(name) not in collectives
    ]
    emitter = MpichEmitter(catalogue, replace(complete_trees(catalogue), posix=default_trees().posix))
    files = emitter.emit([emitter.agreeing(rule_set) for rule_set in rule_sets])
    assert [format_check(check) for check in lint_files(files, version, catalogue)] == []


TREE_42 = {"is_non_blocking": 1, "tree_type": 1, "k": 2}
WAVE = {**TREE_42, "tree_type": "topology_wave"}
OWN_APART = {"is_op_built_in=no": FLAT, "any": LONG}
FAULTS = [
    ("5.0.2", "allgather", DOUBLING, "recursive_doubling can be reached on 3 ranks"),
    ("5.0.2", "allgather", {"comm_size<=2": DOUBLING, "comm_size=any": RING}, None),
    ("5.0.2", "allgather", {"comm_size<=4": DOUBLING, "comm_size=any": RING}, "on 3 ranks"),
    ("5.0.2", "allgather", {"comm_size<=4": RING, "comm_size<6": DOUBLING, "comm_size=any": RING}, "on 5 ranks"),
    ("5.0.2", "allgather", {"comm_size=pow2": RING, "comm_size=any": DOUBLING}, "on 3 ranks"),
    ("5.0.2", "allgather", {"avg_msg_size<=8": RING, "avg_msg_size=any": RING}, "is not made for allgather"),
    ("5.0.2", "allgather", {"total_msg_size<=8": RING}, "no rule follows this comparison"),
    ("5.0.2", "allgather", {"comm_size=any": RING, "comm_size<=8": RING}, "rules follow the one that takes all calls"),
    ("5.0.2", "allgather", {"comm_size<=16": RING, "comm_size<=8": RING, "comm_size=any": RING}, "never reached"),
    ("5.0.2", "allgather", {"comm_size<=8": RING, "comm_size<9": RING, "comm_size=any": RING}, "never reached"),
    ("5.0.2", "allgather", {"comm_size<=4294967297": RING, "comm_size=any": RING}, "is not what it says"),
    ("5.0.2", "allgather", {"comm_size<=1k": RING, "comm_size=any": RING}, "is not what it says"),
    ("5.0.2", "allgather", {"comm_siez<=8": RING, "comm_size=any": RING}, 'does not know "comm_siez<=8"'),
    ("5.0.2", "allgather", {}, "the rule is empty"),
    ("5.0.2", "allgather", 5, "a value where an object is due"),
    ("5.0.2", "allgather", leaf("MPIR_Allgather_intra_rings"), "has no algorithm"),
    ("5.0.2", "allgather", leaf("MPIR_Bcast_intra_binomial"), "is of bcast, and the rule is of allgather"),
    ("5.0.2", "allgather", leaf("MPIR_Allgather_inter_local_gather_remote_bcast"), "on an intracommunicator"),
    ("5.0.2", "allgather", {"composition=MPIDI_Allgather_intra_composition_beta": {}}, "belongs in MPICH's ch4 file"),
    ("5.0.2", "allgather", {**RING, "comm_size=any": RING}, "stands beside an algorithm"),
    ("5.0.2", "allgather", leaf("MPIR_Allgather_intra_k_brucks"), "k is not given"),
    ("5.0.2", "allgather", leaf("MPIR_Allgather_intra_k_brucks", k=2), None),
    ("5.0.2", "allgather", leaf("MPIR_Allgather_intra_k_brucks", k=1), "is not understood"),
    ("5.0.2", "allgather", leaf("MPIR_Allgather_intra_k_brucks", k="two"), "is not understood"),
    ("5.0.2", "allgather", leaf("MPIR_Allgather_intra_k_brucks", k=2, radix=2), 'the parameter "radix=2"'),
    ("4.0.3", "allgather", leaf("MPIR_Allgather_intra_k_brucks", k=2), "has no algorithm"),
    ("4.1.3", "allgather", {"any": RING}, 'does not know "any"'),
    ("4.2.3", "allgather", {"any": RING}, None),
    ("4.1.3", "allgather", {"comm_avg_ppn<2": RING, "comm_size=any": RING}, "does not know"),
    ("4.2.3", "bcast", leaf("MPIR_Bcast_intra_tree", **TREE_42), None),
    ("4.2.3", "bcast", leaf("MPIR_Bcast_intra_tree", **{**TREE_42, "tree_type": "kary"}), "is not understood"),
    ("4.3.2", "bcast", leaf("MPIR_Bcast_intra_tree", **{**TREE_42, "tree_type": "kary"}), None),
    ("4.3.2", "bcast", leaf("MPIR_Bcast_intra_tree", **WAVE), "topo_overhead is not given"),
    ("5.0.2", "bcast", {"avg_msg_size<=8": {"comm_size<4": BINOMIAL, "comm_size=any": BINOMIAL}}, "means <= here"),
    ("5.0.2", "bcast", {"comm_size<4": {"comm_size<3": BINOMIAL, "comm_size=any": BINOMIAL}}, "no rule follows"),
    ("5.0.2", "bcast", {"is_multi_threaded=no": BINOMIAL}, "calls with is_multi_threaded=yes have no rule"),
    ("5.0.2", "bcast", {"is_commutative=yes": BINOMIAL, "is_commutative=no": BINOMIAL}, "is not made for bcast"),
    ("5.0.2", "bcast", leaf("MPIR_Bcast_intra_smp"), "one rank per node"),
    ("5.0.2", "alltoall", SCATTERED, "scattered can be reached in place"),
    ("5.0.2", "alltoall", leaf("MPIR_Alltoall_intra_pairwise_sendrecv_replace"), "can be reached not in place"),
    ("5.0.2", "alltoall", {"avg_msg_size<=8": SCATTERED, "comm_size=any": SCATTERED}, "ranks can disagree"),
    ("5.0.2", "alltoallv", {"total_msg_size<=8": {}, "comm_size=any": {}}, "ranks can disagree"),
    ("5.0.2", "gather", {"total_msg_size<=8": {}, "comm_size=any": {}}, "ranks can disagree"),
    ("5.0.2", "barrier", leaf("MPIR_Barrier_intra_recexch", k=2), "random parameter"),
    ("5.0.2", "allreduce", LONG, "with fewer elements than ranks"),
    ("5.0.2", "allreduce", LONG, "operation of the user's own"),
    ("5.0.2", "allreduce", {"is_op_built_in=no": FLAT, "is_op_built_in=yes": LONG}, "fewer elements than ranks"),
    ("5.0.2", "allreduce", {"count<=99": FLAT, "count=any": OWN_APART}, "fewer elements"),
    ("5.0.2", "allreduce", {"comm_size<=99": {"count<=63": FLAT, "count=any": OWN_APART}, "any": FLAT}, None),
    ("5.0.2", "allreduce", leaf("MPIR_Allreduce_intra_ring"), "does not commute"),
    ("5.0.2", "allreduce", {"is_op_built_in=yes": leaf("MPIR_Allreduce_intra_ring"), "is_op_built_in=no": FLAT}, None),
    ("5.0.2", "reduce_scatter", leaf("MPIR_Reduce_scatter_intra_noncommutative"), "with unequal counts"),
]


@pytest.mark.parametrize(("version", "collective", "intra", "expected"), FAULTS)
def test_each_fault_is_found_and_no_other_file_is_blamed(
    version: str, collective: str, intra: Tree, expected: str | None
) -> None:
    data = file_with(collective, intra, version)
    found = lint(data, version)
    if expected is None:
        assert [format_check(check) for check in found] == []
        return
    matching = [check for check in found if expected in check.what]
    assert matching, [check.what for check in found]
    lines = data.decode().split("\n")
    for check in found:
        assert check.path[:2] == (f"collective={collective}", "comm_type=intra")
        assert f'"{check.path[-1]}"' in lines[check.line - 1]
        assert check.why
        assert check.fix


def nested(levels: int) -> Tree:
    return {"comm_size=any": nested(levels - 1)} if levels else BINOMIAL


WHOLE = complete_trees(load("mpich", "5.0.2")).general
WITHOUT = {key: tree for key, tree in WHOLE.items() if key not in ("collective=exscan", "collective=iscan")}
ALLGATHER = {**WHOLE, "collective=allgather": {"comm_type=intra": DOUBLING, "comm_type=inter": {}}}
ALPHA, GAMMA = ({f"composition=MPIDI_Bcast_intra_composition_{name}": {}} for name in ("alpha", "gamma"))
RELEASE = leaf("MPIDI_POSIX_mpi_bcast_release_gather")
OF_BCAST = file_with("bcast", BINOMIAL)
# Of whole files: the first thing that is found, or nothing.
FILES: list[tuple[Tree | bytes, str, Severity]] = [
    (b"", "is empty", Severity.ERROR),
    (b" \n\0\0", "is empty", Severity.ERROR),
    (b'{"collective=bcast": {"comm_ty', "is not JSON", Severity.ERROR),
    (b'{"collective=bcast": {', "is cut off", Severity.ERROR),
    (b'{"collective=bcast" {}}', "has no :", Severity.ERROR),
    (b"{} {}", "goes on after its end", Severity.ERROR),
    (b"\xff\xfe", "no UTF-8", Severity.ERROR),
    (b'{"a": ' * 40 + b"1" + b"}" * 40, "levels deep", Severity.ERROR),
    (b"[]", "is no object", Severity.ERROR),
    (b"{}", "collectives have no rules: all", Severity.ERROR),
    (WITHOUT, "exscan, iscan", Severity.ERROR),
    # The files of the device may leave collectives out.
    ({"collective=bcast": {"comm_type=intra": {"comm_hierarchy=parent": ALPHA}}}, "", Severity.ERROR),
    ({"collective=bcast": {"comm_type=intra": ALPHA}}, "one rank per node", Severity.ERROR),
    ({"collective=bcast": {"comm_type=intra": {"comm_size<=4": GAMMA}}}, "no rule follows", Severity.ERROR),
    ({"collective=bcast": {"is_multi_threaded=no": RELEASE}}, "", Severity.WARNING),
    ({"collective=bcast": RELEASE}, "release", Severity.WARNING),
    # Operators above all collectives are followed.
    ({"comm_size<=4": WHOLE, "comm_size=any": WHOLE}, "", Severity.ERROR),
    ({"comm_size=pow2": ALLGATHER, "comm_size=any": WHOLE}, "the rule is empty", Severity.ERROR),
    ({"avg_msg_size<=4": WHOLE, "comm_size=any": WHOLE}, "stands above every collective", Severity.ERROR),
    ({**WHOLE, "comm_size=any": WHOLE}, "stands beside collectives", Severity.ERROR),
    (file_with("bcast", nested(20)), "", Severity.WARNING),
    (file_with("bcast", nested(27)), "MPI_Init takes about", Severity.WARNING),
    (OF_BCAST + b" " * (-len(OF_BCAST) % 4096), "multiple of 4096", Severity.WARNING),
    (file_with("bcast", {" comm_size <= 8": BINOMIAL, "comm_size = any": BINOMIAL}), "", Severity.ERROR),
]


@pytest.mark.parametrize(("given", "says", "severity"), FILES)
def test_a_whole_file_is_clean_or_has_one_fault(given: Tree | bytes, says: str, severity: Severity) -> None:
    found = lint(given if isinstance(given, bytes) else format_tree(given))
    assert says in (found[0].what if found else "")
    assert bool(found) == bool(says)
    assert not found or found[0].severity is severity
    assert len(found) <= 1 or "above every collective" in says


def test_a_key_that_occurs_twice_and_the_line_of_a_truncated_file_are_found() -> None:
    twice = OF_BCAST.replace(b'"collective=barrier"', b'"collective=bcast"')
    assert sum("twice" in check.what for check in lint(twice)) == 1
    cut = OF_BCAST[: len(OF_BCAST) // 2]
    (check,) = lint(cut)
    assert check.line == cut.count(b"\n") + 1


PIECES = [
    *("comm_size<=4", "comm_size<8", "comm_size=pow2", "comm_size=any", "any", "comm_avg_ppn<=2", "comm_avg_ppn<2"),
    *("avg_msg_size<=9", "total_msg_size<=-9", "count<pow2", "count<=7", "count=any", "comm_hierarchy=parent", "=any"),
    *("collective=bcast", "collective=x", "comm_type=intra", "comm_size<=", "comm_size<=99999999999", "", "x\ud800"),
    *("algorithm=MPIR_Bcast_intra_binomial", "composition=", "algorithm=MPIR_Bcast_intra_tree", "tree_type=9", "k="),
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(PIECES), inner, max_size=4),
    max_leaves=30,
)


@given(JSON)
def test_the_reader_reads_what_json_reads(value: Any) -> None:
    text = json.dumps(value, indent=1)
    depth = max((len(line) - len(line.lstrip()) for line in text.split("\n")), default=0) + 1
    assume(depth <= DEEPEST)
    lines = text.split("\n")

    def compare(node: JsonValue, value: Any) -> None:
        if not isinstance(value, dict):
            assert node.entries is None
            return
        assert node.entries is not None
        assert [entry.key for entry in node.entries] == list(value)
        for entry in node.entries:
            assert json.dumps(entry.key) in lines[entry.line - 1]
            compare(entry.value, value[entry.key])

    compare(read_json(text.encode()), value)


@given(JSON, st.integers(0, 400), st.sampled_from(['"', "{", "}", "[", "]", ",", ":", "\\", "1", "\0", ""]))
def test_the_reader_refuses_what_json_refuses(value: Any, position: int, piece: str) -> None:
    text = json.dumps(value, indent=1)
    spoilt = text[:position] + piece + text[position + 1 :]
    try:
        json.loads(spoilt)
    except ValueError:
        with pytest.raises(NotJsonError):
            read_json(spoilt.encode())


def needs_met(found: Leaf | None, call: Call, version: str) -> bool:
    if found is None:
        return False
    known = leaf_names(load("mpich", version))[found.name]
    ways = {"intra": call.comm_type == "intra", "inter": call.comm_type == "inter"}
    smp_of_nothing = found.name == "MPIR_Allreduce_intra_smp" and call.message_bytes == 0
    return all(ways[need] if need in ways else meets(call, Need(need)) or smp_of_nothing for need in known.needs)


OPERATORS = {
    "allreduce": ["avg_msg_size<={}", "count<={}", "is_commutative=yes", "is_commutative=no", "is_op_built_in=no"],
    "allgather": ["total_msg_size<={}", "count<={}"],
    "alltoall": ["is_sendbuf_inplace=yes", "is_sendbuf_inplace=no", "avg_msg_size<{}"],
    "reduce_scatter": ["is_block_regular=yes", "is_commutative=yes", "total_msg_size<{}"],
}
COMMON = [
    *("comm_size<={}", "comm_size<{}", "comm_size=pow2", "comm_size=node_comm_size", "count<pow2"),
    *("comm_hierarchy=parent", "comm_hierarchy=node", "comm_avg_ppn<={}", "comm_avg_ppn<{}"),
    *("comm_type=inter", "comm_type=intra"),
]


@st.composite
def rule_trees(draw: st.DrawFn, collective: str, version: str, depth: int = 0) -> Tree:
    catalogue = load("mpich", version)
    if depth == 4 or draw(st.integers(0, 3)) < depth:
        names = [n for n, k in leaf_names(catalogue).items() if k.collective == collective and n.startswith("MPIR")]
        name = draw(st.sampled_from(names))
        return leaf(name, **dict(leaf_names(catalogue)[name].parameters))
    tree: Tree = {}
    for _ in range(draw(st.integers(1, 3))):
        key = draw(st.sampled_from(COMMON + OPERATORS[collective])).format(draw(st.integers(0, 20)))
        tree[key] = draw(rule_trees(collective, version, depth + 1))
    if draw(st.integers(0, 3)):
        tree.pop("comm_size=any", None)
        tree["comm_size=any"] = draw(rule_trees(collective, version, depth + 1))
    return tree


def legal(call: Call) -> bool:
    """MPI's own operations commute; between two groups nothing is in place."""
    return (call.commutative or not call.builtin_op) and not (call.comm_type == "inter" and call.in_place)


@given(st.data(), st.sampled_from(VERSIONS), st.sampled_from(sorted(OPERATORS)))
def test_where_lint_finds_no_error_every_call_reaches_an_algorithm_that_can_serve_it(
    data: st.DataObject, version: str, collective: str
) -> None:
    tree = data.draw(rule_trees(collective, version))
    general = {**complete_trees(load("mpich", version)).general, f"collective={collective}": tree}
    found = [check for check in lint(format_tree(general), version) if check.severity is Severity.ERROR]
    major, minor = map(int, version.split(".")[:2])
    call = data.draw(calls(collective))
    assume(legal(call))
    if not found:
        assert needs_met(decide(general, call, (major, minor)), call, version)
