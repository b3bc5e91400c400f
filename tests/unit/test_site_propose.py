"""`colltune site propose`: what sites agree on, the file that says it, and that nothing of theirs leaves with it."""

import csv
import io
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from typer.testing import CliRunner

from colltune.bench.backends import recall_backend
from colltune.catalog import load
from colltune.cli.app import app
from colltune.core.choice import DEFAULT, Choice, parse_choice
from colltune.core.errors import InputError
from colltune.core.proven import Decision, Verdict
from colltune.core.sample import Environment, Sample, Status
from colltune.core.scenario import Scenario
from colltune.core.summary import Summary
from colltune.session.lint import lint_selection
from colltune.session.site.propose import EVIDENCE, PAGE, propose
from colltune.store.journal import Journal
from colltune.store.tuning import JOURNAL, Tuning, save_tuning

DOUBLING, RABENSEIFNER = Choice("recursive_doubling"), Choice("rabenseifner")
SHAPES = ((2, 4), (4, 2), (4, 4), (8, 4))
SIZES = (8, 64, 512, 4096)
# What a site may not want to be told of it, wherever a tuning holds words.
SECRETS = ("node0815", "mallory", "/home/mallory", "secretproject", "10.20.30.40", "aa:bb:cc:dd:ee:ff", "job-424242")
FACTS = {
    "mpiexec": "/home/mallory/secretproject/bin/mpiexec",
    "libmpi": "/home/mallory/lib/libmpi.so",
    "hosts": "node0815,node0816",
    "fabric": "infiniband 200 Gb/s, UCX_NET_DEVICES=aa:bb:cc:dd:ee:ff",
    "job": "job-424242 of mallory at 10.20.30.40",
}
HERE = Environment("openmpi", "5.0.11", "0" * 64, "AMD EPYC 7763 64-Core Processor, 128 cores", 2, 4, "single", FACTS)
Stances = Mapping[Scenario, tuple[Verdict | None, Choice, float]]


def call(size: int, shape: tuple[int, int] = (2, 4), name: str = "allreduce") -> Scenario:
    return Scenario(name, *shape, size)


def site(place: Path, stances: Stances, where: Environment = HERE, *, gated: bool = True) -> Path:
    """A tuning that timed two choices in each call of ``stances``; a verdict of None: no decision was needed."""
    decisions = tuple(
        Decision(one, choice, verdict, (speedup,) * 9, f"on node0815 by mallory in {place}", launches=9)
        for one, (verdict, choice, speedup) in stances.items()
        if verdict is not None
    )
    place.mkdir(parents=True)
    save_tuning(place, Tuning(where, {}, {}, {}, Summary(decisions=decisions, gated=gated)))
    with Journal.create(place / JOURNAL, where) as journal:
        for one, (_, choice, _speedup) in stances.items():
            for timed in (DEFAULT, choice):
                journal.append([Sample(one, timed, Status.OK, (1e-6,) * 5, detail="node0815")])
    return place


def kept(choice: Choice = DOUBLING, speedup: float = 1.5) -> tuple[Verdict, Choice, float]:
    return Verdict.KEPT, choice, speedup


def decided(files: Mapping[str, bytes], scenario: Scenario) -> Choice:
    return recall_backend(HERE).emitter.parse(files, scenario.collective).evaluate(scenario)


def test_what_one_site_proved_and_another_did_not_look_at_is_proposed(tmp_path: Path) -> None:
    here = site(tmp_path / "one", {call(64): kept(), call(512): kept()})
    there = site(tmp_path / "two", {call(4096): kept(RABENSEIFNER)})
    found = propose([here, there], "openmpi")
    assert found.choices == {call(64): DOUBLING, call(512): DOUBLING, call(4096): RABENSEIFNER}
    assert all(decided(found.files, one) == choice for one, choice in found.choices.items())


