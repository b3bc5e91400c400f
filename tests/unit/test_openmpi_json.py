"""The JSON rules of Open MPI 6.0: what they can say of ranks per node, their bytes, and what its reader passes over."""

import json
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from colltune.catalog import load
from colltune.catalog.openmpi_components import OpenMpiCatalogue
from colltune.cli.app import app
from colltune.core.choice import DEFAULT, Choice
from colltune.core.errors import InputError
from colltune.core.rules import Rule, RuleSet
from colltune.core.scenario import COLLECTIVES, Scenario, SizeBasis
from colltune.core.space import shapes
from colltune.emit.lint.check import Check, format_check
from colltune.emit.next.lint_openmpi_json import lint_rules_json
from colltune.emit.next.openmpi_json import JSON_FILE, OpenMpiJsonEmitter
from colltune.machine.file_formats import Format, recognise
from emitter_laws import random_rules

VERSION = "6.0.0"
GOLDEN = Path(__file__).parents[1] / "golden" / "openmpi" / "6.0" / JSON_FILE
CATALOGUE = cast(OpenMpiCatalogue, load("openmpi", VERSION))
EMITTER = OpenMpiJsonEmitter(CATALOGUE)
FLAT, PACKED, SPREAD = Choice("recursive_doubling"), Choice("rabenseifner"), Choice("basic_linear")


def by_ppn(*blocks: tuple[int | None, Choice]) -> RuleSet:
    return RuleSet("allreduce", SizeBasis.MESSAGE, tuple(Rule(ppn, None, None, choice) for ppn, choice in blocks))


def test_one_rank_per_node_and_a_single_node_are_told_apart() -> None:
    """Ranks per node: 1, 4 (all of a node), others. The classic file could say nothing of these four ranks."""
    rules = EMITTER.expressible(by_ppn((1, SPREAD), (3, FLAT), (4, PACKED), (None, DEFAULT)), shapes(4, 4))
    assert rules.evaluate(Scenario("allreduce", 4, 1, 8)) == SPREAD
    assert rules.evaluate(Scenario("allreduce", 1, 4, 8)) == PACKED
    assert rules.evaluate(Scenario("allreduce", 2, 2, 8)) == FLAT
    # Eight ranks: two nodes of four and four of two disagree, and the file cannot tell them apart.
    assert rules.evaluate(Scenario("allreduce", 2, 4, 8)) == DEFAULT
    written = json.loads(EMITTER.emit([rules])[JSON_FILE])["collectives"]["allreduce"]
    kinds = [(one["comm_rank_distribution"], one["comm_size_min"], one["comm_size_max"]) for one in written]
    assert ("single-node", 4, 4) in kinds
    assert kinds[0][0] == "one-per-node"
    # The special ones come first: the first communicator that fits decides.
    assert [kind for kind, _, _ in kinds] == sorted(
        (k for k, _, _ in kinds), key=["one-per-node", "single-node", "any"].index
    )


def test_a_default_where_any_would_decide_is_written() -> None:
    rules = EMITTER.expressible(by_ppn((1, DEFAULT), (None, FLAT)), [(2, 2), (4, 1)])
    written = json.loads(EMITTER.emit([rules])[JSON_FILE])["collectives"]["allreduce"]
    spread = next(
        one for one in written if one["comm_rank_distribution"] == "one-per-node" and one["comm_size_min"] <= 4
    )
    assert [(rule["alg"], rule["msg_size_max"]) for rule in spread["rules"]] == [(0, "inf")]


def test_other_ranks_per_node_are_refused() -> None:
    with pytest.raises(InputError, match="ask for ranks per node"):
        EMITTER.emit([by_ppn((3, FLAT), (None, PACKED))])


@given(st.integers(0, 10**6), st.sampled_from(COLLECTIVES))
def test_what_is_left_is_what_it_was_or_the_default(seed: int, collective: str) -> None:
    entry = CATALOGUE.collective(collective)
    if entry.nothing_to_tune is not None:
        return
    looked_at = shapes(4, 4)
    rules = random_rules(seed, collective, entry.basis, CATALOGUE.choices(collective))
    left = EMITTER.expressible(rules, looked_at)
    back = EMITTER.parse(EMITTER.emit([left]), collective)
    for nodes, ppn in looked_at:
        for size in (0, 1, 8, 4096, 1 << 20):
            scenario = Scenario(collective, nodes, ppn, size)
            assert left.evaluate(scenario) in (rules.evaluate(scenario), DEFAULT)
            assert back.evaluate(scenario) == left.evaluate(scenario)


def test_a_schema_that_is_named_first_is_no_sign_of_mpich() -> None:
    """As in the example of Open MPI's documentation."""
    text = '{"$schema": "tuned_schema.json", "rule_file_version": 3, "module": "tuned", "collectives": {}}'
    assert recognise(text.encode()).format is Format.TUNED_JSON
    assert recognise(b'{"$schema": "other.json", "collective=bcast": {}}').format is Format.MPICH_TREES
    assert lint_rules_json({JSON_FILE: text.encode()}, VERSION, CATALOGUE) == []


@settings(max_examples=30)
@given(st.integers(0, 10**6), st.sets(st.sampled_from(COLLECTIVES), min_size=1, max_size=3))
def test_what_colltune_writes_is_clean(seed: int, names: set[str]) -> None:
    rule_sets = []
    for name in sorted(names):
        entry = CATALOGUE.collective(name)
        if entry.nothing_to_tune is None:
            some = random_rules(seed, name, entry.basis, CATALOGUE.choices(name))
            rule_sets.append(EMITTER.expressible(some, shapes(4, 4)))
    data = EMITTER.emit(rule_sets)[JSON_FILE]
    assert recognise(data).format is Format.TUNED_JSON
    assert [format_check(one) for one in lint_rules_json({JSON_FILE: data}, VERSION, CATALOGUE)] == []


