"""What is wrong with a ucc.conf: each trap of its sections and TUNE strings as a finding."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from colltune.cli.app import app
from colltune.emit.next.lint_ucc import lint_ucc_files
from colltune.machine.file_formats import Format, recognise
from ucc_files import FOLLOWED, NOT_FOLLOWED

GOOD = """# for this cluster
UCC_CL_BASIC_TLS=^sharp,nccl

[vendor=intel model=skylake team_size=2-8 ppn=1 nnodes=2-8]
UCC_TL_UCP_ALLREDUCE_KN_RADIX=2
UCC_TL_UCP_TUNE=allreduce:0-4k:@0#allreduce:4k-inf:host:@sra_knomial:inf#bcast,reduce:@knomial

[vendor=intel model=skylake team_size=9-16 ppn=2]
UCC_TL_UCP_ALLREDUCE_KN_RADIX=4
UCC_TL_UCP_TUNE=alltoall:[9-16]:0-inf:@bruck
"""
TUNE = "[nnodes=2]\nUCC_TL_UCP_TUNE="
TRAPS = [
    ("[nodes=2]\n", "error", "knows no 'nodes=2'", "nnodes"),
    ("[ppn=many]\n", "error", "the range 'many' of ppn", "4-8"),
    ("[ppn=8-4]\n", "error", "no ppn is in 8-4", "smaller one first"),
    ("[ppn=4]\n[ppn=4]\n", "warning", "comes twice", "join"),
    ("[ppn=4]\nallreduce\n", "error", "'allreduce' is neither", "NAME=VALUE"),
    ("[ppn=1-4]\nUCC_TL_UCP_TUNE=barrier:5\n[nnodes=2]\nUCC_TL_UCP_TUNE=barrier:6\n", "warning", "can fit", "meet"),
    ("UCC_TL_UCP_TUNE=barrier:5\n[ppn=4]\nUCC_TL_UCP_TUNE=barrier:6\n", "warning", "before all sections", "section"),
    ("TL_UCP_TUNE=barrier:5\n", "error", "does not say UCC_", "write UCC_TL_UCP_TUNE"),
    ("UCC_TLS=ucp\n UCC_CL=basic\n", "error", "more of the setting", "begin at the left"),
    (f"[{'ppn=4 ' * 22}]\n", "error", "132 characters", "127 at most"),
    ("[ppn=4]\nUCC_CL_BASIC_TLS=ucp\n", "warning", "stands in a section", "before the first"),
    ("UCC_TLS=ucp\nUCC_TLS=self\n", "error", "set in line 1 already", "take one out"),
    (TUNE + "allreduce:4k-0:@0", "error", "no size is in 4k-0", "smaller"),
    (TUNE + "allreduce:0-4q:@0", "error", "'0-4q' in 'allreduce:0-4q:@0'", "0-4k:@knomial"),
    (TUNE + "all_reduce:@0", "error", "'all_reduce' in", "allreduce"),
    (TUNE + "allreduce:0-4k", "warning", "neither an algorithm nor a score", "@ALGORITHM"),
    (TUNE + "0-4k:@ring", "error", "names no collective", "begin with"),
    (TUNE + "bcast:@ring", "error", "bcast has no algorithm 'ring'", "0 knomial, 1 sag_knomial"),
    (TUNE + "bcast:@3", "error", "bcast has no algorithm '3'", "2 dbt"),
    (TUNE + "bcast:0-4k:@0#bcast:2k-8k:@1", "error", "sizes of bcast that an entry before it has", "begin where"),
    (TUNE + "bcast:@0#bcast:@1", "error", "sizes of bcast that an entry before it has", "begin where"),
    (TUNE + "allreduce:@5", "error", "allreduce has no algorithm '5'", "2 sliding_window, 3 dbt, 4 ring"),
]  # fmt: skip


def test_what_is_right_has_no_findings() -> None:
    assert lint_ucc_files({"ucc.conf": GOOD.encode()}) == []
    assert lint_ucc_files({"ucc.conf": (TUNE + "allreduce:0-4k:10").encode()}) == []


@pytest.mark.parametrize(("text", "severity", "what", "fix"), TRAPS)
def test_each_trap_is_found(text: str, severity: str, what: str, fix: str) -> None:
    (found,) = lint_ucc_files({"ucc.conf": text.encode()})
    assert found.severity == severity
    assert what in found.what
    assert fix in found.fix


@pytest.mark.parametrize("name", [*FOLLOWED, *NOT_FOLLOWED])
def test_an_error_is_found_where_ucc_did_not_follow_a_file(name: str) -> None:
    found = lint_ucc_files({"ucc.conf": {**FOLLOWED, **NOT_FOLLOWED}[name].encode()})
    assert any(one.severity == "error" for one in found) == (name in NOT_FOLLOWED)


def test_the_format_is_recognised() -> None:
    assert recognise(GOOD.encode()).format is Format.UCC_CONF
    assert recognise(b"# only sections\n[ppn=4]\n").format is Format.UCC_CONF
    assert recognise(b"[cpu_vendor=intel]\n").format is Format.UCC_CONF  # a word that UCC does not know: a finding
    assert recognise(b'{"collective=bcast": {}}').format is Format.MPICH_TREES
    assert recognise(b"1 # collectives\n7\n").format is Format.TUNED_RULES


def test_the_command_needs_no_mpi_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    path = tmp_path / "ucc.conf"
    path.write_text(GOOD)
    clean = CliRunner().invoke(app, ["lint", str(path)])
    assert clean.exit_code == 0, clean.output
    assert "1 file for UCC: 0 errors, 0 warnings" in clean.output
    path.write_text(TUNE + "bcast:@ring\n")
    faulty = CliRunner().invoke(app, ["lint", str(path)])
    assert faulty.exit_code == 1
    assert "bcast has no algorithm 'ring'" in faulty.output
