"""Open MPI's files of rules, of coll/tuned and of han: what they say, and who takes a collective."""

from collections.abc import Mapping
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from colltune.bench.backends.openmpi import (
    OpenMpiBackend,
    component_of,
    describe_components,
    find_obstacles,
    find_outranking,
    parse_selected,
)
from colltune.catalog import load
from colltune.catalog.catalogue import OpenMpiCatalogue
from colltune.core.errors import InputError
from colltune.core.rules import Rule, RuleSet
from colltune.core.sample import COLLECTIVES, DEFAULT, PER_BLOCK, Choice, Scenario, SizeBasis, parse_choice
from colltune.core.space import shapes
from colltune.emit.openmpi.han import HAN_FILE, Owners, parse_han
from colltune.emit.openmpi.reader import MessageRule, reads_version_2
from colltune.emit.openmpi.rules_file import RULES_FILE, OpenMpiEmitter, parse_rules
from colltune.emit.without_ppn import merge_ppn
from emitter_laws import random_rules, scenarios_at_bounds


def emitter(version: str = "5.0.11") -> OpenMpiEmitter:
    return OpenMpiBackend(version).emitter


def written(*rule_sets: RuleSet) -> dict[int, dict[int, list[MessageRule]]]:
    return parse_rules(emitter().emit(rule_sets)[RULES_FILE].decode(), RULES_FILE)


def test_sizes_between_bounds_begin_one_byte_above_and_fewer_ranks_than_were_tuned_meet_the_default() -> None:
    bounds = ((3, None, DEFAULT), (4, 64, DEFAULT), (4, 4096, Choice("binomial")), (4, None, DEFAULT),
              (None, None, DEFAULT))  # fmt: skip
    rules = RuleSet("bcast", SizeBasis.MESSAGE, tuple(Rule(None, *bound) for bound in bounds))
    of_four = [MessageRule(0, 0), MessageRule(65, 6), MessageRule(4097, 0)]
    # Open MPI takes the first communicator size for all that are smaller.
    assert written(rules) == {7: {2: [MessageRule(0, 0)], 4: of_four, 5: [MessageRule(0, 0)]}}


def test_no_size_decides_where_ranks_would_disagree_and_sizes_are_total_where_the_library_counts_so() -> None:
    catalogue = load("openmpi", "5.0.11")
    basis = {name: catalogue.collective(name).basis for name in COLLECTIVES}
    assert [name for name in basis if basis[name] is SizeBasis.TOTAL] == ["alltoall"]
    for collective in ("allgather", "gather", "scatter", "barrier"):
        assert basis[collective] is SizeBasis.NONE
        rules = RuleSet.always(collective, SizeBasis.NONE, catalogue.choices(collective)[1])
        for messages in written(rules).popitem()[1].values():
            assert [message.size for message in messages] == [0]


def test_parameters_are_in_their_columns() -> None:
    rules = [
        RuleSet.always("bcast", SizeBasis.MESSAGE, parse_choice("chain(fanout=2)")),
        RuleSet.always("reduce", SizeBasis.MESSAGE, parse_choice("in_order_binary(segment_size=32768)")),
        RuleSet.always("alltoall", SizeBasis.TOTAL, parse_choice("linear_sync(max_requests=8)")),
    ]
    assert written(*rules) == {
        3: {2: [MessageRule(0, 4, 0, 0, 8)]},
        7: {2: [MessageRule(0, 2, 2, 0, 0)]},
        11: {2: [MessageRule(0, 6, 0, 32768, 0)]},
    }


def test_two_processes_are_a_precondition() -> None:
    rules = RuleSet.always("alltoall", SizeBasis.TOTAL, Choice("two_proc"))
    with pytest.raises(InputError, match="two ranks only"):
        emitter().emit([rules])
    fitting = emitter().expressible(rules, shapes(1, 8))
    table = written(fitting)[3]
    assert [message.algorithm for message in table[2]] == [0, 5]
    assert [message.algorithm for message in table[3]] == [0]
    for ranks in range(3, 9):
        assert fitting.evaluate(Scenario("alltoall", 1, ranks, 100)) == DEFAULT


def test_a_call_in_place_keeps_the_default() -> None:
    """Its send count is 0, as a rule, so the library compares 0 bytes whatever the size."""
    rules = emitter().expressible(RuleSet.always("alltoall", SizeBasis.TOTAL, Choice("pairwise")), shapes(1, 4))
    assert written(rules)[3][2] == [MessageRule(0, 0), MessageRule(1, 2)]


