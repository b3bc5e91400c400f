"""Checks a selection file of MPICH, of any origin, before a job uses it.

MPICH checks little when it reads a file, and nothing when it follows one: a mistake ends the program, in MPI_Init or at
the first call that meets it. Lint walks the tree with the set of calls that can reach each place, so it reports an
algorithm exactly where a call outside its preconditions can reach it.
"""

from collections import Counter
from collections.abc import Mapping

from colltune.catalog import Catalogue
from colltune.emit.lint.check import PAGE, Check, FindingsOfFile, in_order
from colltune.emit.lint.json_text import JsonEntry, JsonValue, NotJsonError, read_json
from colltune.emit.lint.leaf import FileKind, leaf_names
from colltune.emit.lint.walk import LEAF, Walk

# MPICH checks every level of nesting twice, so the work doubles with each: about this many steps in a second.
_STEPS_PER_S = 1e8
_LONG_S, _TOO_LONG_S = 1.0, 100.0


def lint_files(files: Mapping[str, bytes], version: str, catalogue: Catalogue) -> list[Check]:
    """The findings in ``files`` (name and content), in the order of the files and their lines.

    ``version`` is the MPICH that is to read them, in full, for the messages; ``catalogue`` is of that version.
    Any bytes are accepted: a file that cannot be read is a finding too.
    """
    return in_order(files, lambda name, data: _lint(name, data, version, catalogue))


def kind_of(root: JsonValue, catalogue: Catalogue) -> FileKind:
    """Which of MPICH's three files this is: the one that most leaves belong to; the general one in a tie."""
    kinds: Counter[FileKind] = Counter()
    for leaf in _leaves(root):
        prefix, _, name = leaf.name.partition("=")
        known = leaf_names(catalogue).get(name)
        by_prefix = FileKind.CH4 if prefix == "composition" else FileKind.GENERAL
        kinds[known.kind if known else FileKind.POSIX if name.startswith("MPIDI_POSIX") else by_prefix] += 1
    return max(FileKind, key=lambda kind: kinds[kind])


def _lint(name: str, data: bytes, version: str, catalogue: Catalogue) -> list[Check]:
    try:
        root = read_json(data)
    except NotJsonError as error:
        return [FindingsOfFile("mpich", name).finding("no-json", error.line, what=error.what)]
    walk = Walk(name, kind_of(root, catalogue), version, catalogue)
    findings = walk.root(root)
    wait_s = _steps(root) / _STEPS_PER_S
    if wait_s > _LONG_S:
        findings.append(walk.finding("takes-too-long" if wait_s > _TOO_LONG_S else "takes-long", 1, wait_s=wait_s))
    if len(data) % PAGE == 0:
        findings.append(walk.finding("whole-pages", 1, size=len(data), page=PAGE))
    return findings


def _steps(node: JsonValue) -> float:
    """How many rules MPICH looks at when it checks the tree."""
    entries = node.entries or ()
    if not entries or entries[0].name.startswith(LEAF):
        return 1.0
    return sum(1.0 + 2.0 * _steps(entry.value) for entry in entries)


def _leaves(node: JsonValue) -> list[JsonEntry]:
    leaves = []
    for entry in node.entries or ():
        leaves += [entry] if entry.name.startswith(LEAF) else _leaves(entry.value)
    return leaves
