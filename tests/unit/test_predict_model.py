"""The model of other clusters: what it knows, that its file holds it, where it says nothing, and what is refused."""

import io
import json
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_predict_cost import CHOICES, PAIRS, SCENARIOS, SOURCES, table

import colltune_study
from colltune.core.errors import InputError
from colltune.core.sample import Choice, Scenario
from colltune.predict.model import FILE, Range, TimesModel, load_model
from colltune.predict.trees import Forest
from colltune_study.training.learned_times import forest_of, learn_times
from colltune_study.training.train import save_model, train_model
from commands import colltune


@pytest.fixture(scope="module")
def model() -> TimesModel:
    return train_model({"allreduce": SOURCES})


def test_the_file_holds_what_was_trained(model: TimesModel, tmp_path: Path) -> None:
    save_model(model, tmp_path / "model.npz")
    again = load_model(tmp_path / "model.npz")
    assert again.theta == pytest.approx(model.theta)
    assert again.of("allreduce").clusters == ("a", "b")
    assert again.of("allreduce").trained == Range.of(SCENARIOS)
    learned = learn_times(SOURCES)
    groups = [(scenario, CHOICES[0], CHOICES[1:]) for scenario in SCENARIOS]
    for one in (model, again):
        assert one.of("allreduce").predict(PAIRS).log_time == pytest.approx(learned.predict(PAIRS).log_time, abs=1e-5)
        for found, expected in zip(one.against("allreduce", groups), model.against("allreduce", groups), strict=True):
            assert np.array(found) == pytest.approx(np.array(expected), abs=1e-6)


def test_beyond_its_clusters_it_is_not_asked(model: TimesModel) -> None:
    """Two doublings are near enough."""
    inside = [Scenario("allreduce", nodes, 32, 1 << size) for nodes in (1, 16, 64) for size in (4, 10, 24)]
    far = [Scenario("allreduce", 65, 2, 64), Scenario("allreduce", 8, 33, 64), Scenario("allreduce", 8, 2, 1 << 26)]
    assert model.of("allreduce").trained.holds([*inside, *far]).tolist() == [True] * len(inside) + [False] * len(far)


def write_tables(place: Path, clusters: str) -> list[str]:
    for number, cluster in enumerate(clusters):
        rows = [f"{cluster},allreduce,{c.algorithm},{s.nodes},{s.ppn},{s.size_bytes},{t * 1e6}"
                for (s, c), t in table(1e-6 * (1 + number), 1e-10, number).items()]  # fmt: skip
        text = "\n".join(["cluster,collective,algorithm,nodes,ppn,msg_bytes,time_us", *rows]) + "\n"
        (place / f"{cluster}.csv").write_text(text)
    return [str(place / f"{cluster}.csv") for cluster in clusters]


def test_the_command_trains_on_tables_of_times(tmp_path: Path) -> None:
    tables, out = write_tables(tmp_path, "ab"), tmp_path / "model.npz"
    done = colltune("study", "train", *tables, "--out", str(out), code=0)
    assert "allreduce: times of a, b; 3 kinds of choices" in done.stdout + done.stderr
    pairs = [(Scenario("allreduce", 16, 8, 1 << 22), Choice(name)) for name in ("recursive_doubling", "ring")]
    doubling, ring = load_model(out).of("allreduce").predict(pairs).log_time
    assert ring < doubling
    told = list[str]()
    model = colltune_study.train([Path(one) for one in tables], tmp_path / "again.npz", listener=told.append)
    assert told
    assert load_model(tmp_path / "again.npz").theta == pytest.approx(model.theta)


@pytest.mark.slow
def test_the_same_tables_make_the_same_model_byte_by_byte(tmp_path: Path) -> None:
    tables, made = write_tables(tmp_path, "abc"), [tmp_path / "first.npz", tmp_path / "again.npz"]
    for out in made:
        colltune("study", "train", *tables, "--out", str(out), code=0)
    assert made[0].read_bytes() == made[1].read_bytes()


def test_one_cluster_or_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="two clusters"):
        train_model({"allreduce": {"a": SOURCES["a"]}})
    words = ("study", "train", *write_tables(tmp_path, "a"), "--out", str(tmp_path / "m.npz"))
    assert "two clusters" in colltune(*words, code=2).stderr
    with pytest.raises(InputError, match="clusters"):
        colltune_study.train(Path(write_tables(tmp_path, "a")[0]), tmp_path / "m.npz")
    assert not (tmp_path / "m.npz").exists()


def test_the_shipped_model_predicts_algorithms_of_the_catalogues() -> None:
    assert len(resources.files("colltune.predict").joinpath(FILE).read_bytes()) < 4_000_000
    model = load_model()
    assert set(model.collectives) == {"allgather", "allreduce", "alltoall", "reduce_scatter"}
    assert model.knows("reduce_scatter_block")
    assert not model.knows("bcast")
    scenario = Scenario("allreduce", 64, 1, 1 << 24)
    pairs = [(scenario, Choice("recursive_doubling")), (scenario, Choice("rabenseifner"))]
    doubling, halving = model.of("allreduce").predict(pairs).log_time
    assert doubling > halving + np.log(1.5)  # 16 MiB: six times the vector against twice


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
    wide = head(said.replace('"low": [', '"low": [0.0, '))
    paths = [tmp_path / "missing.npz"]
    for number, bad in enumerate((cyclic, newer, pickled, {"head": arrays["head"]}, head("{"), wide)):
        paths.append(tmp_path / f"{number}.npz")
        np.savez(paths[-1], **bad)
    for cut in (0, 1, 100, len(whole) // 2, len(whole) - 10):
        paths.append(tmp_path / f"cut at {cut}.npz")
        paths[-1].write_bytes(whole[:cut])
    for path in paths:
        with pytest.raises(InputError, match="not a model"):
            load_model(path)


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