def two_shapes(flat: Choice, packed: Choice) -> RuleSet:
    """Rules that differ between 4 nodes of one rank and one node of 4 ranks."""
    return RuleSet(
        "allreduce", SizeBasis.MESSAGE, (Rule(1, 4, None, flat), Rule(1, None, None, DEFAULT),
                                         Rule(3, None, None, DEFAULT), Rule(4, 3, None, DEFAULT),
                                         Rule(4, 4, None, packed), Rule(4, None, None, DEFAULT),
                                         Rule(None, None, None, DEFAULT)))  # fmt: skip


def test_shapes_that_disagree_leave_the_default() -> None:
    one, other = Choice("recursive_doubling"), Choice("rabenseifner")
    looked_at = [(4, 1), (1, 4)]
    agreed = merge_ppn(two_shapes(one, one), looked_at)
    assert [agreed.evaluate(Scenario("allreduce", 1, ppn, 8)) for ppn in (3, 4, 5)] == [DEFAULT, one, DEFAULT]
    apart = merge_ppn(two_shapes(one, other), looked_at)
    assert apart.evaluate(Scenario("allreduce", 1, 4, 8)) == DEFAULT
    assert merge_ppn(two_shapes(one, other), [(1, 4)]).evaluate(Scenario("allreduce", 1, 4, 8)) == other


@given(st.integers(0, 500), st.sampled_from(COLLECTIVES))
def test_what_is_left_of_a_rule_is_what_it_was_or_the_default(seed: int, collective: str) -> None:
    catalogue = load("openmpi", "5.0.11")
    rules = random_rules(seed, collective, catalogue.collective(collective).basis, catalogue.choices(collective))
    looked_at = shapes(4, 4)
    left = emitter().expressible(rules, looked_at)
    for nodes, ppn in looked_at:
        for size in (1, 8, 4096, 1 << 20):
            unit = nodes * ppn if collective in PER_BLOCK and rules.basis is SizeBasis.TOTAL else 1
            scenario = Scenario(collective, nodes, ppn, size // unit or 1)
            assert left.evaluate(scenario) in (rules.evaluate(scenario), DEFAULT)


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("", 1, "the file ends"),
        ("1\n7\n1\n2\n1\n4 6 0 0\n", 6, "first rule of 2 ranks is for 4 bytes"),
        ("1\n7\n1\n2\n1\n0 6 0\n", 6, "3 numbers"),
        ("1\n7\n1\n2\n0\n", 4, "2 ranks have 0 rules"),
        ("1\nbcast\n7 0\n", 2, "'bcast' is no number"),
    ],
)
def test_what_makes_open_mpi_ignore_a_file_is_found(text: str, line: int, what: str) -> None:
    with pytest.raises(InputError, match=f"line {line}: .*{what}"):
        parse_rules(text, "x.conf")


def test_a_file_of_others_reads_as_the_library_reads_it() -> None:
    """Version 1, comments, and several rules in a line."""
    table = parse_rules("1 # one\n 7 2 2 1 0 6 0 0 # bcast\n 8 2 0 0 0 0 1000 3 0 8192", "x.conf")
    assert table == {7: {2: [MessageRule(0, 6)], 8: [MessageRule(0, 0), MessageRule(1000, 3, 0, 8192)]}}


def test_old_releases_get_no_fifth_column() -> None:
    releases = ("4.1.4", "4.1.8", "5.0.3", "5.0.7", "5.0.11")
    assert [one for one in releases if reads_version_2(one)] == ["4.1.8", "5.0.7", "5.0.11"]
    rules = RuleSet.always("alltoall", SizeBasis.TOTAL, parse_choice("linear_sync(max_requests=8)"))
    old = emitter("4.1.4")
    assert old.expressible(rules, shapes(1, 4)).evaluate(Scenario("alltoall", 1, 4, 8)) == DEFAULT
    text = old.emit([RuleSet.always("bcast", SizeBasis.MESSAGE, Choice("pipeline"))])[RULES_FILE].decode()
    assert "version" not in text.splitlines()[0]
    assert text.splitlines()[-1] == "0 3 0 0"


def test_settings_name_the_algorithm_its_parameters_and_han() -> None:
    catalogue = cast(OpenMpiCatalogue, load("openmpi", "5.0.11"))
    assert catalogue.settings("bcast", parse_choice("chain(fanout=2)")) == (
        ("coll_tuned_use_dynamic_rules", "1"),
        ("coll_tuned_bcast_algorithm", "2"),
        ("coll_tuned_bcast_algorithm_chain_fanout", "2"),
        ("coll_han_priority", "0"),
    )
    assert catalogue.settings("alltoall", Choice("pairwise")) == (
        ("coll_tuned_use_dynamic_rules", "1"),
        ("coll_tuned_alltoall_algorithm", "2"),
    )
    assert catalogue.settings("bcast", DEFAULT) == ()
    assert len(load("openmpi", "4.1.8").settings("bcast", Choice("pipeline"))) == 2


