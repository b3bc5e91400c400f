"""The catalogue of MPICH: versions, choices, preconditions, control variables."""

from itertools import product

import pytest

from colltune.catalog import Catalogue, Kind, Need, load
from colltune.core.errors import InputError
from colltune.core.sample import (
    COLLECTIVES,
    DEFAULT,
    NONBLOCKING,
    REDUCTIONS,
    TUNABLE,
    Choice,
    Scenario,
    SizeBasis,
    parse_choice,
)
from colltune_study.simulated.simulated_catalogue import load_simulated

VERSIONS = ("4.0.3", "4.1.3", "4.2.3", "4.3.2", "5.0.2", "5.1.0a1")


@pytest.mark.parametrize("version", VERSIONS)
def test_every_collective_has_an_entry_in_every_version(version: str) -> None:
    catalogue = load("mpich", version)
    assert set(catalogue.entries) == set(TUNABLE)
    for name in TUNABLE:
        choices = catalogue.choices(name)
        assert choices[0] == DEFAULT
        assert len(set(choices)) == len(choices)
        # MPICH reads the type of a tree once, so that no setting may name it.
        named = {variable for choice in choices for variable, _ in catalogue.settings(name, choice)}
        assert not [variable for variable in named if "TREE_TYPE" in variable]


def test_versions_are_matched_by_major_and_minor_and_what_is_not_covered_is_refused() -> None:
    for version, known_as, warned in (("4.1", "4.1", False), ("5.0.1rc2", "5.0", False), ("5.1.0a1", "5.1", False),
                                      ("5.2.0", "5.1", True), ("4.9", "4.3", True)):  # fmt: skip
        catalogue = load("mpich", version)
        assert (catalogue.version, catalogue.warning is not None) == (known_as, warned)
    for library, version in (("mpich", "3.4.3"), ("mpich", "five"), ("mpich", "5."), ("lam", "7.0")):
        with pytest.raises(InputError):
            load(library, version)


@pytest.mark.parametrize("version", VERSIONS)
def test_legal_choices_are_few_known_and_start_with_the_default(version: str) -> None:
    catalogue = load("mpich", version)
    for name, nodes, ppn, size in product(TUNABLE, (1, 2, 3, 8), (1, 2, 3, 8, 64), (0, 4, 64, 2**20)):
        legal = catalogue.legal(Scenario(name, nodes, ppn, size))
        assert legal[0] == DEFAULT
        assert set(legal) <= set(catalogue.choices(name))
        assert len(set(legal)) == len(legal) <= 110
        assert sum(c == DEFAULT or not catalogue.algorithm(name, c).composed for c in legal) <= 20


def test_choices_below_a_composition_fit_the_leaders_and_the_node() -> None:
    catalogue = load("mpich", "5.0.2")

    def composed(collective: str, nodes: int, ppn: int, level: str = "single") -> set[str]:
        legal = catalogue.legal(Scenario(collective, nodes, ppn, 2**20), level)[1:]
        return {str(choice) for choice in legal if catalogue.algorithm(collective, choice).composed}

    assert not composed("bcast", 1, 8)
    assert not composed("bcast", 8, 1)
    power_of_two = "alpha+scatter_recursive_doubling_allgather"
    assert power_of_two in composed("bcast", 4, 3)
    assert power_of_two.replace("+", ".mpir+") not in composed("bcast", 4, 3), "3 ranks of a node cannot run it"
    assert power_of_two not in composed("bcast", 3, 4)
    # Radices beyond the number of leaders repeat each other.
    assert {"alpha+recexch(k=2)"} == {c for c in composed("allreduce", 2, 8) if c.startswith("alpha+recexch")}
    assert not any(".mpir" in choice for choice in composed("allreduce", 8, 8))
    # With threads there is no shared memory in a node: what the leaders run, all ranks of a node run too.
    threads = composed("bcast", 4, 4, "multiple")
    assert threads
    assert all(".mpir+" in choice for choice in threads)
    assert composed("allreduce", 4, 4, "multiple") == composed("allreduce", 4, 4)
    assert not any("+nb" in choice for name in COLLECTIVES for choice in composed(name, 8, 8))


