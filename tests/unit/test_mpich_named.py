"""Named trees for MPICH's redesigned selection: bytes and decisions, and each trap of the format as a finding."""

import json
from pathlib import Path

import pytest
from named_trees import own_trees, write_library
from typer.testing import CliRunner

from colltune.catalog import load
from colltune.cli.app import app
from colltune.core.choice import DEFAULT, Choice, parse_choice
from colltune.core.errors import InputError
from colltune.core.rules import Rule, RuleSet
from colltune.core.scenario import SizeBasis
from colltune.core.space import shapes
from colltune.emit.lint.check import Check, format_check
from colltune.emit.next.lint_named import lint_named_files
from colltune.emit.next.mpich_named import NAMED_FILE, MpichNamedEmitter, cut_named_trees
from colltune.emit.next.mpich_named_grammar import ALGORITHMS, parse_condition
from colltune.machine.file_formats import Format, recognise
from emitter_laws import EmitterContract, random_rules

VERSION = "5.1.0"
GOLDEN = Path(__file__).parents[1] / "golden" / "mpich" / "5.1" / NAMED_FILE
CATALOGUE = load("mpich", "5.0.2")
LEAF = {"algorithm=MPIR_Bcast_intra_binomial": {}}


EMITTER = MpichNamedEmitter(CATALOGUE, own_trees())


class TestNamedTrees(EmitterContract):
    def emitter(self) -> MpichNamedEmitter:
        return EMITTER

    def collectives(self) -> dict[str, tuple[SizeBasis, tuple[Choice, ...]]]:
        entries = [entry for entry in CATALOGUE.entries.values() if entry.nothing_to_tune is None]
        return {entry.name: (entry.basis, CATALOGUE.choices(entry.name)) for entry in entries}

    def expressible(self, rule_set: RuleSet) -> RuleSet:
        return EMITTER.expressible(rule_set, shapes(16, 16))


@pytest.mark.parametrize("seed", range(20))
def test_what_colltune_writes_is_clean(seed: int) -> None:
    rule_sets = [
        EMITTER.expressible(random_rules(seed, name, e.basis, CATALOGUE.choices(name)), shapes(8, 8))
        for name, e in CATALOGUE.entries.items()
        if e.nothing_to_tune is None
    ]
    data = EMITTER.emit(rule_sets)[NAMED_FILE]
    assert recognise(data).format is Format.MPICH_NAMED
    assert len(data) % 4096
    assert [format_check(one) for one in lint_named_files({NAMED_FILE: data}, VERSION)] == []


def test_preconditions_stand_before_a_choice_and_the_own_tree_behind() -> None:
    rules = RuleSet.always("allreduce", SizeBasis.MESSAGE, Choice("reduce_scatter_allgather"))
    trees = json.loads(EMITTER.emit([EMITTER.expressible(rules, shapes(2, 2))])[NAMED_FILE])
    own = "call=allreduce-colltune-own"
    leaf = {"algorithm=MPIR_Allreduce_intra_reduce_scatter_allgather": {}}
    guarded = {"builtin_op": {"count_ge_pof2": leaf, "any": own}, "any": own}
    assert trees["name=allreduce-intra-auto"] == {"comm_size<=1": own, "any": guarded}
    assert trees["name=allreduce-colltune-own"] == own_trees()["allreduce-intra-auto"]


def test_what_is_gone_keeps_the_default() -> None:
    composed = RuleSet.always("bcast", SizeBasis.MESSAGE, Choice("alpha"))
    assert not EMITTER.expressible(composed, shapes(4, 4)).departs
    by_ppn = RuleSet(
        "bcast", SizeBasis.MESSAGE, (Rule(1, None, None, DEFAULT), Rule(None, None, None, Choice("binomial")))
    )
    with pytest.raises(InputError, match="ranks per node"):
        EMITTER.emit([by_ppn])
    with pytest.raises(InputError, match="cannot be written"):
        EMITTER.emit([composed])


