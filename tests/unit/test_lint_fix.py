"""The guarded copy: lint finds nothing in it, and every call is served."""

import json

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from test_emit_mpich import calls
from test_lint import (
    BINOMIAL,
    DOUBLING,
    FAULTS,
    OPERATORS,
    RING,
    VERSIONS,
    file_with,
    legal,
    lint,
    needs_met,
    rule_trees,
)

from colltune.catalog import load
from colltune.core.errors import InputError
from colltune.emit.lint.check import format_check
from colltune.emit.lint.fix import fix_file
from colltune.emit.mpich.tree import Tree, decide, format_tree, parse_tree
from lint_trees import complete_trees, leaf


def fix(data: bytes, version: str = "5.0.2") -> bytes:
    catalogue = load("mpich", version)
    return fix_file(data, version, catalogue, complete_trees(catalogue))


def fixed_intra(collective: str, intra: Tree) -> Tree:
    return parse_tree(fix(file_with(collective, intra)))[f"collective={collective}"]["comm_type=intra"]


@pytest.mark.parametrize(("version", "collective", "intra", "expected"), FAULTS)
def test_every_fault_is_mended(version: str, collective: str, intra: Tree, expected: str | None) -> None:
    fixed = fix(file_with(collective, intra, version), version)
    assert [format_check(check) for check in lint(fixed, version)] == []


@given(st.data(), st.sampled_from(VERSIONS), st.sampled_from(sorted(OPERATORS)))
def test_in_the_copy_every_call_reaches_an_algorithm_that_can_serve_it(
    data: st.DataObject, version: str, collective: str
) -> None:
    tree = data.draw(rule_trees(collective, version))
    general = {**complete_trees(load("mpich", version)).general, f"collective={collective}": tree}
    fixed = fix(format_tree(general), version)
    assert [format_check(check) for check in lint(fixed, version)] == []
    major, minor = map(int, version.split(".")[:2])
    call = data.draw(calls(collective))
    assume(legal(call))
    assert needs_met(decide(parse_tree(fixed), call, (major, minor)), call, version)


def test_what_is_right_is_kept_as_it_is() -> None:
    rules = {"comm_size<=4": {"total_msg_size<=64": RING, "total_msg_size=any": RING}, "comm_size=any": RING}
    assert fixed_intra("allgather", rules) == rules


def test_an_algorithm_is_guarded_and_the_default_serves_the_rest() -> None:
    default = complete_trees(load("mpich", "5.0.2")).general["collective=allgather"]
    assert fixed_intra("allgather", DOUBLING) == {"comm_size=pow2": DOUBLING, "comm_size=any": default}


def test_bounds_are_put_in_order() -> None:
    rules = {"comm_size=any": BINOMIAL, "comm_size<=16": BINOMIAL, "comm_size<9": BINOMIAL, "comm_size<=4": BINOMIAL}
    assert list(fixed_intra("bcast", rules)) == ["comm_size<=4", "comm_size<=8", "comm_size<=16", "comm_size=any"]


def test_parameters_are_completed_in_the_words_of_the_version() -> None:
    given = leaf("MPIR_Bcast_intra_tree", tree_type="knomial_2", k=3)
    written = parse_tree(fix(file_with("bcast", given, "4.2.3"), "4.2.3"))["collective=bcast"]["comm_type=intra"]
    assert written == leaf("MPIR_Bcast_intra_tree", tree_type=2, k=3, is_non_blocking=1)
    back = parse_tree(fix(file_with("bcast", written), "5.0.2"))["collective=bcast"]["comm_type=intra"]
    assert next(iter(back.values())).keys() >= {"tree_type=knomial_2", "k=3", "topo_overhead=0"}


def test_missing_collectives_come_from_the_library() -> None:
    default = complete_trees(load("mpich", "5.0.2")).general
    fixed = parse_tree(fix(json.dumps({"collective=bcast": {"comm_type=intra": BINOMIAL}}).encode()))
    assert {key: value for key, value in fixed.items() if key != "collective=bcast"} == {
        key: value for key, value in default.items() if key != "collective=bcast"
    }
    assert fixed["collective=bcast"]["comm_size=any"] == default["collective=bcast"]


def test_operators_above_the_collectives_move_below() -> None:
    tree = complete_trees(load("mpich", "5.0.2")).general
    fixed = parse_tree(fix(format_tree({"comm_size<=4": {"collective=bcast": BINOMIAL}, "comm_size=any": tree})))
    assert list(fixed["collective=bcast"]) == ["comm_size<=4", "comm_size=any"]


def test_a_posix_file_hands_over_where_it_cannot_serve() -> None:
    release = leaf("MPIDI_POSIX_mpi_allreduce_release_gather")
    fixed = parse_tree(fix(format_tree({"collective=allreduce": {"comm_size<=4": release}})))
    assert lint(format_tree(fixed)) == []
    assert list(fixed["collective=allreduce"]) == ["comm_size<=4", "comm_size=any"]


@pytest.mark.parametrize("data", [b"", b"{", b'{"a": ' * 40 + b"1" + b"}" * 40])
def test_what_is_no_json_cannot_be_fixed(data: bytes) -> None:
    with pytest.raises(InputError, match="write it again"):
        fix(data)
