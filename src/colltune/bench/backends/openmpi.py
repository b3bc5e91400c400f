"""Open MPI 4.1 and 5.0: a file of rules for coll/tuned, and one for han where a job spans nodes.

Of the components that have a collective, the one of the highest priority takes it.
"""

import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import cast

from colltune.bench.backends.contract import Backend
from colltune.catalog import load
from colltune.catalog.catalogue import OpenMpiCatalogue
from colltune.catalog.read import read_toml
from colltune.core.rules import RuleSet
from colltune.core.sample import COLLECTIVES, DEFAULT, Scenario, grouped
from colltune.emit.openmpi.reader import reads_version_2
from colltune.emit.openmpi.rules_file import OpenMpiEmitter
from colltune.machine.files import read_text

VERBOSE = {"OMPI_MCA_coll_base_verbose": "10"}
_ALL = frozenset(COLLECTIVES)
# What each component has among the blocking collectives that are tuned.
_OFFERS = {name: frozenset(text.split()) for name, text in read_toml("openmpi_offers").items()}
_SELECTED = re.compile(r"^\[(?P<process>[^\]]+)\] coll:base:comm_select: (?:(?P<new>new communicator: (?P<comm>\S+))|"
                       r"selecting\s+(?P<name>\S+), priority\s+(?P<priority>-?\d+), Enabled)")  # fmt: skip
_OVERRIDE = "openmpi-mca-params-override.conf"
_PRIORITY = re.compile(r"coll_(\w+)_priority")
# Of 5.0; sm, adapt, xhc and han of 4.1 step back at 0.
_PRIORITIES = {"han": 35, "tuned": 30, "basic": 10}
_SWITCHES = {"coll_hcoll_enable": "hcoll", "coll_ucc_enable": "ucc"}
_UNKNOWN = "what it takes (colltune does not know it)"


def parse_selected(text: str) -> list[tuple[str, int]]:
    """The components of MPI_COMM_WORLD with their priorities, the last taking what it has before the others.

    ``text``: what a program writes under ``VERBOSE``. Empty where it says nothing of that.
    """
    components: list[tuple[str, int]] = []
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
            components.append((match["name"], int(match["priority"])))
    return components


def component_of(collective: str, selected: Sequence[tuple[str, int]]) -> str:
    """The component that runs ``collective``; "" where none of ``selected`` has it."""
    return next((name for name, _ in reversed(selected) if collective in _OFFERS.get(name, ())), "")


def describe_components(selected: Sequence[tuple[str, int]]) -> list[str]:
    """Who takes what, a line for each component, and what stands before coll/tuned without a way around it."""
    by_name = grouped(COLLECTIVES, lambda collective: component_of(collective, selected))
    priorities = dict(selected)
    lines = [f"coll/{name} (priority {priorities[name]}): {', '.join(by_name[name])}" for name in by_name if name]
    if "han" in by_name:
        lines.append("the files of a tuning hand to coll/tuned what they decide; han keeps the rest")
    return lines


def find_outranking(selected: Sequence[tuple[str, int]]) -> list[str]:
    """A sentence for each component, han apart, that keeps calls from the rules of coll/tuned."""
    obstacles = []
    names = [name for name, _ in selected]
    above = selected[names.index("tuned") + 1 :] if "tuned" in names else selected
    if "tuned" not in names:
        obstacles.append("coll/tuned, the reader of the rules, is not selected; take coll and coll_tuned_priority back")
    for name, priority in above:
        if name != "han" and _OFFERS.get(name, _ALL):
            takes = " and ".join(sorted(_OFFERS[name])) if name in _OFFERS else _UNKNOWN
            obstacles.append(_sentence(name, str(priority), takes))
    return obstacles


def find_given(given: Mapping[str, str]) -> list[str]:
    """The same from MCA parameters by name, where no program can be asked."""
    outranking = []
    tuned = _number(given.get("coll_tuned_priority", ""), _PRIORITIES["tuned"])
    if tuned <= _PRIORITIES["basic"]:
        outranking.append(f"coll_tuned_priority is {tuned}, which puts coll/basic before the reader of the rules")
    for name, value in sorted(given.items()):
        match = _PRIORITY.fullmatch(name)
        component = match.group(1) if match else _SWITCHES.get(name, "")
        offers = _OFFERS.get(component, _ALL)
        if not component or component in _PRIORITIES or not offers:
            continue
        if _number(value, 0) > tuned if match else value not in ("0", "false", "no"):
            takes = " and ".join(sorted(offers)) if component in _OFFERS else _UNKNOWN
            outranking.append(_sentence(component, value if match else "set by " + name, takes))
    return outranking


def _sentence(name: str, priority: str, takes: str) -> str:
    switch = next((variable for variable, component in _SWITCHES.items() if component == name), f"coll_{name}_priority")
    return (
        f"coll/{name} (priority {priority}) goes before coll/tuned, so no rule reaches it: {takes}; set {switch} to 0"
    )


def _number(text: str, otherwise: int) -> int:
    return int(text) if text.lstrip("-").isdecimal() else otherwise


_PREFIX = "OMPI_MCA_"
_OF_DEBIAN = Path("/etc/openmpi")
# A line of a file of parameters: what follows # is none.
_PARAMETER = re.compile(r"\s*(\w+)\s*=\s*([^#]*?)\s*(?:#.*)?")
_OWN = "Open MPI's own decision (coll/tuned, fixed rules)"
_OF_HAN = "Open MPI's own decision (coll/han)"
_OF_LIBNBC = "Open MPI's own decision (coll/libnbc)"