@pytest.mark.parametrize(
    "against",
    [
        (Verdict.REFUSED, DOUBLING, 0.8),
        (Verdict.REFUSED, DOUBLING, 1.02),
        (None, DOUBLING, 1.0),
        (Verdict.KEPT, RABENSEIFNER, 1.6),
        (Verdict.NOT_TRIED, RABENSEIFNER, 1.6),
        (Verdict.OPEN, DOUBLING, 0.9),
    ],
)
def test_a_site_that_stands_against_it_keeps_the_default(
    tmp_path: Path, against: tuple[Verdict | None, Choice, float]
) -> None:
    here = site(tmp_path / "one", {call(8): kept(), call(64): kept(), call(512): kept()})
    there = site(tmp_path / "two", {call(64): against})
    found = propose([here, there], "openmpi")
    assert set(found.choices) == {call(8), call(512)}
    assert found.vetoed == {call(64)}
    assert decided(found.files, call(64)) == DEFAULT


def test_a_site_that_left_the_same_choice_open_is_no_obstacle(tmp_path: Path) -> None:
    here = site(tmp_path / "one", {call(64): kept()})
    there = site(
        tmp_path / "two", {call(64): (Verdict.PROVISIONAL, DOUBLING, 1.3), call(8): (Verdict.OPEN, DOUBLING, 1.2)}
    )
    assert propose([here, there], "openmpi").choices == {call(64): DOUBLING}


def test_what_no_file_says_is_counted_and_left_out(tmp_path: Path) -> None:
    """Open MPI's file knows no ranks per node: 4 x 2 has the ranks of 2 x 4, and nobody proved anything there."""
    here = site(tmp_path / "one", {call(64): kept(), call(64, (4, 4)): kept()}, replace(HERE, nodes=4))
    found = propose([here], "openmpi")
    assert (set(found.choices), found.unsaid) == ({call(64, (4, 4))}, {call(64)})


VERDICTS = st.sampled_from([None, Verdict.KEPT, Verdict.KEPT, Verdict.KEPT, Verdict.REFUSED, Verdict.OPEN])
CALLS = st.builds(
    call, st.sampled_from(SIZES), st.sampled_from(SHAPES), st.sampled_from(["allreduce", "reduce_scatter"])
)
SITES = st.dictionaries(
    CALLS, st.tuples(VERDICTS, st.sampled_from([DOUBLING, RABENSEIFNER]), st.sampled_from([0.9, 1.5]))
)


@given(sites=st.lists(SITES, min_size=1, max_size=3))
def test_no_call_that_a_site_stands_against_departs_and_no_name_leaves(
    sites: list[Stances], tmp_path_factory: pytest.TempPathFactory
) -> None:
    tmp_path = tmp_path_factory.mktemp("sites")
    places = [site(tmp_path / f"mallory-{number}", one) for number, one in enumerate(sites)]
    try:
        found = propose(places, "openmpi")
    except InputError:
        event("they agree on nothing")
        return
    for one in {scenario for stances in sites for scenario in stances}:
        said = [stances[one] for stances in sites if one in stances]
        proven = {choice for verdict, choice, _ in said if verdict is Verdict.KEPT}
        against = any(
            verdict in (None, Verdict.REFUSED) or (verdict is Verdict.OPEN and (speed < 1 or {choice} != proven))
            for verdict, choice, speed in said
        )
        if against or len(proven) != 1:
            assert decided(found.files, one) == DEFAULT, one
    everything = b"\n".join([*found.files.values(), *(name.encode() for name in found.files)]).decode()
    for secret in (*SECRETS, str(tmp_path), os.getcwd(), str(Path.home()) + "/", HERE.mpi_build):
        assert secret not in everything, secret