def golden_rules() -> list[RuleSet]:
    recursive = Choice("scatter_recursive_doubling_allgather")
    small = (Rule(None, 16, 12288, Choice("binomial")), Rule(None, 16, None, recursive))
    sized = (*small, Rule(None, None, None, DEFAULT))
    return [
        RuleSet("bcast", SizeBasis.MESSAGE, sized),
        RuleSet.always("allgather", SizeBasis.TOTAL, parse_choice("k_brucks(k=4)")),
        RuleSet.always("alltoall", SizeBasis.MESSAGE, Choice("pairwise")),
        RuleSet.always("barrier", SizeBasis.NONE, parse_choice("k_dissemination(k=2)")),
    ]


def test_golden_file() -> None:
    """Byte for byte. Run this file as a program to write it again."""
    assert EMITTER.emit(golden_rules())[NAMED_FILE] == GOLDEN.read_bytes()


def test_the_own_trees_are_cut_from_the_library(tmp_path: Path) -> None:
    library = tmp_path / "libmpi.so"
    write_library(library)
    assert cut_named_trees(library) == own_trees()
    library.write_bytes(b"\x7fELF\0")
    with pytest.raises(InputError, match="no named selection trees"):
        cut_named_trees(library)


@pytest.mark.parametrize(
    ("key", "about", "negated", "most"),
    [
        ("comm_size<=8", "comm_size", False, 8),
        ("comm_size<8", "comm_size", False, 7),
        ("comm_size(8)", "comm_size", False, 8),
        ("comm_size>8", "comm_size", True, 8),
        ("comm_size>=8", "comm_size", True, 7),
        ("!avg_msg_size<=8", "avg_msg_size", True, 8),
        ("!comm_size>8", "comm_size", True, 8),
        ("!pof2", "pof2", True, None),
    ],
)
def test_a_condition_is_read_as_the_library_reads_it(key: str, about: str, negated: bool, most: int | None) -> None:
    found = parse_condition(key)
    assert found is not None
    assert (found.about, found.negated, found.most) == (about, negated, most)


def lint(trees: object, version: str = VERSION) -> list[Check]:
    return lint_named_files({"a.json": json.dumps(trees, indent=1).encode()}, version)


def bcast(tree: object) -> dict[str, object]:
    return {"name=bcast-intra-auto": tree}


OTHER = "call=bcast-inter-auto"  # a tree of the library itself, which is not looked into


def undefined(collective: str, condition: str) -> dict[str, object]:
    return {f"name={collective}-intra-auto": {condition: OTHER, "any": OTHER}}


def tree(k: str, tree_type: str = "kary") -> dict[str, object]:
    return {"algorithm=MPIR_Bcast_intra_tree": {f"tree_type={tree_type}": {}, k: {}, "is_non_blocking=1": {}}}


