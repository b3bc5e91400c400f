"""Nodes that are slower than the others are named, and chance names none."""

from dataclasses import replace
from pathlib import Path

import numpy as np
from test_site_store import KEY, NOW_S, entry, sample

from colltune.site.entry import Entry, Provenance
from colltune.site.index import open_index
from colltune.site.nodes import paces_of, slow_among, slow_nodes
from colltune.site.store import SiteStore

NODES = [f"n{number:02}" for number in range(12)]


def jobs(random: np.random.Generator, count: int, slow: dict[str, float], sd: float = 0.03) -> tuple[dict, dict]:  # type: ignore[type-arg]
    """Paces and nodes of ``count`` jobs of four random nodes; a job is as slow as its slowest node."""
    hosts = {job: tuple(random.choice(NODES, 4, replace=False)) for job in range(count)}
    paces = {job: random.normal(max(slow.get(one, 0.0) for one in on), sd) for job, on in hosts.items()}
    return paces, hosts


def test_a_slow_node_is_found_with_how_slow_it_is_and_a_second_one_behind_it() -> None:
    paces, hosts = jobs(np.random.default_rng(1), 60, {"n03": 0.6, "n07": 0.3})
    found = slow_among(paces, hosts)
    assert [host for host, _, _ in found] == ["n03", "n07"]
    assert [round(factor, 1) for _, factor, _ in found] == [1.8, 1.4]
    assert found[0][2] == sorted((job for job, on in hosts.items() if "n03" in on), key=lambda job: -paces[job])


def test_one_fast_job_on_a_node_clears_it() -> None:
    paces, hosts = jobs(np.random.default_rng(1), 60, {"n03": 0.6})
    cleared = next(job for job, on in hosts.items() if "n03" in on)
    assert not slow_among({**paces, cleared: 0.0}, hosts)


def test_chance_names_a_node_in_hardly_any_site() -> None:
    named = sum(bool(slow_among(*jobs(np.random.default_rng(seed), 40, {}, sd=0.3))) for seed in range(200))
    assert named <= 4


def test_few_jobs_name_nothing() -> None:
    for count in (2, 3, 5):
        hosts = {job: ("bad" if job < count // 2 + 1 else "good",) for job in range(count)}
        assert not slow_among({job: 1.0 if "bad" in on else 0.0 for job, on in hosts.items()}, hosts)


def test_paces_are_told_from_scenarios_that_several_jobs_measured() -> None:
    times = [(sample(size).scenario, job, size + 0.4 * (job == "c")) for size in range(5) for job in "abc"]
    alone = [(sample(size).scenario, "d", 9.0) for size in range(10, 16)]
    assert {job: round(pace, 1) for job, pace in paces_of([*times, *alone]).items()} == {"a": 0.0, "b": 0.0, "c": 0.4}
    few = [one for one in times if one[0].size_bytes < 8]
    assert paces_of(few) == {}


def of_job(number: int, host: str, factor: float, **changes: object) -> Entry:
    said = Provenance("colltune tune", "ada", "", (host,), NOW_S + 100 * number, NOW_S + 100 * number + 60)
    samples = tuple(replace(sample(k, 1e-5 * factor), started_s=0.0) for k in range(6))
    return replace(entry(), provenance=said, samples=samples, **changes)  # type: ignore[arg-type]


def test_the_entries_of_one_job_count_once(tmp_path: Path) -> None:
    """Each job adds what it measured before its proof, and at its end what else it measured."""
    store = SiteStore.made(tmp_path / "store")

    def add(number: int, host: str, factor: float) -> None:
        one = of_job(number, host, factor)
        store.add(one)
        store.add(replace(one, samples=tuple(replace(sample(k, 1e-5 * factor), started_s=0.0) for k in range(6, 12))))

    for number in range(10):
        add(number, f"good{number % 3}", 1.0)
    for number in range(10, 12):
        add(number, "bad", 1.5)
    assert slow_nodes(open_index(store, KEY)) == []
    add(12, "bad", 1.5)
    assert slow_nodes(open_index(store, KEY)) == ["node bad is 1.5 times slower in all 3 jobs that ran on it"]
    assert slow_nodes(open_index(store, KEY), within=["good1"]) == []


def test_a_tuning_that_was_added_by_hand_names_no_node(tmp_path: Path) -> None:
    """It does not say on which nodes it was measured."""
    store = SiteStore.made(tmp_path / "store")
    for number in range(12):
        one = of_job(number, "good", 1.0 if number < 8 else 2.0)
        store.add(replace(one, provenance=replace(one.provenance, hosts=())))
    assert slow_nodes(open_index(store, KEY)) == []
