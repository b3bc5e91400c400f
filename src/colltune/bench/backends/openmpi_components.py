"""Which component of Open MPI takes a collective: of those that have it, the one of the highest priority."""

import re
from collections.abc import Mapping, Sequence

from colltune.catalog.read import read_toml
from colltune.core.grouping import grouped
from colltune.core.sample import COLLECTIVES

VERBOSE = {"OMPI_MCA_coll_base_verbose": "10"}
_ALL = frozenset(COLLECTIVES)
# What each component has among the blocking collectives that are tuned.
_OFFERS = {name: frozenset(text.split()) for name, text in read_toml("openmpi_offers").items()}
_SELECTED = re.compile(r"^\[(?P<process>[^\]]+)\] coll:base:comm_select: (?:(?P<new>new communicator: (?P<comm>\S+))|"
                       r"selecting\s+(?P<name>\S+), priority\s+(?P<priority>-?\d+), Enabled)")  # fmt: skip
_PRIORITY = re.compile(r"coll_(\w+)_priority")
# Of 5.0; sm, adapt, xhc and han of 4.1 step back at 0.
_PRIORITIES = {"han": 35, "tuned": 30, "basic": 10}
_SWITCHES = {"coll_hcoll_enable": "hcoll", "coll_ucc_enable": "ucc"}
_UNKNOWN = "what it takes (colltune does not know it)"


def parse_selected(text: str) -> list[tuple[str, int]]:
    """The components of MPI_COMM_WORLD with their priorities, the last taking what it has before the others.

    ``text``: what a program writes under ``VERBOSE``. Empty where it says nothing of that.
    """
    found: list[tuple[str, int]] = []
    process = None
    for line in text.splitlines():
        match = _SELECTED.match(line)
        if match is None or (process is not None and match["process"] != process):
            continue
        if match["new"] and process is not None:
            break
        if match["comm"] == "MPI_COMM_WORLD":
            process = match["process"]
        elif process is not None:
            found.append((match["name"], int(match["priority"])))
    return found


def taker(collective: str, selected: Sequence[tuple[str, int]]) -> str:
    """The component that runs ``collective``; "" where none of ``selected`` has it."""
    return next((name for name, _ in reversed(selected) if collective in _OFFERS.get(name, ())), "")


def describe_takers(selected: Sequence[tuple[str, int]]) -> list[str]:
    """Who takes what, a line for each component, and what stands before coll/tuned without a way around it."""
    by_name = grouped(COLLECTIVES, lambda collective: taker(collective, selected))
    priorities = dict(selected)
    lines = [f"coll/{name} (priority {priorities[name]}): {', '.join(by_name[name])}" for name in by_name if name]
    if "han" in by_name:
        lines.append("the files of a tuning hand to coll/tuned what they decide; han keeps the rest")
    return lines


def find_outranking(selected: Sequence[tuple[str, int]]) -> list[str]:
    """A sentence for each component, han apart, that keeps calls from the rules of coll/tuned."""
    found = []
    names = [name for name, _ in selected]
    above = selected[names.index("tuned") + 1 :] if "tuned" in names else selected
    if "tuned" not in names:
        found.append("coll/tuned, the reader of the rules, is not selected; take coll and coll_tuned_priority back")
    for name, priority in above:
        if name != "han" and _OFFERS.get(name, _ALL):
            takes = " and ".join(sorted(_OFFERS[name])) if name in _OFFERS else _UNKNOWN
            found.append(_sentence(name, str(priority), takes))
    return found


def find_given(given: Mapping[str, str]) -> list[str]:
    """The same from MCA parameters by name, where no program can be asked."""
    found = []
    tuned = _number(given.get("coll_tuned_priority", ""), _PRIORITIES["tuned"])
    if tuned <= _PRIORITIES["basic"]:
        found.append(f"coll_tuned_priority is {tuned}, which puts coll/basic before the reader of the rules")
    for name, value in sorted(given.items()):
        match = _PRIORITY.fullmatch(name)
        component = match.group(1) if match else _SWITCHES.get(name, "")
        offers = _OFFERS.get(component, _ALL)
        if not component or component in _PRIORITIES or not offers:
            continue
        if _number(value, 0) > tuned if match else value not in ("0", "false", "no"):
            takes = " and ".join(sorted(offers)) if component in _OFFERS else _UNKNOWN
            found.append(_sentence(component, value if match else "set by " + name, takes))
    return found


def _sentence(name: str, priority: str, takes: str) -> str:
    switch = next((variable for variable, component in _SWITCHES.items() if component == name), f"coll_{name}_priority")
    return (
        f"coll/{name} (priority {priority}) goes before coll/tuned, so no rule reaches it: {takes}; set {switch} to 0"
    )


def _number(text: str, otherwise: int) -> int:
    return int(text) if text.lstrip("-").isdecimal() else otherwise
