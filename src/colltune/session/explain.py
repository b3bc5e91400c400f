"""Explains a call under a tuning: the rule, the algorithm, the default, and what was measured around it.

Also where two tunings decide differently: what `colltune report --diff` does.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from colltune.bench.backends import recall_backend
from colltune.core.errors import InputError, on_os_error
from colltune.core.sample import DEFAULT, REDUCTIONS, Choice, Scenario, parse_collective
from colltune.core.units import parse_size
from colltune.deploy.live_selector import only_live
from colltune.profile.application_profile import time_shares
from colltune.profile.profile_files import load_profile
from colltune.prove.in_run.in_application import said_of
from colltune.report.diff_text import TuningDifference, compare_decisions
from colltune.report.explanation import WIDTH, format_explanation
from colltune.report.findings import Findings
from colltune.store.earlier import latest_profile, measurements
from colltune.store.tuning import CONFIRMATION, Tuning, load_tuning


def explain_call(
    directory: Path,
    collective: str,
    size: str | int | None = None,
    nodes: int | None = None,
    ppn: int | None = None,
    width: int = WIDTH,
) -> str:
    """One screenful of text, ``width`` columns wide, about a call under the tuning in ``directory``.

    ``size`` in bytes or as people write it; None is right for a barrier alone. ``nodes``, ``ppn``: None is those
    of the tuning. Raises InputError for what was not tuned, and for calls that cannot be.
    """
    tuning = load_tuning(directory)
    environment = tuning.environment
    scenario = scenario_of(tuning, collective, size, nodes or environment.nodes, ppn or environment.ppn)
    return format_explanation(_findings(directory, tuning, {}), scenario, *_outcomes(tuning, scenario), width)


def load_findings(directory: Path, profile: Path | None = None) -> Findings:
    """The content of a report about ``directory``, for the application of ``profile`` (a file) if one is given.

    Raises InputError where there is no tuning, or no profile in the file.
    """
    return _findings(directory, load_tuning(directory), _shares(directory, profile))


def _findings(directory: Path, tuning: Tuning, shares: Mapping[Scenario, float]) -> Findings:
    return Findings(
        tuning.environment,
        tuning.rule_sets,
        tuning.summary,
        measurements(directory),
        measurements(directory, CONFIRMATION),
        tuning.tuned_in,
        _default_equivalent_in(tuning),
        shares,
        said_of(directory, tuning.environment, lambda _text: None),
        only_live(tuning),
    )


def make_page(directory: Path, out: Path | None = None, profile: Path | None = None) -> Path:
    """Writes the page of the tuning in ``directory``, by default into it, and returns where it is.

    ``profile``: of the application whose gain is told. Raises InputError where there is no tuning, the page cannot be
    written, or what makes it is not installed.
    """
    from colltune.report.html import PAGE, build_page

    page, path = build_page(load_findings(directory, profile), directory), out or directory / PAGE
    with on_os_error(f"cannot write {path}", "Give another file by --out"):
        path.write_text(page, encoding="utf-8")
    return path


def _default_equivalent_in(tuning: Tuning) -> Callable[[Scenario], Choice | None]:
    backend, thread_level = recall_backend(tuning.environment), tuning.environment.thread_level

    def equivalent(scenario: Scenario) -> Choice | None:
        try:
            return backend.default_equivalent(scenario, thread_level)
        except InputError:  # the library that was tuned is not here any more, so what its default is cannot be told
            return None

    return equivalent


def _shares(directory: Path, profile: Path | None) -> dict[Scenario, float]:
    """Of ``profile``, else of the one that lies in ``directory``; nothing where there is none."""
    if profile is None:
        try:
            profile = latest_profile(directory)
        except InputError:
            return {}
    return time_shares(load_profile(profile))


def scenario_of(tuning: Tuning, collective: str, size: str | int | None, nodes: int, ppn: int) -> Scenario:
    """The scenario of a call. Raises InputError for one that was not tuned, and for impossible calls."""
    collective = parse_collective(collective)
    if collective not in tuning.rule_sets:
        tuned = ", ".join(tuning.rule_sets) or "nothing"
        raise InputError(
            f"{collective} was not tuned, so the library decides alone", f"Tuned were {tuned}; tune {collective} too"
        )
    if nodes * ppn < 2:
        raise InputError("a single rank runs no algorithm", "Give --nodes or --ppn of 2 or more")
    if collective == "barrier":
        if size is not None and parse_size(size) != 0:
            raise InputError(f"a barrier has no message, so not one of {size}", "Leave --size out")
        return Scenario(collective, nodes, ppn, 0)
    if size is None:
        raise InputError(f"the size of the {collective} is missing", "Give for example --size 4KiB")
    size_bytes = parse_size(size)
    if size_bytes == 0:
        raise InputError(f"{collective} of no bytes runs no algorithm", "Give for example --size 4KiB")
    if collective in REDUCTIONS and size_bytes % 4:
        raise InputError(
            f"{size} is no whole number of 4-byte elements, which {collective} is tuned with",
            f"Give for example --size {size_bytes // 4 * 4 + 4}",
        )
    return Scenario(collective, nodes, ppn, size_bytes)


def _outcomes(tuning: Tuning, scenario: Scenario) -> tuple[str, str]:
    """What runs with the files and what runs without them."""
    environment = tuning.environment
    backend = recall_backend(environment)
    default = backend.describe_default(scenario, environment.thread_level)
    files = {Path(name).name: data for name, data in tuning.files.items()}
    if not files:  # of recorded times: no MPI reads its rules
        choice = tuning.rule_sets[scenario.collective].evaluate(scenario)
        return (default if choice == DEFAULT else str(choice)), default
    return backend.describe(files, scenario, environment.thread_level), default


def diff(path: Path, other: Path) -> TuningDifference:
    """The differences between two tuning directories. Raises InputError where either holds no tuning."""
    first, second = load_tuning(path), load_tuning(other)
    environments = first.environment.differences(second.environment)
    return TuningDifference(environments, *compare_decisions(first.rule_sets, second.rule_sets))