OF_HAN = ("allgather", "allreduce", "barrier", "bcast", "gather", "reduce", "scatter")


def decided_by_tuned(table: Mapping[str, Owners], collective: str, ranks: int, size: int) -> bool:
    """Whether a call on several nodes goes to coll/tuned; ``size`` in the unit of the collective's rules."""
    owners = {least: sizes for least, sizes in table.get(collective, {}).items() if least <= ranks}
    return bool(owners) and [tuned for start, tuned in owners[max(owners)] if start <= size][-1]


@given(st.integers(0, 10**6), st.sampled_from(OF_HAN))
def test_tuned_is_asked_where_a_rule_decides_at_each_bound_and_beside_it(seed: int, collective: str) -> None:
    backend = OpenMpiBackend("5.0.11")
    entry = backend.catalogue.collective(collective)
    rules = backend.expressible(
        random_rules(seed, collective, entry.basis, backend.catalogue.choices(collective)), shapes(8, 8)
    )
    table = parse_han(backend.emitter.emit([rules])[HAN_FILE])
    for scenario in scenarios_at_bounds(rules):
        asked = decided_by_tuned(table, collective, scenario.ranks, scenario.size_bytes)
        assert asked == (rules.evaluate(scenario) != DEFAULT), scenario


def test_the_text_of_a_file() -> None:
    rules = RuleSet(
        "bcast", SizeBasis.MESSAGE, (Rule(None, 7, None, DEFAULT), Rule(None, None, 64, Choice("binomial")),
                                     Rule(None, None, 4096, Choice("pipeline")), Rule(None, None, None, DEFAULT)),
    )  # fmt: skip
    text = OpenMpiBackend("5.0.11").emitter.emit([rules])[HAN_FILE].decode()
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert lines == ["1", "bcast", "1", "2", "2", "1", "1", "0 han", "8", "2", "0 tuned", "4097 han"]


def test_nothing_is_handed_over_where_nothing_is_decided_or_han_is_off() -> None:
    alone = RuleSet.always("alltoall", SizeBasis.TOTAL, Choice("pairwise"))
    for rule_sets in ([], [alone], [RuleSet.always("bcast", SizeBasis.MESSAGE, DEFAULT)]):
        assert parse_han(emitter().emit(rule_sets)[HAN_FILE]) == {}
    assert HAN_FILE not in emitter("4.1.8").emit([RuleSet.always("bcast", SizeBasis.MESSAGE, Choice("pipeline"))])


@pytest.mark.parametrize(
    "text", ["", "1\nbcast\n1\n0\n1\n1\n1\n0 tuned\n", "1\nbcast\n1\n2\n1\n1\n1\n0 self\n", "0\n7\n"]
)
def test_a_file_of_others_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="not as colltune writes it"):
        parse_han(text.encode())


# As 5.0.11 writes it on two nodes, shortened; two processes write at once.
TWO_NODES = """\
[node0:03923] mca: base: components_open: opening coll components
[node0:03923] coll:base:comm_select: new communicator: MPI_COMM_WORLD (cid 0)
[node0:03923] coll:base:comm_select: component available: adapt, priority: 0
[node0:03923] coll:base:comm_select: component not available: sm
[node0:03923] coll:base:comm_select: selecting       adapt, priority   0, Disabled
[node0:03923] coll:base:comm_select: selecting       basic, priority  10, Enabled
[node1:03941] coll:base:comm_select: new communicator: MPI_COMM_WORLD (cid 0)
[node1:03941] coll:base:comm_select: selecting       basic, priority  10, Enabled
[node0:03923] coll:base:comm_select: selecting      libnbc, priority  10, Enabled
[node0:03923] coll:base:comm_select: selecting       tuned, priority  30, Enabled
[node0:03923] coll:base:comm_select: selecting         han, priority  35, Enabled
[node0:03923] coll:base:comm_select: new communicator: MPI_COMM_SELF (cid 1)
[node0:03923] coll:base:comm_select: selecting        self, priority  75, Enabled
"""


def test_the_components_of_the_world_are_read_from_one_process() -> None:
    selected = parse_selected(TWO_NODES)
    assert selected == [("basic", 10), ("libnbc", 10), ("tuned", 30), ("han", 35)]
    assert component_of("bcast", selected) == "han"
    assert component_of("alltoall", selected) == "tuned"
    assert find_outranking(selected) == []
    assert describe_components(selected)[0] == (
        "coll/han (priority 35): allgather, allreduce, barrier, bcast, gather, reduce, scatter"
    )
    assert parse_selected("nothing of that\n") == []


