"""Two sides compared: what is a side, what is looked at, what is measured anew, and what is said of it."""

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from memory_bench import MemoryBench

from colltune.cli.compare import as_record, show
from colltune.cli.console import print_json
from colltune.core.disturbance import Load
from colltune.core.errors import InputError, LaunchError
from colltune.core.interval import SpeedVerdict
from colltune.core.rules import Rule, RuleSet
from colltune.core.sample import DEFAULT, Choice, Environment, Scenario, SizeBasis, Status
from colltune.measure.watch import Watch
from colltune.prove.compare.two_sides import Side, compare_sides, tuned_side
from colltune.session.compare import Verification, _judged, look_and_compare
from colltune.session.sides import parse_side
from colltune.store.tuning import Tuning, save_tuning
from colltune_study.simulated.drawn import Noise, SimulatedSource
from documented_json import check_document
from examples import examples

CALLS = [Scenario(name, 2, 4, size) for name in ("allreduce", "bcast", "gather") for size in (4, 256, 16384)]
SLOW = CALLS[4]
UNEASY = Noise(spread=0.08, tail_share=0.03, drift=0.02, launch_mode=1.1, own_mode=1.02)


@dataclass
class TwoSided(MemoryBench):
    """Times are ``slower`` times as long in a launch with variables."""

    truth: Callable[[Scenario, Choice], float | Status] = lambda _s, _c: 2e-5
    slower: Mapping[Scenario, float] = field(default_factory=dict)

    def launch(self, seed: int, variables: Mapping[str, str] | None = None, **_: object) -> SimulatedSource:
        def truth(scenario: Scenario, choice: Choice) -> float | Status:
            time_s = self.truth(scenario, choice)
            factor = self.slower.get(scenario, 1.0) if variables else 1.0
            return time_s if isinstance(time_s, Status) else time_s * factor

        return self._launched(seed, truth)


def sides(bench: TwoSided) -> tuple[Side, Side]:
    return Side("A", bench), Side("B", bench, {"MPIR_CVAR_X": "1"})


def compared(bench: TwoSided, budget_s: float = 300.0, seed: int = 1, **more: bool) -> Verification:
    return look_and_compare(*sides(bench), CALLS, budget_s, seed, **more)


@pytest.mark.parametrize("slower", [[SLOW], []])
def test_the_slower_call_of_many_is_found_and_no_other_is_claimed(slower: list[Scenario]) -> None:
    for seed in examples(6, 20):
        found = compared(TwoSided(noise=UNEASY, slower=dict.fromkeys(slower, 1.25)), seed=seed)
        assert [one.scenario for one in found.slower] == slower
        assert not found.counts[SpeedVerdict.FASTER]
        assert len(found.screened) == len(CALLS)


def test_what_seems_alike_is_measured_anew_only_where_it_was_named() -> None:
    assert not compared(TwoSided()).comparisons
    named = compared(TwoSided(), all_of=True)
    assert {one.scenario for one in named.comparisons} == set(CALLS)


def test_the_verdict_is_of_new_launches() -> None:
    bench = TwoSided(slower={SLOW: 1.25})
    found = compared(bench)
    (one,) = found.comparisons
    looks = len(found.screened[0].a_launches_s)
    assert len(bench.launches) == 2 * (looks + len(one.a_launches_s))
    assert set(one.b_launches_s).isdisjoint(time_s for look in found.screened for time_s in look.b_launches_s)


def test_what_there_is_no_time_for_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    slower = {call: 1.2 + 0.1 * number for number, call in enumerate(CALLS)}
    found = compared(TwoSided(slower=slower, launch_s=2.0), budget_s=30.0)
    assert {one.scenario for one in found.comparisons} | set(found.open) == set(CALLS)
    assert found.open
    assert max(slower, key=slower.__getitem__) in {one.scenario for one in found.comparisons}
    assert found.nowhere_slower is False
    show(found, "use a larger --budget")
    said = capsys.readouterr().out
    assert replace(found, comparisons=()).nowhere_slower is None
    assert f"May differ, and the time was too short: {len(found.open)} calls; use a larger --budget." in said


def test_where_calls_take_long_the_first_of_them_are_looked_at_in_every_launch() -> None:
    bench = TwoSided(truth=lambda _s, _c: 1e-2, slower={CALLS[0]: 1.3})
    found = compared(bench, budget_s=12.0)
    assert 0 < len(found.screened) < len(CALLS)
    assert [one.scenario for one in found.slower] == [CALLS[0]]
    assert set(found.open) == set(CALLS) - {one.scenario for one in found.screened}


