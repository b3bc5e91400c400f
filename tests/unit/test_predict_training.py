"""Training on tables of other clusters: reading, splits, classifiers, and the model's file."""

import csv
import io
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from colltune.cli.app import app
from colltune.core.choice import Choice
from colltune.core.errors import InputError
from colltune.core.hardware import Hardware
from colltune.core.scenario import Scenario
from colltune.predict import classify
from colltune.predict.columns import COLUMNS, columns_of
from colltune.predict.families import family, family_of_choice
from colltune.predict.model import load_model, save_model
from colltune.predict.splits import Split, ceiling, parts, without_copies
from colltune.predict.table import Label, Timed, read_hardware, read_tables
from colltune.predict.train import train_model
from colltune.predict.trees import Forest, forest_of

CLUSTERS = {f"c{number}": Hardware(cores=8 * number, link_lane_gbits=25.0, link_lanes=4) for number in range(1, 4)}


def truth(scenario: Scenario) -> str:
    """Bruck's for few bytes in all, a ring for many: what any cluster does."""
    return "Allgather_Bruck" if scenario.size_bytes * scenario.ranks < 1 << 14 else "Allgather_Ring"


def labels(clusters=CLUSTERS, flip=0.0, seed=0, channels=("a",)):
    random = np.random.default_rng(seed)
    other = {"Allgather_Bruck": "Allgather_Ring", "Allgather_Ring": "Allgather_Bruck"}
    found = []
    for cluster in clusters:
        for channel in channels:
            for nodes in (2, 4, 8, 16):
                for size in (2**i for i in range(16)):
                    scenario = Scenario("allgather", nodes, 4, size)
                    name = truth(scenario)
                    found.append(Label(cluster, channel, scenario, other[name] if random.random() < flip else name))
    return found


def timed():
    found = []
    for speed, cluster in enumerate(CLUSTERS, start=1):
        for nodes in (2, 4, 8, 16):
            for size in (2**i for i in range(16)):
                scenario = Scenario("allgather", nodes, 4, size)
                best = truth(scenario) == "Allgather_Bruck"
                times = {"bruck_x": 1e-6 * speed * (1 if best else 3), "ring_x": 1e-6 * speed * (4 if best else 1)}
                found.append(Timed(cluster, scenario, times, None))
    return found


@pytest.fixture(scope="module")
def model():
    return train_model(labels(flip=0.02), timed(), CLUSTERS)


def test_an_unseen_machine_is_told_what_others_found(model):
    scenarios = [Scenario("allgather", 4, 4, 4), Scenario("allgather", 8, 4, 1 << 15)]
    opinions = model.opinions("allgather", scenarios, Hardware(cores=20), ["ring", "bruck"])
    assert [one.family for one in opinions] == ["bruck", "ring"]
    assert all(one.sureness >= 0.9 for one in opinions)


def test_it_abstains_outside_of_what_it_knows(model):
    far = [Scenario("allgather", 4096, 4, 64), Scenario("allgather", 4, 4, 1 << 28), Scenario("allgather", 4, 128, 64)]
    assert [one.family for one in model.opinions("allgather", far, Hardware(), ["ring"] * 3)] == [None] * 3
    assert model.opinions("bcast", [Scenario("bcast", 4, 4, 64)], Hardware(), [None])[0].family is None


def test_labels_that_say_nothing_are_never_believed():
    noisy = train_model(labels(flip=0.5), [], CLUSTERS)
    assert noisy.forests["allgather"][0].threshold is None or noisy.forests["allgather"][0].threshold > 0.9
    scenarios = [label.scenario for label in labels({"c1": CLUSTERS["c1"]})]
    said = [one.family for one in noisy.opinions("allgather", scenarios, CLUSTERS["c1"], ["ring"] * len(scenarios))]
    assert sum(name is not None for name in said) <= 0.2 * len(said)


def test_relative_times_are_of_families(model):
    said = model.relative("allgather", [Scenario("allgather", 4, 4, 4), Scenario("allgather", 4096, 4, 4)], Hardware())
    assert set(said) == {"bruck", "ring"}
    assert said["bruck"][0] < said["ring"][0] - 0.7
    assert np.isnan(said["ring"][1])


def test_too_few_clusters_are_refused():
    with pytest.raises(InputError, match="3 clusters"):
        train_model(labels({"c1": CLUSTERS["c1"]}), [], CLUSTERS)


def test_a_model_survives_its_file(model, tmp_path):
    save_model(model, tmp_path / "model.npz")
    again = load_model(tmp_path / "model.npz")
    scenarios = [label.scenario for label in labels()]
    now = ["bruck"] * len(scenarios)
    hardware = Hardware(cores=20, link_lane_gbits=10)
    assert again.opinions("allgather", scenarios, hardware, now) == model.opinions(
        "allgather", scenarios, hardware, now
    )
    assert again.card == model.card