def test_the_page_and_the_evidence_say_who_measured_what(tmp_path: Path) -> None:
    here = site(tmp_path / "one", {call(64): kept(), call(512): kept(speedup=2.0), call(8): kept()})
    odd = replace(HERE, machine="node0815 of mallory, 8 cores", facts={})
    there = site(tmp_path / "two", {call(8): (None, RABENSEIFNER, 1.0), call(64): kept(speedup=1.25)}, odd)
    files = propose([here, there], "openmpi").files
    rows = list(csv.DictReader(io.StringIO(files[EVIDENCE].decode())))
    assert [(row["tuning"], row["size_bytes"], row["choice"], row["verdict"], row["proposed"]) for row in rows] == [
        ("1", "8", "recursive_doubling", "kept", "no"),
        ("1", "64", "recursive_doubling", "kept", "yes"),
        ("1", "512", "recursive_doubling", "kept", "yes"),
        ("2", "8", "default", "stays", "no"),
        ("2", "64", "recursive_doubling", "kept", "yes"),
    ]
    assert (rows[2]["speedup"], rows[2]["low"], rows[2]["launches"]) == ("2", "2", "9")
    page = files[PAGE].decode()
    for text in (
        "AMD EPYC 7763 64-Core Processor, 128 cores",
        "infiniband 200 Gb/s",
        "2 calls by 2 tunings",
        '<td class="n">1.25x</td>',
    ):
        assert text in page, text
    assert "1 more proven, and left out" in page
    assert "unknown" in page  # the machine that names a user


def test_our_own_lint_finds_no_fault_with_the_files(tmp_path: Path) -> None:
    where = site(tmp_path / "one", {call(size, shape): kept() for size in SIZES for shape in SHAPES})
    files = propose([where], "openmpi").files
    rules = [tmp_path / name for name in files if name.endswith("tuned.conf")]
    rules[0].write_bytes(files[rules[0].name])
    assert lint_selection(rules, {}, mpi_version="5.0.11").findings == ()


def test_bad_input_is_one_line(tmp_path: Path) -> None:
    stances = {call(64): kept()}
    good = site(tmp_path / "good", stances)
    older = site(tmp_path / "older", stances, replace(HERE, mpi_version="4.1.6"))
    threads = site(tmp_path / "threads", stances, replace(HERE, thread_level="multiple"))
    odd = site(tmp_path / "odd", stances, replace(HERE, mpi_version="5.0.11 of mallory"))
    ungated = site(tmp_path / "ungated", stances, gated=False)
    without = site(tmp_path / "without", stances)
    (without / JOURNAL).unlink()
    slower = site(tmp_path / "slower", {call(64): (Verdict.REFUSED, DOUBLING, 0.7)})
    for names, to, why in (
        ([good], "mpich", "was measured under openmpi 5.0.11, not under MPICH"),
        ([good], "lam", "--to lam is no library"),
        ([good, good], "openmpi", "named twice"),
        ([good, older], "openmpi", "of openmpi 5.0.11, thread level single, and"),
        ([good, threads], "openmpi", "their defaults may differ"),
        ([odd], "openmpi", "names the version"),
        ([ungated], "openmpi", "--gate off"),
        ([without], "openmpi", "has no journal.jsonl"),
        ([tmp_path / "none"], "openmpi", "does not exist"),
        ([good, slower], "openmpi", "nothing to propose: 1 call proven to be faster, 1 with another tuning against it"),
    ):
        arguments = ["site", "propose", *map(str, names), "--to", to, "--out", str(tmp_path / "out")]
        done = CliRunner().invoke(app, arguments)
        assert isinstance(done.exception, InputError), (why, done.output)
        assert why in done.exception.what.replace("\n", " "), done.exception.what
    assert not (tmp_path / "out").exists()


def test_the_command_writes_the_files_and_counts(tmp_path: Path) -> None:
    places = [
        site(tmp_path / "one", {call(64): kept(), call(8): kept()}),
        site(tmp_path / "two", {call(8): kept(RABENSEIFNER)}),
    ]
    out = tmp_path / "out"
    done = CliRunner().invoke(app, ["site", "propose", *map(str, places), "--to", "openmpi", "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert "1 call changed, 1 left out since another tuning stands against it" in done.stdout
    written = {path.name for path in out.iterdir()}
    assert written == {"openmpi-coll-tuned.conf", "openmpi-coll-han.conf", EVIDENCE, PAGE}


def test_the_names_that_the_tests_use_are_in_the_catalogue() -> None:
    assert {DOUBLING, RABENSEIFNER} <= set(load("openmpi", "5.0.11").choices("allreduce"))
    assert parse_choice("rabenseifner") == RABENSEIFNER