RECURSIVE = {"algorithm=MPIR_Bcast_intra_scatter_recursive_doubling_allgather": {}}
TRAPS = [
    (bcast({"comm_avg_ppn<=8": LEAF, "any": LEAF}), "error", "no condition 'comm_avg_ppn<=8'", "cannot be asked for"),
    (bcast({"comm_size <= 8": LEAF, "any": LEAF}), "error", "no condition 'comm_size <= 8'", "without spaces"),
    (bcast({"algorithm=MPIDI_Bcast_intra_composition_alpha": {}}), "error", "no algorithm MPIDI_Bcast", "that there"),
    (bcast({"algorithm=MPIR_Bcast_intra_fast": {}}), "error", "no algorithm MPIR_Bcast_intra_fast", "that there is"),
    (bcast(RECURSIVE), "error", "do not meet pof2", "'pof2'"),
    (bcast({"pof2": LEAF, "any": RECURSIVE}), "error", "do not meet pof2", "'pof2'"),
    (bcast({"comm_size<=8": LEAF}), "error", "no branch takes", '"any"'),
    (bcast({"any": LEAF, "pof2": LEAF}), "warning", "'pof2' is out of reach", "first"),
    (bcast({"comm_size<=8k": LEAF, "any": LEAF}), "error", "is no number", "digits"),
    (bcast({"avg_msg_size<=4294967296": LEAF, "any": LEAF}), "error", "too large", "2147483647"),
    (bcast({"!comm_size>8": LEAF, "any": LEAF}), "warning", "means 'comm_size>8'", "without !"),
    (bcast({**LEAF, "any": LEAF}), "error", "beside conditions", "of its own"),
    (bcast({}), "error", "nothing stands here", "call a tree"),
    (bcast("call=nowhere"), "error", "no tree nowhere", "that there is"),
    (bcast("bcast-intra-auto"), "error", "stands where a tree is due", "call=NAME"),
    (bcast("call=bcast-intra-auto"), "error", "in a circle", "another name"),
    (bcast("call=auto"), "error", "in a circle", "another name"),
    ({**bcast("call=mine"), "name=mine": "call=bcast-intra-auto"}, "error", "-intra-auto -> mine -> bcast", "name"),
    (bcast({"algorithm=MPIR_Bcast_intra_tree": {"k=2": {}}}), "error", "not complete", "tree_type, k, is_non_blocking"),
    (bcast({"algorithm=MPIR_Bcast_intra_binomial": {"k=2": {}}}), "warning", "no parameter 'k'", "leave it out"),
    (bcast({"algorithm=MPIR_Barrier_intra_k_dissemination": {"k=2": {}}}), "error", "no algorithm of bcast", "bcast"),
    ({"name=bcast-auto": LEAF}, "warning", "nothing calls the tree bcast-auto", "bcast-intra-auto"),
    ({**bcast(LEAF), "any": LEAF}, "error", "'any' stands beside named trees", "name="),
    (
        {"name=allgather-intra-auto": {"avg_msg_size<=8": "call=bcast-inter-auto", "any": "call=bcast-inter-auto"}},
        "error",
        "avg_msg_size is not defined for allgather",
        "total_msg_size",
    ),
    (undefined("barrier", "total_msg_size<=8"), "error", "total_msg_size is not defined for barrier", "leave it out"),
    (undefined("iscan", "commutative"), "error", "commutative is not defined for iscan", "leave it out"),
    (undefined("scan", "builtin_op"), "error", "builtin_op is not defined for scan", "leave it out"),
    (undefined("reduce_scatter", "!builtin_op"), "error", "builtin_op is not defined for reduce_scatter", "leave it"),
    (undefined("bcast", "count_ge_pof2"), "error", "count_ge_pof2 is not defined for bcast", "leave it out"),
    (undefined("reduce_scatter_block", "block_regular"), "error", "block_regular is not defined for", "leave it out"),
    (undefined("allreduce", "inplace"), "error", "inplace is not defined for allreduce", "leave it out"),
    (undefined("alltoallv", "displs_ordered"), "warning", "displs_ordered is not defined for alltoallv", "leave it"),
    (bcast(tree("k=0")), "error", "the value in 'k=0' is not understood", "k=1"),
    (bcast(tree("k=many")), "error", "the value in 'k=many' is not understood", "number"),
    (bcast(tree("k=2", "kary_of_tomorrow")), "error", "'tree_type=kary_of_tomorrow' is not understood", "kary"),
    (
        {"name=bcast-inter-auto": {"comm_size<=8": "call=bcast-intra-auto", "any": "call=bcast-intra-auto"}},
        "error",
        "comm_size is not defined for intercommunicators",
        "leave it out",
    ),
    (
        {"name=reduce-intra-auto": {"commutative": {"algorithm=MPIR_Reduce_intra_circ_graph": {}}, "any": OTHER}},
        "warning",
        "MPIR_Reduce_intra_circ_graph is not safe for every legal call",
        "use another one",
    ),
    ({"name=auto": {"collective=bcast": LEAF}}, "error", "no collective 'collective=bcast'", "bcast-intra"),
]  # fmt: skip


