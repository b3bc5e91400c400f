"""The model of other clusters: what it knows, that its file holds it, where it says nothing, and what is refused."""

import io
import json
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from colltune.cli.app import app
from colltune.core.choice import Choice
from colltune.core.errors import InputError
from colltune.core.scenario import Scenario
from colltune.predict.model import FILE, Range, TimesModel, TrainedTimes, load_model
from colltune.predict.transfer import TransferPrior
from colltune.predict.trees import Forest, forest_of
from colltune_study.training.train import save_model, train_model

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


@pytest.fixture(scope="module")
def model() -> TimesModel:
    return train_model(TABLES)


def test_the_file_holds_what_was_trained(model: TimesModel, tmp_path: Path) -> None:
    save_model(model, tmp_path / "model.npz")
    again = load_model(tmp_path / "model.npz")
    assert again.theta == pytest.approx(model.theta)
    assert again.of("allreduce").clusters == ("a", "b")
    assert again.of("allreduce").trained == Range.of([scenario for scenario, _ in PAIRS])
    prior = TransferPrior(list(TABLES["allreduce"].values()), CHOICES)
    for one in (model, again):
        said = one.calibration("allreduce", PAIRS).predict(PAIRS).log_time
        assert said == pytest.approx(prior.predict(PAIRS).log_time, abs=1e-5)


def test_beyond_its_clusters_it_says_nothing(model: TimesModel) -> None:
    """A doubling is near enough."""
    inside = [Scenario("allreduce", nodes, 2, 1 << size) for nodes in (2, 4, 16) for size in (4, 10, 20)]
    far = [Scenario("allreduce", 17, 2, 64), Scenario("allreduce", 8, 5, 64), Scenario("allreduce", 8, 2, 1 << 22)]
    said = TrainedTimes(model.of("allreduce")).predict([(scenario, CHOICES[0]) for scenario in (*inside, *far)])
    assert np.isfinite(said.log_time).tolist() == [True] * len(inside) + [False] * len(far)
    assert np.isinf(said.std[len(inside) :]).all()


def write_tables(place: Path, clusters: str) -> list[str]:
    wide = [(Scenario("allreduce", n, 2, 1 << size), c) for n in (2, 8) for size in range(4, 22) for c in CHOICES]
    for seed, cluster in enumerate(clusters):
        rows = [f"{cluster},allreduce,{c.algorithm},{s.nodes},{s.ppn},{s.size_bytes},{t * 1e6}"
                for (s, c), t in table(seed, wide).items()]  # fmt: skip
        text = "\n".join(["cluster,collective,algorithm,nodes,ppn,msg_bytes,time_us", *rows]) + "\n"
        (place / f"{cluster}.csv").write_text(text)
    return [str(place / f"{cluster}.csv") for cluster in clusters]


def test_the_command_trains_on_tables_of_times(tmp_path: Path) -> None:
    tables, out = write_tables(tmp_path, "abc"), tmp_path / "model.npz"
    done = CliRunner().invoke(app, ["study", "train", *tables, "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert "allreduce: times of a, b, c; 3 choices" in done.output
    pairs = [(Scenario("allreduce", 8, 2, 1 << 20), Choice(name)) for name in ("recursive_doubling", "ring")]
    doubling, ring = load_model(out).calibration("allreduce", pairs).predict(pairs).log_time
    assert doubling < ring
    again = tmp_path / "again.npz"
    assert CliRunner().invoke(app, ["study", "train", *tables, "--out", str(again)]).exit_code == 0
    assert again.read_bytes() == out.read_bytes()


def test_one_cluster_or_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="two clusters"):
        train_model({"allreduce": {"a": table(1)}})
    done = CliRunner().invoke(app, ["study", "train", *write_tables(tmp_path, "a"), "--out", str(tmp_path / "m.npz")])
    assert "two clusters" in str(done.exception)
    assert not (tmp_path / "m.npz").exists()


def test_the_shipped_model_predicts_algorithms_of_the_catalogues() -> None:
    assert len(resources.files("colltune.predict").joinpath(FILE).read_bytes()) < 4_000_000
    model = load_model()
    assert set(model.collectives) == {"allgather", "allreduce", "alltoall", "reduce_scatter"}
    assert model.knows("reduce_scatter_block")
    assert not model.knows("bcast")
    scenario = Scenario("allreduce", 64, 1, 1 << 24)
    pairs = [(scenario, Choice("recursive_doubling")), (scenario, Choice("rabenseifner"))]
    doubling, halving = model.calibration("allreduce", pairs).predict(pairs).log_time
    assert doubling > halving + np.log(1.5)  # 16 MiB: six times the vector against twice


def test_a_collective_that_no_cluster_measured_has_constants_and_no_order() -> None:
    pairs = [(Scenario("bcast", 8, 1, 1024), Choice(name)) for name in ("binomial", "scatter_ring_allgather")]
    known = load_model().calibration("bcast", pairs)
    assert np.isnan(known.predict(pairs).log_time).all()
    assert (known.expected_s(pairs) > 0.0).all()
    assert known.ask(lambda time_s: time_s, 10.0) is not None


def test_a_file_that_is_no_model_is_refused(model: TimesModel, tmp_path: Path) -> None:
    save_model(model, tmp_path / "model.npz")
    whole = (tmp_path / "model.npz").read_bytes()
    arrays = dict(np.load(io.BytesIO(whole)))
    cyclic = arrays | {"allreduce.left": np.zeros_like(arrays["allreduce.left"])}
    cyclic["allreduce.feature"] = np.zeros_like(arrays["allreduce.feature"])
    pickled = arrays | {"allreduce.value": np.array([{"a": 1}], dtype=object)}

    def head(text: str) -> dict:
        return arrays | {"head": np.frombuffer(text.encode(), dtype=np.uint8)}

    said = bytes(arrays["head"]).decode()
    newer = head(json.dumps(json.loads(said) | {"schema": 99}))
    for number, bad in enumerate(
        (cyclic, newer, pickled, {"head": arrays["head"]}, head("{"), head(said.replace('"low": [', '"low": [0.0, ')))
    ):
        np.savez(tmp_path / f"{number}.npz", **bad)
        with pytest.raises(InputError, match="not a model"):
            load_model(tmp_path / f"{number}.npz")
    for cut in (0, 1, 100, len(whole) // 2, len(whole) - 10):
        (tmp_path / "cut.npz").write_bytes(whole[:cut])
        with pytest.raises(InputError, match="not a model"):
            load_model(tmp_path / "cut.npz")
    with pytest.raises(InputError, match="not a model"):
        load_model(tmp_path / "missing.npz")


@settings(max_examples=10)
@given(st.integers(0, 2**31 - 1))
def test_arrays_say_what_scikit_learn_says(seed: int) -> None:
    from sklearn.ensemble import ExtraTreesRegressor

    random = np.random.default_rng(seed)
    x = random.integers(0, 6, (60, 3)).astype(float)
    x[random.random(x.shape) < 0.1] = np.nan
    y = np.nan_to_num(x[:, 0]) + np.nan_to_num(x[:, 1])
    new = np.vstack([x, random.normal(2, 3, (40, 3))])
    grown = ExtraTreesRegressor(5, random_state=seed % 1000).fit(x, y)
    forest = forest_of(grown)
    assert forest.predict(new).mean(axis=0)[:, 0] == pytest.approx(grown.predict(new), abs=1e-5)
    again = Forest.from_arrays(forest.arrays(), 3)
    assert (again.predict(new) == forest.predict(new)).all()