class OpenMpiBackend(Backend):
    """No candidate is known to be the default: its fixed rules are compiled in (docs/design/safety.md)."""

    catalogue: OpenMpiCatalogue

    def __init__(self, version: str) -> None:
        self.catalogue = cast(OpenMpiCatalogue, load("openmpi", version))
        self._wide = reads_version_2(version)

    @property
    def emitter(self) -> OpenMpiEmitter:
        return OpenMpiEmitter(self.catalogue, wide=self._wide)

    def clean(self, environ: Mapping[str, str]) -> dict[str, str]:
        return {
            name: value
            for name, value in environ.items()
            if not name.endswith(("_dynamic_rules_filename", "_use_dynamic_rules", "_use_dynamic_file_rules"))
            and not (name.startswith((f"{_PREFIX}coll_tuned_", f"{_PREFIX}coll_libnbc_")) and "_algorithm" in name)
        }

    @property
    def agent_variables(self) -> Mapping[str, str]:
        """The switch that lets an algorithm be named, which a running job of Open MPI 4.1 can read only."""
        return {f"{_PREFIX}coll_tuned_use_dynamic_rules": "1"} if self.catalogue.release < (5, 0) else {}

    def expressible(self, rule_set: RuleSet, shapes: Sequence[tuple[int, int]]) -> RuleSet:
        return self.emitter.expressible(rule_set, shapes)

    def describe(self, files: Mapping[str, bytes], scenario: Scenario, thread_level: str) -> str:
        choice = self.emitter.parse(files, scenario.collective).evaluate(scenario)
        if choice == DEFAULT:
            return self.describe_default(scenario, thread_level)
        number = self.catalogue.algorithm(scenario.collective, choice).number
        return f"coll/tuned, algorithm {number}: {choice}"

    def describe_default(self, scenario: Scenario, thread_level: str) -> str:  # noqa: ARG002
        entry = self.catalogue.collective(scenario.collective)
        if not entry.in_file:
            return _OF_LIBNBC
        owner = entry.owner
        return _OF_HAN if owner == "han" and scenario.nodes > 1 and self.catalogue.has_han else _OWN

    def components(self, output_under: Callable[[Mapping[str, str]], str]) -> tuple[list[str], list[str]]:
        selected = parse_selected(output_under(VERBOSE))
        if not selected:
            return [], ["Open MPI does not say which components it selected, so coll/tuned may not be asked"]
        return describe_components(selected), find_outranking(selected)


def find_obstacles(environ: Mapping[str, str], command: Sequence[str] = ()) -> list[str]:
    """What in ``environ``, in Open MPI's own files, or among the options of ``command`` goes before the rules.

    A sentence each, with the file where one says so.
    """
    given = {name.removeprefix(_PREFIX): value for name, value in environ.items() if name.startswith(_PREFIX)}
    for position, word in enumerate(command[:-2]):
        if word.lstrip("-") in ("mca", "gmca", "omca", "gomca"):
            given[command[position + 1]] = command[position + 2]
    obstacles = {text: text for text in _obstacles(given)}
    for path in _parameter_files(environ, given):
        values = _read_parameters(path)
        given = {**given, **values} if path.name == _OVERRIDE else {**values, **given}
        obstacles = {text: obstacles.get(text, f"{text} ({path} says so)") for text in _obstacles(given)}
    return list(obstacles.values())


def _parameter_files(environ: Mapping[str, str], given: Mapping[str, str]) -> Iterator[Path]:
    """The user's file of parameters, and those that the Open MPI of PATH has of its site: the first goes before.

    The last is the site's file that goes before all else. ``given`` may name others in the place of the first two.
    """
    etcs: list[Path] = []
    if mpiexec := shutil.which("mpiexec", path=environ.get("PATH", "")):
        prefixes = dict.fromkeys(path.parent.parent for path in (Path(mpiexec).absolute(), Path(mpiexec).resolve()))
        etcs = [*(prefix / "etc" for prefix in prefixes), *([_OF_DEBIAN] if Path("/usr") in prefixes else [])]
    if moved := environ.get("OPAL_PREFIX"):
        etcs.insert(0, Path(moved) / "etc")
    named = [given.get(f"mca_base_{name}", "") for name in ("envar_file_prefix", "param_files")]
    yield from (Path(path) for paths in named for path in paths.split(",") if path)
    if not named[1]:
        if home := environ.get("HOME"):
            yield Path(home) / ".openmpi" / "mca-params.conf"
        yield from (etc / "openmpi-mca-params.conf" for etc in etcs)
    yield from (etc / _OVERRIDE for etc in etcs)


def _read_parameters(path: Path) -> dict[str, str]:
    """What is set in a file of Open MPI's parameters; nothing where it cannot be read."""
    try:
        text = read_text(path, link=True)
    except (OSError, ValueError):
        return {}
    lines = (match for line in text.splitlines() if (match := _PARAMETER.fullmatch(line)))
    return {match[1]: match[2] for match in lines}


def _obstacles(given: Mapping[str, str]) -> list[str]:
    obstacles = []
    for collective in COLLECTIVES:
        name = f"coll_tuned_{collective}_algorithm"
        if given.get(name, "0") not in ("0", "ignore"):
            obstacles.append(f"{name} is {given[name]}, which goes before every rule of {collective}")
    components = given.get("coll", "")
    if components and ("tuned" in components.removeprefix("^").split(",")) == components.startswith("^"):
        obstacles.append(f"coll is {components}, which leaves out coll/tuned, the reader of the rules")
    if given.get("coll_tuned_use_dynamic_rules", "1").lower() in ("0", "false", "no"):
        obstacles.append("coll_tuned_use_dynamic_rules is off, so no file is read")
    obstacles += find_given(given)
    return obstacles
