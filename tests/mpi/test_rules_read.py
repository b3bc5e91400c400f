"""What lint says of rules of coll/han and coll/tuned is what Open MPI's own readers make of them.

The readers are called in one process, one file after another: they list, or hold, the rules that they read.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest
from jobs import OPENMPI

from colltune.catalog import load
from colltune.emit.openmpi.lint_han import HanLevel, lint_han_files, read_han
from colltune.emit.openmpi.lint_rules import lint_rules_files
from colltune.emit.openmpi.reader import MessageRule, ReadError, read_rows
from colltune.mpi.installation import Installation

# Prints for each file what coll/han says of it, and the rules of coll/tuned that it becomes, null where it is ignored.
_ASK = """
import ctypes as C, json, os, sys
class Msg(C.Structure):
    _fields_ = [(name, C.c_int) for name in ("ranks", "alg", "com", "id")]
    _fields_ += [("size", C.c_size_t), ("algorithm", C.c_int), ("fanout", C.c_int), ("segment", C.c_long)]
    _fields_ += [("requests", C.c_int)]
class Com(C.Structure):
    _fields_ = [(name, C.c_int) for name in ("ranks", "alg", "id", "count")] + [("rows", C.POINTER(Msg))]
class Alg(C.Structure):
    _fields_ = [("id", C.c_int), ("count", C.c_int), ("ranks", C.POINTER(Com))]
library, place, rules = C.CDLL(sys.argv[1], C.RTLD_GLOBAL), sys.argv[2], C.POINTER(Alg)()
library.MPI_Init(None, None)
def read():
    if library.ompi_coll_tuned_read_rules_config_file(place.encode(), C.byref(rules), 22) <= 0:
        return None
    return [[at, com.ranks, [[row.size, row.algorithm, row.fanout, row.segment, row.requests]
                             for row in com.rows[: com.count]]]
            for at in range(22) for com in rules[at].ranks[: rules[at].count]]
for text in json.load(sys.stdin):
    with open(place, "w") as file:
        file.write(text)
    print("\\nfile", json.dumps(read() if sys.argv[3] == "tuned" else None), flush=True)
    if sys.argv[3] == "han":
        library.mca_coll_han_init_dynamic_rules()
    C.CDLL(None).fflush(None)
