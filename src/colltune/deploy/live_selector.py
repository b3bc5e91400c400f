"""The live selector in place of the library's own file: its rules, and how it is put in force."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from colltune.bench.contract import LibraryBench
from colltune.catalog import load
from colltune.core.errors import InputError
from colltune.core.proven import Decision, Verdict, Why
from colltune.core.rules import RuleSet
from colltune.emit.live_rules import LIVE_FILE, LIVE_VARIABLE, LiveEmitter, live_basis
from colltune.machine.compile import PRELOAD, cache_directory
from colltune.mpi.installation import Installation
from colltune.mpi.libraries import record_of
from colltune.mpi.programs import library_for
from colltune.store.tuning import Tuning

FOLDER = "live"
_WAYS = ("file", "live")


def proven_live(decisions: Sequence[Decision]) -> list[Decision]:
    """``decisions`` as far as it concerns the selector: what was proven by control variables, which it sets too.

    A file may have been refused for the search that it costs, or because it cannot tell two shapes apart.
    """
    return [
        replace(result, verdict=Verdict.KEPT, why=Why.MEASURED, reason="") if result.why is Why.SLOW_FILE else result
        for result in decisions
    ]


def with_live(bench: LibraryBench, tuning: Tuning, rule_sets: Mapping[str, RuleSet]) -> Tuning:
    """``tuning`` with ``rule_sets`` for the selector, and the file in which it reads them."""
    non_default = {name: rules for name, rules in rule_sets.items() if rules.departs}
    if any(bench.settings(name, rule.choice) is None for name, rules in non_default.items() for rule in rules.rules):
        return replace(tuning, live={})  # of a library that cannot be steered while it runs
    files = LiveEmitter(bench.catalogue, bench.settings).emit(list(non_default.values()))
    named = {f"{FOLDER}/{name}": data for name, data in files.items()}
    return replace(tuning, live=non_default, files={**tuning.files, **named})


def only_live(tuning: Tuning) -> list[str]:
    """The collectives with a rule that no file of the library can hold."""
    live = sorted(name for name, rules in (tuning.live or {}).items() if rules.departs)
    if not live:
        return []
    catalogue = load(tuning.environment.mpi, tuning.environment.mpi_version)
    return [name for name in live if not catalogue.collective(name).in_file]


def by_selector_alone(
    bench: LibraryBench, tuning: Tuning, rule_sets: Mapping[str, RuleSet], environment: Mapping[str, str]
) -> Tuning:
    """``tuning`` with ``rule_sets`` and nothing else, as the selector decides. Raises as ``in_force_via``."""
    made = with_live(bench, replace(tuning, rule_sets=rule_sets, files={}, by_shape=None), rule_sets)
    return in_force_via(made, "live", environment, lambda: bench.installation)


def require_way(way: str) -> None:
    """Raises InputError where ``way`` is neither "file" nor "live"."""
    if way not in _WAYS:
        raise InputError(f"--via {way} is no way to put a tuning in force", f"Use {' or '.join(_WAYS)}")


def in_force_via(tuning: Tuning, way: str, environment: Mapping[str, str], mpi: Callable[[], Installation]) -> Tuning:
    """``tuning`` as it decides by way of ``way``, "file" or "live": its rules, and the variables that put it in force.

    "live" needs the library that is preloaded, for ``mpi``, which is the one that is here. Raises
    InputError for another way, for a thread level at which the selector refuses to work, and for a tuning without it.
    """
    require_way(way)
    if way == "file":
        return tuning
    name = next((name for name in tuning.files if name.endswith(f"{FOLDER}/{LIVE_FILE}")), None)
    if name is None and tuning.live == {}:
        raise InputError(
            f"{record_of(tuning.environment.mpi).title} takes algorithms when a job starts, so nothing can be switched"
            " while it runs",
            "Leave out --via live and --measure; colltune compare nothing TUNING times its calls in other launches",
        )
    if name is None or tuning.live is None:
        raise InputError("this tuning holds no rules for the live selector", "Tune again with this colltune")
    if tuning.environment.thread_level == "multiple":
        raise InputError(
            "the live selector does not work where several threads call MPI at once, and this was tuned for that",
            "Use --via file",
        )
    library = library_for(mpi(), cache_directory(environment))
    catalogue = load(tuning.environment.mpi, tuning.environment.mpi_version)
    rule_sets = {c: tuning.live.get(c, RuleSet.always(c, live_basis(catalogue, c))) for c in tuning.rule_sets}
    variables = {PRELOAD: str(library), LIVE_VARIABLE: f"{{directory}}/{name}"}
    return replace(tuning, rule_sets=rule_sets, variables=variables)