def test_preconditions_leave_choices_out() -> None:
    catalogue = load("mpich", "5.0.2")

    def keys(collective: str, nodes: int, ppn: int, size: int, level: str = "single") -> set[str]:
        return {choice.algorithm for choice in catalogue.legal(Scenario(collective, nodes, ppn, size), level)}

    assert "recursive_doubling" in keys("allgather", 2, 2, 64)
    assert "recursive_doubling" not in keys("allgather", 3, 2, 64)
    assert "reduce_scatter_allgather" not in keys("allreduce", 2, 4, 28)
    assert "reduce_scatter_allgather" in keys("allreduce", 2, 4, 32)
    assert "gamma" not in keys("allreduce", 2, 2, 64)
    assert {"alpha", "gamma"} <= keys("allreduce", 1, 2, 64)
    assert not {"alpha", "beta", "delta"} & keys("bcast", 4, 1, 64)
    assert not {"alpha", "gamma"} & keys("allreduce", 1, 2, 64, "multiple")
    assert "alpha" in keys("allreduce", 2, 2, 64, "multiple")
    assert "pairwise" in keys("reduce_scatter", 2, 2, 16)
    assert "pairwise" not in keys("reduce_scatter", 2, 2, 20)


def test_what_is_wrong_for_some_datatypes_is_no_candidate() -> None:
    catalogue = load("mpich", "5.0.2")
    for collective, key in (
        ("allgather", "recexch_doubling"),
        ("allgather", "recexch_halving"),
        ("reduce_scatter", "noncommutative"),
        ("reduce_scatter_block", "noncommutative"),
    ):
        assert key not in {choice.algorithm for choice in catalogue.choices(collective)}
        assert "datatype" in catalogue.collective(collective).algorithm(key).why_not
    circulant = load("mpich", "5.1").collective("reduce").algorithm("circ_graph")
    assert "datatype" in circulant.why_not
    assert not circulant.candidate


def test_circulant_graphs_come_with_the_version_after_5_0() -> None:
    older, newer = load("mpich", "5.0.2"), load("mpich", "5.1.0a1")
    added = {(name, choice) for name in COLLECTIVES for choice in newer.choices(name)}
    added -= {(name, choice) for name in COLLECTIVES for choice in older.choices(name)}
    flat = {name for name, choice in added if choice == Choice("circ_graph")}
    assert flat == {"allgather", "bcast"}
    assert all(choice.algorithm.endswith("circ_graph") for _, choice in added)
    assert newer.collective("reduce").algorithm("circ_graph").needs == {Need.COMMUTATIVE}


def test_a_radix_beyond_the_ranks_is_tried_once() -> None:
    for ranks, radices in {2: {2}, 3: {2, 3}, 4: {2, 3, 4}, 6: {2, 3, 4, 8}, 64: {2, 3, 4, 8}}.items():
        legal = load("mpich", "5.0.2").legal(Scenario("allgather", 1, ranks, 64))
        assert {dict(choice.parameters)["k"] for choice in legal if choice.algorithm == "k_brucks"} == radices, ranks


def test_a_chunk_as_long_as_the_message_is_left_out() -> None:
    catalogue = load("mpich", "5.0.2")
    for size, chunks in ((8192, set()), (8193, {8192}), (2**20, {8192, 65536})):
        legal = catalogue.legal(Scenario("bcast", 1, 8, size))
        assert {dict(c.parameters)["chunk_size"] for c in legal if c.algorithm == "pipelined_tree"} == chunks


_RECEXCH = {"INTRA_ALGORITHM": "recexch", "RECEXCH_KVAL": "4", "RECEXCH_SINGLE_PHASE_RECV": "0"}


@pytest.mark.parametrize(
    ("version", "text", "settings"),
    [
        ("5.0.2", "bcast default", {}),
        ("5.0.2", "bcast alpha", {"COMPOSITION": "1"}),
        ("5.0.2", "bcast beta.mpir", {"COMPOSITION": "2", "POSIX_INTRA_ALGORITHM": "mpir"}),
        ("5.0.2", "allreduce recexch(k=4)", {"COMPOSITION": "2", **_RECEXCH}),
        ("5.0.2", "allreduce alpha+recexch(k=4)", {"COMPOSITION": "1", **_RECEXCH}),
        ("5.0.2", "allgatherv ring", {"DEVICE_COLLECTIVE": "0", "INTRA_ALGORITHM": "ring"}),
        ("4.0.3", "bcast binomial", {"DEVICE_COLLECTIVE": "0", "INTRA_ALGORITHM": "binomial"}),
    ],
)
def test_control_variables_of_choices(version: str, text: str, settings: dict[str, str]) -> None:
    collective, choice = text.split()
    expected = tuple((f"MPIR_CVAR_{collective.upper()}_{name}", value) for name, value in settings.items())
    assert load("mpich", version).settings(collective, parse_choice(choice)) == expected


