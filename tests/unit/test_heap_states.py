"""What is said of calls that pay for page faults, and of a rule that is slower in one state of the heap."""

import math
import platform
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from colltune.core.choice import DEFAULT, Choice
from colltune.core.heap import page_faults_of, setting_text
from colltune.core.interval import SpeedVerdict
from colltune.core.sample import Heaps, Sample, Status, log_speedup
from colltune.core.scenario import Scenario
from colltune.judge.verdict import compare
from colltune.machine.compile import source_directory
from colltune.report.tables import comparisons_table
from commands import run_to_end

HERE = Scenario("reduce_scatter", 1, 2, 1 << 18)
PAYS = Sample(HERE, DEFAULT, Status.OK, (210e-6,) * 3, faults=96.0, kept_s=26e-6)


def test_what_pays_is_named_with_both_times_and_the_setting() -> None:
    text = page_faults_of([PAYS, replace(PAYS, scenario=Scenario("bcast", 1, 2, 8), faults=0.0, kept_s=None)])
    assert "reduce_scatter of 256 KiB on 1 x 2 (96 page faults in a call: 210 us, 26 us" in text
    assert text.endswith(setting_text())
    assert "bcast" not in text


@pytest.mark.parametrize("sample", [replace(PAYS, kept_s=205e-6), replace(PAYS, choice=Choice("ring"))])
def test_what_hardly_pays_or_is_not_the_default_is_not_named(sample: Sample) -> None:
    assert page_faults_of([sample]) == ""


def test_a_choice_counts_by_the_state_in_which_it_gains_less() -> None:
    chosen = Sample(HERE, Choice("ring"), Status.OK, (30e-6,) * 3)
    assert log_speedup(PAYS, chosen) == pytest.approx(math.log(26 / 30))
    assert Heaps.of(PAYS, chosen) == pytest.approx((math.log(210 / 30), math.log(26 / 30)))
    assert Heaps.of(replace(PAYS, kept_s=None), chosen) is None
    assert log_speedup(replace(PAYS, kept_s=None), chosen) == pytest.approx(math.log(210 / 30))


def test_verify_says_slower_of_a_rule_that_is_slower_in_either_state() -> None:
    choice, chosen_s = Choice("ring"), [30e-6 + 1e-8 * n for n in range(8)]
    gives_back = compare(HERE, choice, [210e-6 + 1e-8 * n for n in range(8)], chosen_s)
    keeps = compare(HERE, choice, [26e-6 + 1e-8 * n for n in range(8)], chosen_s)
    assert gives_back.verdict is SpeedVerdict.FASTER
    both = replace(gives_back, kept=keeps)
    assert both.verdict is SpeedVerdict.SLOWER
    assert replace(keeps, kept=gives_back).verdict is SpeedVerdict.SLOWER
    _, heading, row = comparisons_table([both]).lines(80)
    assert heading.endswith("ring")
    assert "7.00" in row
    assert "0.87" in row
    assert "heap keeps" not in "".join(comparisons_table([gives_back]).lines(160))


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="no other C library has these thresholds")
def test_what_was_freed_before_does_not_decide_whether_calls_meet_page_faults(tmp_path: Path) -> None:
    driver, heap = Path(__file__).parents[1] / "native" / "heap_of.c", source_directory("heap")
    flags = ["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", f"-I{heap}"]
    target = tmp_path / "heap_of"
    subprocess.run(["cc", *flags, driver, heap / "heap.c", "-ldl", "-o", target], check=True, timeout=120)
    done = run_to_end([target], env={}, check=True)
    large, faults = map(int, done.stdout.split())
    assert large == 46 * 4096 - 16  # the block that was freed, with its head
    assert faults < 5  # of ten calls
