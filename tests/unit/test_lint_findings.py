"""The table of what lint finds: nothing in it is said by no format, and every finding can be made."""

import re
from pathlib import Path
from string import Formatter

import pytest

from colltune.catalog.read import read_toml
from colltune.emit.lint.check import FindingsOfFile, Severity

TABLE = read_toml("lint_findings")
SOURCE = "".join(
    path.read_text(encoding="utf-8") for path in (Path(__file__).parents[2] / "src/colltune/emit").rglob("*.py")
)
FINDINGS = [(form, name) for form, rows in TABLE.items() for name in rows if name != "phrases"]


@pytest.mark.parametrize(("form", "name"), FINDINGS)
def test_a_finding_of_the_table_is_named_in_the_code_and_can_be_made(form: str, name: str) -> None:
    assert f'"{name}"' in SOURCE, "nothing says it"
    row = TABLE[form][name]
    assert row.keys() - {"severity"} == {"what", "why", "fix"}
    fields = {field for part in ("what", "why", "fix") for _, field, _, _ in Formatter().parse(row[part]) if field}
    values = {field: 1.0 if field == "wait_s" else "{x}" for field in fields - TABLE[form]["phrases"].keys()}
    check = FindingsOfFile(form, "a file").found(name, 3, ("a", "b"), **values)
    assert (check.file, check.line, check.path) == ("a file", 3, ("a", "b"))
    assert check.severity is Severity(row.get("severity", "error"))
    assert not re.search(r"\{(?!x\}|\.\.\.\}|\})", check.what + check.why + check.fix), "a place that was not filled"


def test_every_form_of_the_code_is_in_the_table() -> None:
    named = re.findall(r'(?:FindingsOfFile|super\(\).__init__|_Lint)\("([a-z-]+)", ?name|__init__\("([a-z-]+)"', SOURCE)
    assert {one or other for one, other in named} >= TABLE.keys()