def test_a_broken_file_is_refused(model, tmp_path):
    save_model(model, tmp_path / "model.npz")
    whole = (tmp_path / "model.npz").read_bytes()
    arrays = dict(np.load(io.BytesIO(whole)))
    cyclic = arrays | {"allgather.0.left": np.zeros_like(arrays["allgather.0.left"])}
    cyclic["allgather.0.feature"] = np.zeros_like(arrays["allgather.0.feature"])
    head = json.loads(bytes(arrays["head"]))
    newer = arrays | {"head": np.frombuffer(json.dumps(head | {"schema": 99}).encode(), dtype=np.uint8)}
    pickled = arrays | {"allgather.0.value": np.array([{"a": 1}], dtype=object)}
    for number, bad in enumerate((cyclic, newer, pickled, {"head": arrays["head"]})):
        np.savez(tmp_path / f"{number}.npz", **bad)
        with pytest.raises(InputError, match="not a model"):
            load_model(tmp_path / f"{number}.npz")
    for cut in (0, 1, 100, len(whole) // 2, len(whole) - 10):
        (tmp_path / "cut.npz").write_bytes(whole[:cut])
        with pytest.raises(InputError, match="not a model"):
            load_model(tmp_path / "cut.npz")
    with pytest.raises(InputError, match="not a model"):
        load_model(tmp_path / "missing.npz")


def test_the_shipped_model_is_small_and_loads():
    from importlib import resources

    assert len(resources.files("colltune.predict").joinpath("model.npz").read_bytes()) < 4_000_000
    shipped = load_model()
    assert {"allgather", "alltoall"} <= set(shipped.forests)
    assert shipped.card["clusters"]


@settings(deadline=None, max_examples=10)
@given(st.integers(0, 2**31 - 1), st.booleans())
def test_arrays_say_what_scikit_learn_says(seed, classify_rows):
    from sklearn.ensemble import ExtraTreesRegressor, RandomForestClassifier

    random = np.random.default_rng(seed)
    x = random.integers(0, 6, (60, 3)).astype(float)
    x[random.random(x.shape) < 0.1] = np.nan
    y = np.nan_to_num(x[:, 0]) + np.nan_to_num(x[:, 1])
    new = np.vstack([x, random.normal(2, 3, (40, 3))])
    if classify_rows:
        grown = RandomForestClassifier(5, random_state=seed % 1000).fit(x, y > 4)
        expected = grown.predict_proba(new)
    else:
        grown = ExtraTreesRegressor(5, random_state=seed % 1000).fit(x, y)
        expected = grown.predict(new)[:, None]
    forest = forest_of(grown)
    assert forest.predict(new).mean(axis=0) == pytest.approx(expected, abs=1e-5)
    again = Forest.from_arrays(forest.arrays(), 3)
    assert (again.predict(new) == forest.predict(new)).all()


def test_splits():
    rows = labels()
    for seed in (0, 1):
        (random,) = parts(rows, Split.RANDOM, seed)
        assert len(random.train) == round(0.7 * len(rows))
        assert not set(random.train) & set(random.test)
    by_cluster = list(parts(rows, Split.CLUSTER, 0))
    assert len(by_cluster) == len(CLUSTERS)
    for part in by_cluster:
        assert not {rows[i].cluster for i in part.train} & {rows[i].cluster for i in part.test}
    (nodes,) = parts(rows, Split.NODES, 0)
    assert max(rows[i].scenario.nodes for i in nodes.train) < min(rows[i].scenario.nodes for i in nodes.test)
    with pytest.raises(ValueError, match="too few"):
        list(parts(labels({"c1": CLUSTERS["c1"]}), Split.CLUSTER, 0))


def test_the_ceiling_is_the_agreement_of_two_tables_of_one_cluster():
    assert ceiling(labels(channels=("a", "b"))) == 1.0
    assert np.isnan(ceiling(labels()))
    assert 0.3 < ceiling(labels(flip=0.5, channels=("a", "b"))) < 0.7


def test_copied_tables_are_found():
    kept = without_copies(labels())
    assert len({label.cluster for label in kept}) == 1  # they all are the same table
    assert len({label.cluster for label in without_copies(labels(flip=0.3))}) == len(CLUSTERS)


def test_the_forest_of_the_paper():
    rows = classify.labelled_rows(labels(flip=0.05, channels=("a", "b")), CLUSTERS)
    assert "channel_a" in rows.columns
    assert "fabric" not in rows.columns
    weights = classify.importances(rows, 0)
    assert sum(weights.values()) == pytest.approx(1.0)
    assert next(iter(weights)) == "total_size"
    assert len(classify.top_five(rows, 0).columns) == 5
    for make in classify.MODELS.values():
        assert classify.area_under_curve(rows, make, 0) > 0.8
    found = classify.split_accuracies(
        labels(flip=0.05), classify.labelled_rows(labels(flip=0.05), {}), classify.make_trees, 0
    )
    assert set(found) == set(Split)
    assert min(found.values()) > 0.85


def test_every_model_has_an_area_under_its_curve_also_with_three_classes():
    """A support vector machine has no probabilities, and two classes need none."""
    rows = classify.labelled_rows(labels(flip=0.02), CLUSTERS)
    size = rows.x[:, rows.columns.index("msg_size")]
    three = np.where(size > np.quantile(size, 0.7), "third", rows.y)
    many = classify.LabelledRows(rows.x, three, rows.columns)
    for make in classify.MODELS.values():
        assert classify.area_under_curve(many, make, 0) > 0.8


def test_families():
    assert family("allgather", "Allgather_RD_Allgather_Comm") == "recursive_doubling"
    assert family("allgather", "Allgather_RD") == "recursive_doubling"
    assert family("allgather", "recursive_doubling_ompi") == "recursive_doubling"
    assert family("allgather", "bine_send_remap_over") is None
    assert family("alltoall", "Alltoall_Scatter_dest") == "scattered"
    assert family("alltoall", "Alltoall_RD") == "recursive_doubling"
    assert family("alltoall", "Alltoall_inplace") is None
    assert family("barrier", "dissemination") is None
    assert family_of_choice("allgather", Choice("brucks")) == "bruck"
    assert family_of_choice("allgather", Choice("k_brucks", (("k", 4),))) is None
    assert family_of_choice("alltoall", Choice("scattered", (("batch_size", 8),))) == "scattered"


def test_columns_keep_missing_missing():
    x = columns_of(
        [Scenario("bcast", 2, 4, 1024)] * 2, [Hardware(), Hardware(cores=8, link_lane_gbits=25, link_lanes=4)]
    )
    named = {name: x[:, place] for place, name in enumerate(COLUMNS)}
    assert named["total_size"].tolist() == [13.0, 13.0]
    assert np.isnan(named["cores"][0])
    assert named["subscription"][1] == 0.5
    assert named["link_gbits"][1] == pytest.approx(np.log2(100))


def write(path, header, rows):
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)
    return path


