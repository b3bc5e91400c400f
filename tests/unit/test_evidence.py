"""Evidence that a tuning was in force: from the library's own words, and from the kernel."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from colltune.core.choice import Choice
from colltune.core.rules import RuleSet
from colltune.core.sample import Environment
from colltune.core.scenario import SizeBasis
from colltune.prove.loaded import FileWatch, SummaryFilter, has_summary, judge, overriding
from colltune.store.tuning import Tuning, save_tuning

GENERAL, CH4 = "MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE", "MPIR_CVAR_CH4_COLL_SELECTION_TUNING_JSON_FILE"
VARIABLES = {GENERAL: "/a b/coll.json", CH4: "/a b/ch4.json"}
LOADED = {"MPIR": "/a b/coll.json", "MPID": "/a b/ch4.json", "MPID/shm": "MPIDI_POSIX_coll_generic_json"}
# As MPICH 5.0.2 prints it with the UCX netmod.
SUMMARY = b"""==== UCX netmod Capability ====
MPIDI_UCX_CONTEXT_ID_BITS: 16
tag_bits: 30
===============================
==== Various sizes and limits ====
sizeof(MPIDI_per_vci_t): 128
==== collective selection ====
MPIR_CVAR_DEVICE_COLLECTIVES: percoll
MPIR: /a b/coll.json
MPID: /a b/ch4.json
MPID/shm: MPIDI_POSIX_coll_generic_json
num_vcis: 1
MPICH 5.0.2 -  - Fri Sep 25 20:45:26 UTC 2026
error checking    : enabled
thread CS         : per-vci
==== data structure summary ====
sizeof(MPIR_Comm): 1832
sizeof(MPIR_Datatype): 280
================================
"""


def filtered(*chunks: bytes) -> tuple[bytes, list[dict[str, str]]]:
    summary = SummaryFilter()
    passed = b"".join([summary.feed(chunk) for chunk in chunks])
    return passed + summary.close(), summary.loaded


@settings(deadline=None, max_examples=50)
@given(st.lists(st.integers(0, 3 * len(SUMMARY)), max_size=12), st.binary(max_size=20))
def test_the_summary_is_taken_out_however_the_output_is_cut(cuts: list[int], binary: bytes) -> None:
    before, after = b"starting\n\x00" + binary.replace(b"\n", b"") + b"\n", b"sum = 3\ntag_bits: mine\nno newline"
    output = before + SUMMARY + after
    places = [0, *sorted(min(cut, len(output)) for cut in cuts), len(output)]
    chunks = [output[a:b] for a, b in pairwise(places)]
    assert filtered(*chunks) == (before + after, [LOADED])


def test_lines_of_the_application_amid_the_summary_are_passed_on() -> None:
    lines = SUMMARY.splitlines(keepends=True)
    output = b"".join([*lines[:3], b"hello from rank 1\n", *lines[3:], SUMMARY, b"done\n"])
    assert filtered(output) == (b"hello from rank 1\ndone\n", [LOADED, LOADED])


def test_labels_of_the_launcher_are_seen_through() -> None:
    labelled = b"".join(b"[0] " + line for line in SUMMARY.splitlines(keepends=True))
    labelled = labelled.replace(b"Capability ====\n", b"Capability ====[0] \n")
    assert filtered(labelled, b"[1] rank 1\n") == (b"[1] rank 1\n", [LOADED])


def test_output_of_the_application_is_not_held_back() -> None:
    summary = SummaryFilter()
    assert summary.feed(b"Continue? ") == b"Continue? "
    assert summary.feed(b"==== U") == b""
    assert summary.feed(b"nited ====") == b"==== United ===="


def test_an_application_without_summary_keeps_what_looks_like_one() -> None:
    output = b"tag_bits: 30\nMPIR: x\n================================\n"
    assert filtered(output) == (output, [])


def test_only_what_was_loaded_in_every_job_is_proven() -> None:
    assert judge(VARIABLES, [LOADED], set()).proven
    assert "in each of 2 jobs" in judge(VARIABLES, [LOADED, LOADED], set()).text
    built_in = {**LOADED, "MPID": "MPIDI_coll_generic_json"}
    opened = {Path(value) for value in VARIABLES.values()}
    proof = judge(VARIABLES, [LOADED, built_in], opened)
    assert not proof.proven
    assert "loaded MPIDI_coll_generic_json where /a b/ch4.json was due" in proof.text


def test_the_kernel_stands_in_where_the_library_is_silent() -> None:
    opened = {Path(value) for value in VARIABLES.values()}
    proof = judge(VARIABLES, [], opened)
    assert proof.proven
    assert "kernel" in proof.text
    assert not judge(VARIABLES, [{}], {Path("/a b/coll.json")}).proven
    assert "no more watches" in judge(VARIABLES, [], set(), "no more watches").text


def test_a_watch_sees_only_the_files_that_are_opened(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("one", "two")]
    for file in files:
        file.write_text("x")
    with FileWatch(files) as watch:
        subprocess.run(["cat", str(files[1])], check=True, stdout=subprocess.DEVNULL)
        assert watch.opened() == {files[1]}
        assert watch.opened() == set()


def test_a_file_that_cannot_be_watched_is_a_reason_not_an_error(tmp_path: Path) -> None:
    with FileWatch([tmp_path / "nothing"]) as watch:
        assert "No such file" in watch.failure
        assert watch.opened() == set()


def test_settings_that_pass_the_files_by_are_named() -> None:
    names = ["bcast", "allreduce"]
    assert overriding({"MPIR_CVAR_BCAST_INTRA_ALGORITHM": "auto", "MPIR_CVAR_BCAST_COMPOSITION": "0"}, names) == []
    assert overriding({"MPIR_CVAR_REDUCE_INTRA_ALGORITHM": "binomial"}, names) == []
    found = overriding({"MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM": "ring", "MPIR_CVAR_DEVICE_COLLECTIVES": "none"}, names)
    assert found == ["MPIR_CVAR_DEVICE_COLLECTIVES=none", "MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM=ring"]


def test_only_mpich_from_5_0_on_speaks_for_itself() -> None:
    assert has_summary("mpich", "5.0.2")
    assert not has_summary("mpich", "4.3.2")
    assert not has_summary("openmpi", "5.0.2")


@pytest.fixture
def tuned(tmp_path: Path) -> Path:
    files = {"mpich/coll.json": b"{}", "mpich/ch4.json": b"{}"}
    variables = {GENERAL: "{directory}/mpich/coll.json", CH4: "{directory}/mpich/ch4.json"}
    rules = {"bcast": RuleSet.always("bcast", SizeBasis.MESSAGE, Choice("binomial"))}
    environment = Environment("mpich", "4.3.2", "0", "a machine", 1, 2, "single")
    save_tuning(tmp_path, Tuning(environment, rules, files, variables))
    return tmp_path


COLLTUNE = [sys.executable, "-c", "from colltune.cli import main; main()"]


def colltune(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [*COLLTUNE, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, stdin=subprocess.DEVNULL)


READS_BOTH = f"cat ${GENERAL} ${CH4} > /dev/null; echo out; exit "


@pytest.mark.parametrize(
    ("options", "code", "wanted", "evidence"),
    [
        (["--prove", "DIR", "--"], 0, 0, "the kernel saw"),
        (["DIR", "--prove", "--"], 0, 0, "the kernel saw"),
        (["DIR", "--prove"], 7, 7, "the kernel saw"),
        (["DIR", "--"], 7, 7, ""),
        (["DIR"], 0, 0, ""),
    ],
)
def test_run_keeps_exit_code_and_output(tuned: Path, options: list[str], code: int, wanted: int, evidence: str) -> None:
    arguments = [str(tuned) if option == "DIR" else option for option in options]
    done = colltune("run", *arguments, "sh", "-c", f"{READS_BOTH} {code}")
    assert (done.returncode, done.stdout) == (wanted, "out\n")
    assert evidence in done.stderr
    assert bool(evidence) == bool(done.stderr)


def test_run_without_proof_says_so(tuned: Path) -> None:
    done = colltune("run", "--prove", tuned, "--", "true")
    assert done.returncode == 3
    assert "warning: it is not proven" in done.stderr
    assert colltune("run", "--prove", tuned, "--", "sh", "-c", "exit 5").returncode == 5
    assert colltune("run", "--prove", tuned, "--", "sh", "-c", "kill -9 $$").returncode == 137
    assert colltune("run", "--prove", tuned, "--", "/nowhere/at/all").returncode == 2


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_reach_the_application(tuned: Path, tmp_path: Path, number: signal.Signals) -> None:
    name = number.name.removeprefix("SIG")
    ready = tmp_path / "ready"
    script = f"trap 'echo got {name}; exit 9' {name}; touch {ready}; while :; do sleep 0.05; done"
    command = [*COLLTUNE, "run", "--prove", str(tuned), "--", "sh", "-c", script]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as process:
        for _ in range(2000):
            if ready.exists():
                break
            time.sleep(0.05)
        os.kill(process.pid, number)
        assert process.communicate(timeout=60)[0] == f"got {name}\n"
    assert process.returncode == 9