os._exit(0)
"""
_ROW = re.compile(
    r"collective \d+ \((\w+)\) topology level (\d) .* configuration size (\d+) me\w+ size (-?\d+) .*\((\w+)\)"
)


def asked(
    openmpi: Installation, component: str, texts: Sequence[str], place: Path
) -> list[tuple[str, list[list[object]] | None]]:
    """Of each text, what han says, and the rules of tuned."""
    place.write_text("1\nbarrier\n0\n")
    environment = {**os.environ, **OPENMPI, "OMPI_MCA_coll_han_use_dynamic_file_rules": "1",
                   "OMPI_MCA_coll_han_dynamic_rules_filename": str(place), "OMPI_MCA_coll_han_verbose": "20",
                   "OMPI_MCA_coll_han_dump_dynamic_rules": "1"}  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", _ASK, str(openmpi.libmpi), str(place), component], env=environment, text=True,
        input=json.dumps(texts), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120, check=False,
    )  # fmt: skip
    parts = [part.partition("\n") for part in done.stdout.split("\nfile ")[1:]]
    assert done.returncode == 0, f"ended by {done.returncode} at {texts[max(len(parts) - (component == 'han'), 0)]!r}"
    return [(said, json.loads(rules)) for rules, _, said in parts]


def flat(levels: list[HanLevel]) -> list[tuple[str, ...]]:
    return [
        (
            at.collective,
            str(at.level),
            str(one.ranks),
            str((row.size + (1 << 31)) % (1 << 32) - (1 << 31)),
            row.component,
        )
        for at in levels
        for one in at.ranks
        for row in one.rows
    ]


ROWS = "1\nallreduce\n1\n2\n2\n1 2\n0 han\n1024 tuned\n8 1\n0 tuned\n"
HAN = [
    ROWS,
    ROWS.replace("\n", " "),
    ROWS.replace("\n", "\r\n"),
    ROWS.replace("\n", " # comment\n"),
    ROWS.replace("\n2\n2", "\nglobal_communicator\n2"),
    ROWS.replace("\n2\n2", "\nglobal\n2"),
    ROWS.replace("\n2\n2", "\n3\n2"),
    ROWS.replace("allreduce", "2"),
    ROWS.replace("allreduce", "22"),
    ROWS.replace("allreduce", "Allreduce"),
    ROWS.replace("allreduce", "alltoall"),
    ROWS.replace("1 2\n", "2 2\n"),
    ROWS.replace("1 2\n", "1 1\n"),
    ROWS.replace("1 2\n", "1 3\n"),
    ROWS.replace("8 1\n", "8 2\n"),
    ROWS.replace("8 1\n", "010 1\n"),
    ROWS.replace("8 1\n", "8 0\n"),
    ROWS.replace("0 han", "1 han"),
    ROWS.replace("0 han", "2 han"),
    ROWS.replace("0 han", "0 han @simple"),
    ROWS.replace("0 han", "0 han@simple"),
    ROWS.replace("0 han", "0 han @3"),
    ROWS.replace("0 han", "0 han @4"),
    ROWS.replace("0 han", "0 han @fast"),
    ROWS.replace("0 han", "0 hna"),
    ROWS.replace("0 han", "0 tuned [ 1 2 ]"),
    ROWS.replace("0 han", "0 tuned [1"),
    ROWS.replace("1024", "010"),
    ROWS.replace("1024", "0x10"),
    ROWS.replace("1024 tuned", "1024 self"),
    ROWS.replace("1024 tuned", "1024 xhc"),
    ROWS.replace("1\nall", "1 collective\nall"),
    ROWS.replace("1\nall", "2\nall"),
    ROWS.replace("1\nall", "0\nall"),
    ROWS.replace("1\nall", "-1\nall"),
    ROWS + "bcast\n1\n",
    "",
    "1\nbarrier\n0\n",
    "1\nbcast\n1\n0\n1\n1 1\n0 sm\n",
]
TUNED = "1\n7\n2\n2\n2\n0 6 0 0\n1024 3 0 8192\n8\n1\n0 1 0 0\n"


def changed(text: str, seed: int) -> str:
    """As people get it wrong: a number is another, is missing, or stands twice; lines are joined or cut."""
    random = Random(seed)
    words = re.findall(r"\S+|\s", text)
    at = random.choice([at for at, word in enumerate(words) if not word.isspace()])
    words[at] = random.choice([
        "", words[at] * 2, f"{words[at]} {words[at]}", f"{words[at]}\n", "0", "1", "2", "3", "7", "-1", "010", "0x8",
        "4294967297", "99999999999999999999999", "x", "1k", "1.5", f"#{words[at]}", "\n",
    ])  # fmt: skip
    return "".join(words)


def test_han_reads_what_lint_says_that_it_reads(openmpi: Installation, tmp_path: Path) -> None:
    texts = HAN + [changed(ROWS, seed) for seed in range(150)]
    for text, (said, _) in zip(texts, asked(openmpi, "han", texts, tmp_path / "rules"), strict=True):
        stops = "could not fully read" in said or "cannot allocate" in said
        try:
            levels, _ = read_han(text.encode(), "f")
        except ReadError as error:
            why = str(error)
        else:
            why = ""
        assert not why or stops or "lines say" in why or why == "'4294967297' is no level", (text, said, why)
        if why:
            continue
        assert not stops, (text, said)
        assert flat(levels) == _ROW.findall(said), (text, said)
        if "not implemented" in said:
            assert any("asks no rules" in one.what for one in lint_han_files({"f": text.encode()}, openmpi.version))


def aborts(text: str, version: str) -> bool:
    """What lint says of a file of tuned."""
    with suppress(ReadError):
        read_rows(text.encode(), "f", version)
        return False
    return any("aborts" in one.why for one in lint_rules_files({"f": text.encode()}, version, load("openmpi", version)))


def test_a_count_of_more_than_32_bits_aborts_as_lint_says(openmpi: Installation, tmp_path: Path) -> None:
    text = TUNED.replace("7\n2\n", "7\n4294967297\n")
    assert aborts(text, openmpi.version)

    def is_noticed(length: int) -> bool:
        try:
            asked(openmpi, "tuned", [text], tmp_path / ("r" * length))
        except AssertionError as error:
            return "ended by" in str(error)
        return False

    # It writes beyond what it allocated: when that is noticed depends on the heap, and so on the length of the path.
    assert any(map(is_noticed, range(1, 33, 4)))


def test_an_algorithm_where_han_has_none_crashes_as_lint_says(openmpi: Installation, tmp_path: Path) -> None:
    text = ROWS.replace("allreduce", "alltoall").replace("0 han", "0 han @1")
    [check] = lint_han_files({"f": text.encode()}, openmpi.version)
    assert "crashes in MPI_Init" in check.why
    with pytest.raises(AssertionError, match="ended by"):
        asked(openmpi, "han", [text], tmp_path / "rules")


def test_tuned_reads_what_lint_says_that_it_reads(openmpi: Installation, tmp_path: Path) -> None:
    for head in ("", "rule-file-version-2\n", "rule-file-version-3\n", "# c\nrule-file-version-2\n"):
        base = head + (TUNED.replace("0 0\n", "0 0 8\n") if head else TUNED)
        texts = [base, *(text for seed in range(150) if not aborts(text := changed(base, seed), openmpi.version))]
        for text, (_, rules) in zip(texts, asked(openmpi, "tuned", texts, tmp_path / "rules"), strict=True):
            try:
                rows = read_rows(text.encode(), "f", openmpi.version)
            except ReadError as error:
                why = str(error)
            else:
                why = ""
            assert not why or rules is None or "lines say" in why or "are due" in why, (text, rules, why)
            if why:
                continue
            wrapped = any("is larger than" in one.what for one in rows.findings)
            last = {one.number: one.communicators for one in rows.collectives}
            read = [[number, ranks.ranks, [row.rule for row in ranks.rows]] for number in sorted(last)
                    for ranks in last[number]]  # fmt: skip
            there = [[number, ranks, [MessageRule(*row) for row in part]] for number, ranks, part in rules or []]
            assert wrapped or read == there, (text, rules)