HEADER = ["cluster", "collective", "algorithm", "nodes", "ppn", "msg_bytes"]


def test_bad_tables_say_where(tmp_path):
    cases = [
        (HEADER[:-1], [["a", "bcast", "x", 1, 2]], "msg_bytes"),
        (HEADER, [["a", "bcast", "x", "two", 2, 8]], "line 2: nodes"),
        (HEADER, [["a", "bcast", "x", 2, 2, 8], ["a", "bcast", "x", 0, 2, 8]], "line 3"),
        (HEADER, [["a", "bcast", "x", 1.5, 2, 8]], "whole numbers"),
        (HEADER, [], "nothing to learn"),
    ]
    for number, (header, rows, message) in enumerate(cases):
        with pytest.raises(InputError, match=message):
            read_tables([write(tmp_path / f"{number}.csv", header, rows)])
    with pytest.raises(InputError, match="cannot read"):
        read_tables([tmp_path / "missing.csv"])
    with pytest.raises(InputError, match="cores"):
        read_hardware(write(tmp_path / "h.csv", ["cluster", "cores"], [["a", "many"]]))


def test_times_of_one_run_are_compared(tmp_path):
    header = [*HEADER, "time_us", "is_default", "run_id"]
    rows = [
        ["a", "bcast", "x", 2, 2, 8, 10.0, "False", 1],
        ["a", "bcast", "y", 2, 2, 8, 20.0, "False", 1],
        ["a", "bcast", "lib", 2, 2, 8, 15.0, "True", 1],
        ["a", "bcast", "x", 2, 2, 8, 99.0, "False", 2],  # a run that measured less
    ]
    _, (one,) = read_tables([write(tmp_path / "t.csv", header, rows)])
    assert one.times_s == pytest.approx({"x": 1e-5, "y": 2e-5})
    assert one.default_s == pytest.approx(1.5e-5)


def test_train_command(tmp_path):
    rows = [[label.cluster, "allgather", label.algorithm, label.scenario.nodes, 4, label.scenario.size_bytes]
            for label in labels(flip=0.02)]  # fmt: skip
    table = write(tmp_path / "labels.csv", HEADER, rows)
    hardware = write(tmp_path / "h.csv", ["cluster", "cores"], [[name, one.cores] for name, one in CLUSTERS.items()])
    out = tmp_path / "m.npz"
    done = CliRunner().invoke(
        app, ["study", "train", str(table), "--hardware", str(hardware), "--out", str(out), "--compare"]
    )
    assert done.exit_code == 0, done.output
    assert "the paper's 88.8%" in done.stdout
    assert "believed from" in done.stdout
    assert load_model(out).forests["allgather"]