@pytest.mark.parametrize("text", ["bcast smp", "bcast tree", "bcast tree(k=2,x=1)", "bcast no", "barrier recexch(k=2)"])
def test_choices_that_cannot_be_made_are_refused(text: str) -> None:
    collective, choice = text.split()
    with pytest.raises(InputError):
        load("mpich", "5.0.2").settings(collective, parse_choice(choice))


def test_parameters_are_written_as_each_version_reads_them() -> None:
    tree = parse_choice("tree(k=4)")
    old = dict(load("mpich", "4.2.3").selection_parameters("allreduce", tree))
    new = dict(load("mpich", "4.3.2").selection_parameters("allreduce", tree))
    assert old == {"tree_type": "1", "k": "4", "chunk_size": "0", "buffer_per_child": "0"}
    assert new["tree_type"] == "knomial_1"
    assert set(new) == set(old), "the costs of switches are read for another kind of tree alone"


def test_the_basis_is_what_mpich_compares() -> None:
    catalogue = load("mpich", "5.0.2")
    basis = {name: catalogue.collective(name).basis for name in TUNABLE}
    assert {name for name in basis if basis[name] is SizeBasis.TOTAL} == {"allgather", "allgatherv", "iallgather"}
    without = {"barrier", "exscan", "gather", "scan", "scatter"}
    assert {name for name in basis if basis[name] is SizeBasis.NONE} == without
    assert catalogue.collective("exscan").nothing_to_tune
    assert catalogue.collective("bcast").nothing_to_tune is None


@pytest.mark.parametrize("version", VERSIONS)
def test_a_nonblocking_choice_is_one_that_a_file_can_say_whole(version: str) -> None:
    """csel_container.c of MPICH reads no parameter of some algorithms: chosen by a file, they run with a random k."""
    catalogue = load("mpich", version)
    for name in NONBLOCKING:
        for choice in catalogue.choices(name)[1:]:
            algorithm = catalogue.algorithm(name, choice)
            assert all(parameter.in_file for parameter in algorithm.parameters)
            settings = dict(catalogue.settings(name, choice))
            assert settings[f"MPIR_CVAR_{name.upper()}_INTRA_ALGORITHM"] == algorithm.key
            assert not any("COMPOSITION" in variable or "DEVICE" in variable for variable in settings)


@pytest.mark.parametrize("version", VERSIONS)
def test_what_is_never_chosen_says_why(version: str) -> None:
    catalogue = load("mpich", version)
    for name in TUNABLE:
        for algorithm in catalogue.collective(name).algorithms:
            assert algorithm.candidate or algorithm.why_not
            if algorithm.kind is Kind.COMPOSITION and algorithm.candidate:
                assert algorithm.number is not None
            if Need.IN_PLACE in algorithm.needs:
                assert not algorithm.candidate
            if algorithm.reproducible:
                assert name in REDUCTIONS


CATALOGUES = {"mpich": load("mpich", "5.0.2"), "openmpi": load("openmpi", "5.0.11"), "simulated": load_simulated()}


@pytest.mark.parametrize("catalogue", CATALOGUES.values(), ids=CATALOGUES)
def test_sizes_of_one_class_have_equally_many_legal_choices(catalogue: Catalogue) -> None:
    for name, (nodes, ppn) in product(catalogue.entries, [(1, 2), (3, 1), (6, 4), (32, 32)]):
        counts: dict[object, int] = {}
        for size in sorted({1, 12, 96, 4800, *(1 << power for power in range(2, 23))}):
            here = Scenario(name, nodes, ppn, size)
            count = len(catalogue.legal(here))
            assert counts.setdefault(catalogue.size_class(here), count) == count, here
        assert len(counts) < 22  # most of the sizes fall into a class with others