def test_what_decides_has_to_be_calm_by_itself() -> None:
    bench, found = TwoSided(), compared(TwoSided(slower={SLOW: 1.5}))
    bench.watch = Watch()
    bench.watch.is_disturbed(Load(0.0, 0.0, 0.0, 0.0, 0.0, 0), 100.0)
    looks = bench.watch.tally.mark
    bench.watch.is_disturbed(Load(0.0, 0.9, 0.0, 0.0, 0.9, 0), 10.0)
    side = Side("A", bench)
    assert _judged(found, side).comparisons
    assert _judged(found, side, looks).nowhere_slower is None


def test_a_table_has_a_column_of_choices_where_a_rule_decides_and_no_other(capsys: pytest.CaptureFixture[str]) -> None:
    show(compared(TwoSided(slower={SLOW: 1.5})), "")
    said = capsys.readouterr().out
    assert "slower" in said
    assert "choice" not in said
    assert "Alike in 3 launches of each side, and not listed: 8 calls." in said


def test_other_programs_get_what_the_reference_says(capsys: pytest.CaptureFixture[str]) -> None:
    found = compared(TwoSided(slower=dict.fromkeys(CALLS, 1.3), launch_s=2.0), budget_s=30.0)
    print_json("compare", {**as_record(found), "looked_at": len(found.screened), "open": found.open})
    document = check_document(capsys.readouterr().out, "compare")
    assert document["comparisons"][0]["verdict"] == "slower"
    assert document["open"]


@dataclass
class Disturbed(TwoSided):
    """Of its launches, those are disturbed whose number ``spoilt`` names."""

    spoilt: Container[int] = ()

    def launch(self, seed: int, variables: Mapping[str, str] | None = None, **_: object) -> SimulatedSource:
        source = super().launch(seed, variables)
        source.disturbed = len(self.launches) - 1 in self.spoilt
        return source


@pytest.mark.parametrize("spoilt", [{0, 1, 2}, {1, 3, 5, 7}])
def test_a_disturbed_launch_is_made_again(spoilt: set[int]) -> None:
    bench = Disturbed(slower={SLOW: 1.25}, spoilt=spoilt)
    (one,) = compare_sides(*sides(bench), [SLOW], 5, seed=1)
    assert (len(one.a_launches_s), len(one.b_launches_s)) == (5, 5)
    assert len(bench.launches) == 10 + len(spoilt)


def test_on_a_machine_that_is_never_calm_comparing_ends() -> None:
    bench = Disturbed(spoilt=range(1000))
    assert not compare_sides(*sides(bench), [SLOW], 5, seed=1)
    assert len(bench.launches) == 20


def test_a_side_that_fails_and_sides_without_a_time_in_common_are_errors() -> None:
    bench = TwoSided(truth=lambda scenario, _c: Status.CRASHED if scenario == SLOW else 1e-5)
    with pytest.raises(LaunchError, match="crashed with"):
        compare_sides(*sides(bench), CALLS, 2, 1)
    with pytest.raises(LaunchError, match="no call could be measured on both sides"):
        compared(TwoSided(truth=lambda _s, _c: Status.UNMEASURED))


def test_a_tuning_decides_its_own_collectives_and_leaves_the_rest_to_the_library(tmp_path: Path) -> None:
    rules = RuleSet(
        "bcast", SizeBasis.MESSAGE, (Rule(None, None, 256, Choice("ring")), Rule(None, None, None, DEFAULT))
    )
    bench = TwoSided()
    tuned = tuned_side("B", bench, Tuning(bench.environment, {"bcast": rules}, {}, {}), tmp_path)
    assert [str(tuned.decides(call)) for call in CALLS[3:]] == ["ring", "ring", *["default"] * 4]


def test_settings_are_read_as_they_are_written() -> None:
    for text, settings in {
        "nothing": {},
        "A=1,B=": {"A": "1", "B": ""},
        "OMPI_MCA_btl=self,sm,tcp,OMPI_MCA_pml=ob1": {"OMPI_MCA_btl": "self,sm,tcp", "OMPI_MCA_pml": "ob1"},
        "UCX_TLS=^ib": {"UCX_TLS": "^ib"},
    }.items():
        assert parse_side(text).settings == settings


@pytest.mark.parametrize("text", ["A=1,A=2", "A=1\n2", "MPIR_CVAR_X", "no/such/file", "", "=1"])
def test_what_is_no_side_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_side(text)
    assert "\n" not in str(caught.value)


def test_a_tuning_is_data_to_distrust(tmp_path: Path) -> None:
    here = Environment("mpich", "5.0.2", "0" * 64, "m", 1, 2, "single")
    rules = {"bcast": RuleSet.always("bcast", SizeBasis.MESSAGE, Choice("ring"))}
    save_tuning(tmp_path, Tuning(here, rules, {"mpich/mpich-coll.json": b"{"}, {}))
    with pytest.raises(InputError, match=r"mpich-coll\.json"):
        parse_side(str(tmp_path))