@pytest.mark.parametrize(
    ("selected", "found"),
    [
        ([("basic", 10), ("tuned", 30)], []),
        ([("tuned", 30), ("sync", 50), ("han", 35)], []),
        ([("tuned", 30), ("adapt", 90)], ["coll/adapt (priority 90)"]),
        ([("tuned", 30), ("hcoll", 90)], ["set coll_hcoll_enable to 0"]),
        ([("tuned", 30), ("other", 31)], ["does not know it"]),
        ([("basic", 10)], ["coll/tuned, the reader of the rules, is not selected", "coll/basic"]),
    ],
)
def test_what_stands_before_the_rules_is_named(selected: list[tuple[str, int]], found: list[str]) -> None:
    said = find_outranking(selected)
    assert len(said) == len(found)
    assert all(words in text for words, text in zip(found, said, strict=True))


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("coll_adapt_priority", "90", "coll/adapt (priority 90) goes before coll/tuned"),
        ("coll_adapt_priority", "20", ""),
        ("coll_han_priority", "90", ""),
        ("coll_tuned_priority", "5", "puts coll/basic before"),
        ("coll_hcoll_enable", "1", "coll/hcoll"),
        ("coll_ucc_enable", "1", "coll/ucc"),
        ("coll_ucc_enable", "0", ""),
        ("coll_libnbc_priority", "99", ""),
    ],
)
def test_parameters_that_keep_the_rules_from_deciding_are_obstacles(name: str, value: str, words: str) -> None:
    for found in (find_obstacles({f"OMPI_MCA_{name}": value}), find_obstacles({}, ["mpiexec", "--mca", name, value])):
        assert len(found) == bool(words)
        assert all(words in text for text in found)


def test_parameters_in_the_files_of_the_user_and_of_the_site_are_obstacles_too(tmp_path: Path) -> None:
    site, own = tmp_path / "prefix/etc/openmpi-mca-params.conf", tmp_path / "home/.openmpi/mca-params.conf"
    (tmp_path / "prefix/bin").mkdir(parents=True)
    (tmp_path / "prefix/bin/mpiexec").touch(mode=0o755)
    environ = {"HOME": str(tmp_path / "home"), "PATH": str(tmp_path / "prefix/bin")}
    assert find_obstacles(environ) == []
    for path, text in (
        (site, "# the site's\ncoll_tuned_bcast_algorithm = 3 # chain\ncoll_tuned_barrier_algorithm=1\n"),
        (own, "coll_tuned_bcast_algorithm = 0\r\nnot a line\ncoll_tuned_reduce_algorithm = 2\n"),
    ):
        path.parent.mkdir(parents=True)
        path.write_text(text)
    found = find_obstacles(environ)
    assert sorted(found, reverse=True) == [
        f"coll_tuned_reduce_algorithm is 2, which goes before every rule of reduce ({own} says so)",
        f"coll_tuned_barrier_algorithm is 1, which goes before every rule of barrier ({site} says so)",
    ]
    assert len(find_obstacles({**environ, "OMPI_MCA_coll_tuned_barrier_algorithm": "0"})) == 1
    other = tmp_path / "other.conf"
    other.write_text("coll_tuned_gather_algorithm = 1\n")
    (named,) = find_obstacles({**environ, "OMPI_MCA_mca_base_param_files": str(other)})
    assert named.endswith(f"every rule of gather ({other} says so)"), "named files stand in the place of these two"
    override = site.with_name("openmpi-mca-params-override.conf")
    override.write_text("coll_tuned_bcast_algorithm = 6\ncoll_tuned_reduce_algorithm = 0\n")
    found = find_obstacles({**environ, "OMPI_MCA_coll_tuned_bcast_algorithm": "0"})
    assert sorted(text.partition(" is ")[0] for text in found) == [
        "coll_tuned_barrier_algorithm", "coll_tuned_bcast_algorithm"
    ]  # fmt: skip
    assert any(f"bcast ({override} says so)" in text for text in found)
    moved = tmp_path / "moved"
    (moved / "etc").mkdir(parents=True)
    (moved / "etc" / site.name).write_text("coll = ^tuned\n")
    assert f"({moved / 'etc' / site.name} says so)" in find_obstacles({"OPAL_PREFIX": str(moved)})[0]
    override.unlink()
    own.write_bytes(b"\xff\xfe" * 9)
    assert len(find_obstacles(environ)) == 2
