"""Rules that earlier runs of the same command found slower are left out of the next ones, and nothing else is."""

from __future__ import annotations

from pathlib import Path

import pytest
from application_history import leave_run
from memory_bench import ENVIRONMENT
from test_tune_in_memory import RING

from colltune.catalog import load
from colltune.core.choice import DEFAULT
from colltune.core.rules import RuleSet
from colltune.core.scenario import Scenario, SizeBasis
from colltune.deploy.applied import AppliedTuning
from colltune.emit.live_rules import LIVE_FILE, LIVE_VARIABLE, LiveEmitter, live_choices, parse_live
from colltune.session.application.withdrawn import without_slower_rules
from colltune.store.tuning import Tuning

COMMAND = ("app",)  # that of leave_run


@pytest.fixture
def force(tmp_path: Path) -> AppliedTuning:
    """A ring for every broadcast, by way of the live selector."""
    rules = RuleSet.always("bcast", SizeBasis.MESSAGE, RING)
    emitter = LiveEmitter(load(ENVIRONMENT.mpi, ENVIRONMENT.mpi_version), lambda _collective, _choice: [("CVAR", 5)])
    files = {f"live/{LIVE_FILE}": emitter.emit([rules])[LIVE_FILE]}
    tuning = Tuning(ENVIRONMENT, {"bcast": rules}, files, {})
    variables = {LIVE_VARIABLE: str(tmp_path / "live" / LIVE_FILE)}
    return AppliedTuning(tmp_path, tuning, {"COLLTUNE_CACHE": str(tmp_path / "cache")}, variables, variables)


def test_what_was_slower_is_left_out_where_it_was_and_said(force: AppliedTuning) -> None:
    for number in range(2):
        leave_run(force.directory, ENVIRONMENT, RING, 0.8, size=4096, when_s=1e9 + number)
    said: list[str] = []
    left = without_slower_rules(force, COMMAND, said.append)
    (text,) = said
    assert "is left out at bcast 2 x 4, 4 KiB: earlier runs of this command were slower with it" in text
    assert left.told[LIVE_VARIABLE] == left.variables[LIVE_VARIABLE] != force.told[LIVE_VARIABLE]
    written = Path(left.told[LIVE_VARIABLE]).read_text()
    assert live_choices(written) == [RING]
    rules = parse_live(written)["bcast"]
    for nodes, ppn, size in [(2, 4, 4096), (2, 4, 8191)]:
        assert rules.evaluate(Scenario("bcast", nodes, ppn, size)) == DEFAULT
    for nodes, ppn, size in [(2, 4, 4095), (2, 4, 8192), (1, 4, 4096), (4, 2, 4096), (2, 3, 4096)]:
        assert rules.evaluate(Scenario("bcast", nodes, ppn, size)) == RING


@pytest.mark.parametrize(("ratio", "command"), [(1.3, COMMAND), (1.0, COMMAND), (0.8, ("another",))])
def test_nothing_else_is_left_out(force: AppliedTuning, ratio: float, command: tuple[str, ...]) -> None:
    """What was faster, what is not sure, and what was slower in another command."""
    leave_run(force.directory, ENVIRONMENT, RING, ratio, size=4096)
    said: list[str] = []
    assert without_slower_rules(force, command, said.append) == force
    assert said == []
