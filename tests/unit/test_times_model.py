"""The shipped model of times: what it knows, that its file holds it, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from colltune.core.choice import Choice
from colltune.core.errors import InputError
from colltune.core.scenario import Scenario
from colltune.predict.model import PretrainedModel, load_model, save_model
from colltune.predict.times_model import HEAD, load_times
from colltune.predict.times_training import times_arrays, train_times
from colltune.predict.train import train_into
from colltune.predict.transfer import TransferPrior

CHOICES = (Choice("recursive_doubling"), Choice("ring"), Choice("recexch", (("k", 4),)))
PAIRS = [
    (Scenario("allreduce", nodes, 2, 1 << size), choice)
    for nodes in (2, 8)
    for size in range(4, 22, 3)
    for choice in CHOICES
]


def table(seed: int, pairs=PAIRS) -> dict:
    random = np.random.default_rng(seed)
    slope = {choice: 1e-9 * (1 + place) for place, choice in enumerate(CHOICES)}
    return {(s, c): 1e-5 + slope[c] * s.size_bytes * float(random.uniform(0.9, 1.1)) for s, c in pairs}


TABLES = {"allreduce": {"a": table(1), "b": table(2)}}


def test_the_file_holds_what_was_trained(tmp_path: Path) -> None:
    model = train_times(TABLES)
    save_model(PretrainedModel({}), tmp_path / "model.npz", times_arrays(model))
    again = load_times(tmp_path / "model.npz")
    assert again.theta == pytest.approx(model.theta)
    prior = TransferPrior(list(TABLES["allreduce"].values()), CHOICES)
    for one in (model, again):
        said = one.calibration("allreduce", PAIRS).predict(PAIRS).log_time
        assert said == pytest.approx(prior.predict(PAIRS).log_time, abs=1e-5)


def test_what_is_trained_on_tables_of_times_proposes_and_judges(tmp_path: Path) -> None:
    paths = []
    wide = [(Scenario("allreduce", n, 2, 1 << size), c) for n in (2, 8) for size in range(4, 22) for c in CHOICES]
    for seed, cluster in enumerate("abc"):
        rows = [f"{cluster},allreduce,{c.algorithm},{s.nodes},{s.ppn},{s.size_bytes},{t * 1e6}"
                for (s, c), t in table(seed, wide).items()]  # fmt: skip
        paths.append(tmp_path / f"{cluster}.csv")
        paths[-1].write_text("\n".join(["cluster,collective,algorithm,nodes,ppn,msg_bytes,time_us", *rows]) + "\n")
    out = tmp_path / "model.npz"
    train_into(out, paths, {})
    assert load_model(out).card["times"] == ["allreduce"]
    pairs = [(Scenario("allreduce", 8, 2, 1 << 20), Choice(name)) for name in ("recursive_doubling", "ring")]
    doubling, ring = load_times(out).calibration("allreduce", pairs).predict(pairs).log_time
    assert doubling < ring


def test_the_shipped_model_predicts_algorithms_of_the_catalogues() -> None:
    model = load_times()
    assert set(model.collectives) == {"allgather", "allreduce", "alltoall", "reduce_scatter"}
    assert model.knows("reduce_scatter_block")
    assert not model.knows("bcast")
    scenario = Scenario("allreduce", 64, 1, 1 << 24)
    pairs = [(scenario, Choice("recursive_doubling")), (scenario, Choice("rabenseifner"))]
    doubling, halving = model.calibration("allreduce", pairs).predict(pairs).log_time
    assert doubling > halving + np.log(1.5)  # 16 MiB: six times the vector against twice


def test_a_collective_that_no_cluster_measured_has_constants_and_no_order() -> None:
    pairs = [(Scenario("bcast", 8, 1, 1024), Choice(name)) for name in ("binomial", "scatter_ring_allgather")]
    known = load_times().calibration("bcast", pairs)
    assert np.isnan(known.predict(pairs).log_time).all()
    assert (known.expected_s(pairs) > 0.0).all()
    assert known.ask(lambda time_s: time_s, 10.0) is not None


def test_a_file_that_is_no_model_is_refused(tmp_path: Path) -> None:
    (tmp_path / "bad.npz").write_bytes(b"nothing")
    with pytest.raises(InputError, match="not a model of times"):
        load_times(tmp_path / "bad.npz")
    head = np.frombuffer(b'{"schema": 0, "terms": []}', dtype=np.uint8)
    np.savez(tmp_path / "old.npz", **{HEAD: head})
    with pytest.raises(InputError, match="schema 0"):
        load_times(tmp_path / "old.npz")
    with pytest.raises(InputError, match="two clusters"):
        train_times({"allreduce": {"a": table(1)}})


def test_only_the_collectives_that_are_asked_for_are_read() -> None:
    whole = load_times()
    some = load_times(only=["alltoall", "reduce_scatter_block"])
    assert set(some.collectives) == {"alltoall", "reduce_scatter"}
    pairs = [(Scenario("alltoall", 4, 8, 1024), Choice(name)) for name in ("pairwise", "bruck")]
    assert np.array_equal(
        some.collectives["alltoall"].predict(pairs).log_time, whole.collectives["alltoall"].predict(pairs).log_time
    )
    # What other clusters did not measure is the mean of all.
    assert set(load_times(only=["alltoall", "bcast"]).collectives) == set(whole.collectives)