def golden_rules() -> list[RuleSet]:
    """All that the format can say: both special distributions, columns, an unbounded size, no size."""
    chain = Choice("chain", (("fanout", 2),))
    sized = (Rule(None, 8, 1024, chain), Rule(None, 8, None, DEFAULT), Rule(None, None, None, Choice("binomial")))
    rules = [
        by_ppn((1, SPREAD), (3, FLAT), (4, PACKED), (None, FLAT)),
        RuleSet("bcast", SizeBasis.MESSAGE, sized),
        RuleSet.always("barrier", SizeBasis.NONE, Choice("bruck")),
        RuleSet.always("reduce_scatter_block", SizeBasis.MESSAGE, Choice("butterfly")),
    ]
    return [EMITTER.expressible(one, shapes(4, 4)) for one in rules]


def test_golden_file() -> None:
    """Byte for byte. Run this file as a program to write it again."""
    assert EMITTER.emit(golden_rules())[JSON_FILE] == GOLDEN.read_bytes()


Json = dict[str, object]


def rule(**changed: object) -> Json:
    return {"msg_size_min": 0, "msg_size_max": "inf", "alg": 3, **changed}


def communicator(*rules: Json, spread: str = "any") -> Json:
    return {"comm_size_min": 2, "comm_size_max": 8, "comm_rank_distribution": spread, "rules": list(rules)}


def allreduce(*rules: Json) -> Json:
    return {"allreduce": [communicator(*rules)]}


def text_of(collectives: object) -> str:
    return json.dumps({"rule_file_version": 3, "module": "tuned", "collectives": collectives}, indent=1)


def lint(collectives: object) -> list[Check]:
    return lint_rules_json({"a.json": text_of(collectives).encode()}, VERSION, CATALOGUE)


@pytest.mark.parametrize(
    ("collectives", "severity", "what", "fix"),
    [
        ({"reducescatter": []}, "error", "no collective 'reducescatter'", "write reduce_scatter"),
        ({"reducescatterblock": []}, "error", "no collective 'reducescatterblock'", "write reduce_scatter_block"),
        ({"alltoallw": []}, "error", "no collective 'alltoallw'", "leave it out"),
        ({"allreduce": {}}, "error", "no list of objects", "write a list"),
        ({"allreduce": [communicator(rule(), spread="packed")]}, "error", "'packed'", "single-node"),
        (allreduce(rule(alg=8)), "error", "no algorithm 8", "7 allgather_reduce"),
        (allreduce(rule(alg="rabbit")), "error", "no algorithm 'rabbit'", "6 rabenseifner"),
        (allreduce(rule(alg="ring")), "error", "ring is not safe", "another algorithm"),
        (allreduce(rule(), rule(msg_size_min=9)), "warning", "out of reach", ""),
        (allreduce(rule(msg_size_min=9, msg_size_max=8)), "warning", "from 9 to 8", ""),
        (allreduce(rule(msg_size_max="1K")), "error", "msg_size_max is '1K'", "inf"),
        (allreduce(rule(size=9)), "warning", "no key 'size'", ""),
        (
            {"allreduce": [communicator(rule()), communicator(rule(), spread="single-node")]},
            "warning",
            "out of reach",
            "",
        ),
        ({"alltoall": [communicator(rule(alg=5))]}, "error", "two_proc can be reached on 3 ranks", "be 2"),
        ({"scatter": [communicator(rule(alg=1, msg_size_max=9))]}, "error", "decided by size", "inf"),
    ],
)
def test_a_fault_is_found(collectives: object, severity: str, what: str, fix: str) -> None:
    (found,) = lint(collectives)
    assert found.severity == severity
    assert what in found.what
    assert fix in found.fix


def test_a_finding_has_the_line_of_its_object() -> None:
    collectives = allreduce(rule(msg_size_max=8), rule(msg_size_min=9, alg=99))
    (found,) = lint(collectives)
    lines = text_of(collectives).splitlines()
    assert lines[found.line - 1].strip() == "{"
    assert '"alg": 99' in "".join(lines[found.line - 1 : found.line + 4])


def test_segments_and_special_distributions_that_come_first_are_fine() -> None:
    single = communicator(rule(seg_size=1024), spread="single-node")
    assert lint({"allreduce": [single, communicator(rule(alg="recursive_doubling"))]}) == []


@pytest.mark.parametrize("data", [b"", b"{", b'{"collectives": 1}', b"[]", b"\xff"])
def test_a_file_that_the_reader_drops_is_an_error(data: bytes) -> None:
    assert [one.severity for one in lint_rules_json({"a.json": data}, VERSION, CATALOGUE)] == ["error"]


def test_an_older_open_mpi_reads_no_json(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(GOLDEN.read_bytes())
    done = CliRunner().invoke(app, ["lint", str(path), "--mpi-version", "5.0.11"])
    assert done.exit_code == 1
    assert "does not read JSON" in done.output
    assert CliRunner().invoke(app, ["lint", str(path), "--mpi-version", "6.0.0"]).exit_code == 0


if __name__ == "__main__":
    GOLDEN.parent.mkdir(parents=True, exist_ok=True)
    GOLDEN.write_bytes(EMITTER.emit(golden_rules())[JSON_FILE])
