from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from colltune.core.choice import Choice
from colltune.core.rules import Rule, RuleSet
from colltune.core.sample import Environment
from colltune.core.scenario import SizeBasis
from colltune.deploy.applied import AppliedTuning, put_in_force
from colltune.store.tuning import Tuning

_RULES = RuleSet("bcast", SizeBasis.MESSAGE, (Rule(None, None, None, Choice("binomial")),))


def in_force(mpi: str, around: Mapping[str, str], place: Path) -> AppliedTuning:
    environment = Environment(mpi, "5.0.2", "0", "here", 2, 4, "single", {})
    variables = {"TUNED_FILE": "{directory}/rules"}
    return put_in_force(place, Tuning(environment, {"bcast": _RULES}, {}, variables), around)


def test_ranks_get_the_tuning_and_what_is_told_besides(tmp_path: Path) -> None:
    force = in_force("mpich", {"HOME": "/home/me", "TUNED_FILE": "mine"}, tmp_path)
    file = f"{tmp_path.resolve()}/rules"
    assert force.environment == {"HOME": "/home/me", "TUNED_FILE": file}
    told = force.telling({"MORE": "1"})
    assert told.environment == {"HOME": "/home/me", "TUNED_FILE": file, "MORE": "1"}
    assert told.variables == force.variables == {"TUNED_FILE": file}


@pytest.mark.parametrize(("mpi", "words"), [("mpich", []), ("openmpi", ["-x", "TUNED_FILE", "-x", "MORE"])])
def test_open_mpi_is_told_what_to_hand_on(
    mpi: str, words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the mpiexec of PATH; where it has none, as on a machine without an MPI, by that beside the running Python."""
    mpiexec = tmp_path / "mpiexec"
    mpiexec.touch(mode=0o755)
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    for path, program in ((str(tmp_path), "mpiexec"), ("/nowhere", str(mpiexec))):
        force = in_force(mpi, {"PATH": path}, tmp_path).telling({"MORE": "1"})
        assert force.command(["mpiexec", "-n", "4", "./app"]) == [program, *words, "-n", "4", "./app"]
        assert force.command(["./app"]) == ["./app"]


def test_a_file_of_open_mpi_on_another_count_of_nodes_is_an_obstacle(tmp_path: Path) -> None:
    found = in_force("openmpi", {"PATH": ""}, tmp_path).obstacles(["mpiexec", "-n", "4", "./app"])
    assert any("tuned on 2 nodes, and this job has 1" in text for text in found)
    assert in_force("mpich", {"PATH": ""}, tmp_path).obstacles(["mpiexec", "-n", "4", "./app"]) == []


@pytest.mark.parametrize("command", ["", "mpirun --hostfile hosts -n 8 ./app", "mpirun -n 8 -npernode 4 ./app"])
def test_nothing_is_said_of_the_nodes_where_nobody_knows_them_or_they_fit(command: str, tmp_path: Path) -> None:
    assert in_force("openmpi", {"PATH": ""}, tmp_path).obstacles(command.split()) == []


def test_the_files_of_a_module_do_not_decide_the_calls_by_default_of_the_live_selector(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def live(tuning: Tuning, way: str, around: Mapping[str, str], _mpicc: object) -> Tuning:
        assert (way, "TUNED_FILE" in around) == ("live", False)
        return replace(tuning, variables={"LD_PRELOAD": "/live.so", "COLLTUNE_SELECT": "{directory}/live"})

    monkeypatch.setattr("colltune.deploy.live_selector.in_force_via", live)
    environment = Environment("mpich", "5.0.2", "0", "here", 2, 4, "single", {})
    tuning = Tuning(environment, {"bcast": _RULES}, {}, {"TUNED_FILE": "{directory}/rules"})
    force = put_in_force(tmp_path, tuning, {"HOME": "/home/me", "TUNED_FILE": "of a module"}, "live")
    assert force.environment.keys() == {"HOME", "LD_PRELOAD", "COLLTUNE_SELECT"}