@pytest.mark.parametrize(("trees", "severity", "what", "fix"), TRAPS)
def test_each_trap_is_found(trees: object, severity: str, what: str, fix: str) -> None:
    (found,) = lint(trees)
    assert found.severity == severity
    assert what in found.what
    assert fix in found.fix


def given(name: str) -> dict[str, dict[str, object]]:
    """All parameters of an algorithm, with values that the library reads."""
    words = {"tree_type": "kary", "ccl": "auto"}
    return {f"{one}={words.get(one, '2')}": {} for one in ALGORITHMS[name].parameters}


@pytest.mark.parametrize(("name", "need"), [(name, need) for name, one in ALGORITHMS.items() for need in one.needs])
def test_each_precondition_of_each_algorithm_is_asked_for(name: str, need: str) -> None:
    """The library checks none of them in a file, so a tree that asks for all of them but one is an error."""
    known = ALGORITHMS[name]
    for left_out in (None, need):
        tree: object = {f"algorithm={name}": given(name)}
        for condition in known.needs:
            if condition != left_out:
                tree = {condition: tree, "any": OTHER}
        found = lint({f"name={known.collective}-intra-auto": tree})
        # That a scan cannot ask whether its operation commutes is another finding.
        errors = [one.what for one in found if one.severity == "error" and "can be reached by" in one.what]
        # All operators that MPI defines commute.
        granted = left_out == "commutative" and "builtin_op" in known.needs
        assert errors == (
            [] if left_out is None or granted else [f"{name} can be reached by calls that do not meet {need}"]
        )


def test_a_name_that_the_library_cannot_keep_is_an_error() -> None:
    name = "n" * 49
    found = lint({**bcast(f"call={name}"), f"name={name}": LEAF})
    assert ["49 characters" in one.what for one in found] == [True]
    assert lint({**bcast(f"call={name[1:]}"), f"name={name[1:]}": LEAF}) == []


@pytest.mark.parametrize("data", [b"", b'{"name=bcast-intra-auto": {', b"[1]", b'{"name=a": 1'])
def test_what_cannot_be_parsed_is_ignored_in_silence_and_so_an_error(data: bytes) -> None:
    (found,) = lint_named_files({"a.json": data}, VERSION)
    assert found.severity == "error"


def test_a_file_of_the_older_format_is_told() -> None:
    (found,) = [one for one in lint({"collective=bcast": {"comm_type=intra": LEAF}}) if one.severity == "error"]
    assert "older format" in found.what


def test_a_file_of_whole_pages_is_told() -> None:
    text = json.dumps(bcast(LEAF)).encode()
    (found,) = lint_named_files({"a.json": text + b" " * (4096 - len(text))}, VERSION)
    assert "multiple of 4096" in found.what


@pytest.mark.parametrize(
    "tree",
    [
        {"pof2": RECURSIVE, "!pof2": LEAF},
        {"!pof2": LEAF, "any": RECURSIVE},
        {"comm_size<=2": RECURSIVE, "any": LEAF},
        {"MPIDI_CH4_release_gather": {"algorithm=MPIDI_POSIX_mpi_bcast_release_gather": {}}, "any": LEAF},
    ],
)
def test_a_tree_that_keeps_the_preconditions_is_clean(tree: object) -> None:
    assert [format_check(one) for one in lint(bcast(tree))] == []


def test_the_command_knows_the_format_and_older_mpich_do_not(tmp_path: Path) -> None:
    path = tmp_path / "named.json"
    path.write_bytes(GOLDEN.read_bytes())
    assert CliRunner().invoke(app, ["lint", str(path), "--mpi-version", VERSION]).exit_code == 0
    done = CliRunner().invoke(app, ["lint", str(path), "--mpi-version", "5.0.2"])
    assert done.exit_code == 1
    assert "MPICH 5.0.2 does not read this file" in done.output


if __name__ == "__main__":
    GOLDEN.parent.mkdir(parents=True, exist_ok=True)
    GOLDEN.write_bytes(EMITTER.emit(golden_rules())[NAMED_FILE])
