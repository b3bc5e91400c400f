"""A change of a library's own selection for its maintainers to review, from the tunings of one or several sites.

A choice is proposed where a tuning has proven it and no other one that looked at the call stands against it. What
leaves the sites is a list of fields, each of a known form: no host, user, path or job can be in one.
"""

import csv
import difflib
import io
import os
import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from colltune.bench.backends import Backend, open_backend
from colltune.bench.backends.mpich import MpichBackend
from colltune.bench.backends.openmpi import OpenMpiBackend
from colltune.catalog import Catalogue
from colltune.catalog.named_files import FILES
from colltune.core.choice import DEFAULT, Choice
from colltune.core.errors import InputError
from colltune.core.hardware import Fabric
from colltune.core.judged_together import judged_regions
from colltune.core.proven import Decision, Verdict
from colltune.core.rules import RuleSet
from colltune.core.sample import Status
from colltune.core.scenario import Scenario
from colltune.core.space import Space, shapes
from colltune.core.units import format_count
from colltune.core.version import __version__
from colltune.distill.minimal_rules import distill_proven
from colltune.emit.contract import variables_for
from colltune.emit.mpich.tree import format_tree
from colltune.mpi.detect import find_mpi
from colltune.mpi.installation import Library
from colltune.report.templates import page_template, page_text
from colltune.session.lint import NAMES
from colltune.store.earlier import measurements
from colltune.store.tuning import JOURNAL, Tuning, load_tuning

EVIDENCE, PAGE, DIFF = "evidence.csv", "proposal.html", "default.diff"
_LEVELS = ("single", "funneled", "serialized", "multiple")
# What a field may look like; whatever does not is left out. A path has a slash, a network address a colon.
_VERSION = re.compile(r"\d+\.\d+(\.\d+)?(\.?(a|b|rc|post)\d+)?")
_MACHINE = re.compile(
    r"(AMD|ARM|Ampere|Apple|Cavium|Fujitsu|Hygon|IBM|Intel|NVIDIA|POWER)[\w() @.+-]{0,80}, \d+ cores?"
)
_FABRIC = re.compile(rf"({'|'.join(Fabric)})( [\d.]+ Gb/s)?( x \d+)?")
_OPEN = frozenset({Verdict.NOT_TRIED, Verdict.OPEN, Verdict.PROVISIONAL})
_Stance = tuple[Choice, bool]  # what a tuning stands for in a call, the default too, and whether that is decided


@dataclass(frozen=True)
class _View:
    """A tuning, with its stance on each scenario that it looked at."""

    tuning: Tuning
    stances: Mapping[Scenario, _Stance]


@dataclass(frozen=True)
class ProposedDefault:
    """``files``: by name, those of the library, what they change of its own, the evidence and a page.

    ``choices``: what is proposed. ``vetoed``: calls that a tuning proved and another one stands against. ``unsaid``:
    those that no tuning stands against, and that the library's files cannot say.
    """

    files: Mapping[str, bytes]
    choices: Mapping[Scenario, Choice]
    vetoed: Collection[Scenario]
    unsaid: Collection[Scenario]


def propose(directories: Sequence[Path], to: str, mpiexec: str | None = None) -> ProposedDefault:
    """What the tunings in ``directories`` propose to the library ``to``, "mpich" or "openmpi".

    ``mpiexec``: of an MPICH of their version, around whose own trees the files are made. Raises InputError where the
    tunings are not of one version of that library and one thread level, were not proven, or agree on nothing.
    """
    if to not in FILES or len({one.resolve() for one in directories}) < len(directories):
        what = "a tuning is named twice" if to in FILES else f"--to {to} is no library that can be proposed to"
        raise InputError(what, "Write for example: colltune site propose --to mpich here/ there/")
    views = [_view(one, to) for one in directories]
    where = [view.tuning.environment for view in views]
    for one, directory in zip(where, directories, strict=True):
        if (one.mpi_version, one.thread_level) != (where[0].mpi_version, where[0].thread_level):
            raise InputError(
                f"{directories[0]} is of {to} {where[0].mpi_version}, thread level {where[0].thread_level}, and "
                f"{directory} of {one.mpi_version}, {one.thread_level}: their defaults may differ",
                "Propose for each by itself",
            )
    return _merged(views, _backend(views[0].tuning, mpiexec))


def _merged(views: Sequence[_View], backend: Backend) -> ProposedDefault:
    where = views[0].tuning.environment
    stances: defaultdict[Scenario, list[_Stance]] = defaultdict(list)
    for view in views:
        for scenario, stance in view.stances.items():
            stances[scenario].append(stance)

    def legal(scenario: Scenario) -> tuple[Choice, ...]:
        return backend.catalogue.legal(scenario, where.thread_level, beside=True)

    # What a tuning proved and none stands against.
    wanted = {
        one: some[0][0] if len({choice for choice, _ in some}) == 1 and any(sure for _, sure in some) else DEFAULT
        for one, some in sorted(stances.items())
    }
    agreed = {one: choice if choice in legal(one) else DEFAULT for one, choice in wanted.items()}
    seen = {shape for view in views for job in view.tuning.tuned_in for shape in shapes(*job)}
    seen |= {(one.nodes, one.ppn) for one in agreed}
    rules: dict[str, RuleSet] = {}
    for name in sorted({scenario.collective for scenario in agreed}):
        mine = {one: choice for one, choice in agreed.items() if one.collective == name}
        basis = backend.catalogue.collective(name).basis
        rules[name] = backend.expressible(distill_proven(mine, Space(name, tuple(mine), legal), basis), sorted(seen))
    proven = {one for one, some in stances.items() if any(sure and choice != DEFAULT for choice, sure in some)}
    vetoed = {one for one in proven if wanted[one] == DEFAULT}
    unsaid = {one for one in proven - vetoed if rules[one.collective].evaluate(one) != wanted[one]}
    choices = {one: choice for one, choice in agreed.items() if one in proven - vetoed - unsaid}
    if not choices:
        raise InputError(
            f"nothing to propose: {format_count(len(proven), 'call')} proven to be faster, {len(vetoed)} with another "
            f"tuning against it, {len(unsaid)} that no file of {NAMES[where.mpi]} can say",
            "Tune on one more site, or with a larger --budget",
        )
    found = ProposedDefault(_files(backend, rules), choices, vetoed, unsaid)
    beside = {EVIDENCE: _evidence(views, found, backend.catalogue), PAGE: _page(views, found, backend).encode()}
    return ProposedDefault({**found.files, **beside}, choices, vetoed, unsaid)


def _view(directory: Path, to: str) -> _View:
    tuning = load_tuning(directory)
    where, why = tuning.environment, ""
    if where.mpi != to:
        why = f"was measured under {where.mpi[:40]} {where.mpi_version[:40]}, not under {NAMES[to]}"
    elif not _VERSION.fullmatch(where.mpi_version) or where.thread_level not in _LEVELS:
        why = f"names the version {where.mpi_version[:40]!r} and the thread level {where.thread_level[:40]!r}"
    elif not tuning.summary.gated:
        why = "was made by tune --gate off, which proves nothing"
    elif not (directory / JOURNAL).is_file():
        why = f"has no {JOURNAL}, so what it looked at and left to the library is not known"
    if why:
        raise InputError(f"{directory} {why}", f"Leave it out, or tune {NAMES[to]} there again")
    tried: defaultdict[Scenario, set[Choice]] = defaultdict(set)
    for sample in measurements(directory):
        if sample.status is Status.OK:
            tried[sample.scenario].add(sample.choice)
    # Where two choices were timed and nothing was found that may pay, it stands for the default.
    stances = {scenario: (DEFAULT, True) for scenario, choices in tried.items() if len(choices) > 1}
    return _View(tuning, stances | {one.scenario: _stance(one) for one in _judged(tuning).values()})


def _judged(tuning: Tuning) -> dict[Scenario, Decision]:
    """The decision on each call; where there are several, the one that is proven."""
    return {one.scenario: one for one in sorted(tuning.summary.decisions, key=lambda one: one.verdict is Verdict.KEPT)}


def _stance(decision: Decision) -> _Stance:
    if decision.verdict is Verdict.KEPT:
        return decision.choice, True
    may_pay = decision.verdict in _OPEN and (decision.speedup.estimate > 1.0 or not decision.has_evidence)
    return (decision.choice, False) if may_pay else (DEFAULT, True)


def _backend(tuning: Tuning, mpiexec: str | None) -> Backend:
    wanted = tuning.environment
    if wanted.mpi != "mpich":
        return OpenMpiBackend(wanted.mpi_version)
    here = find_mpi(mpiexec, os.environ, compiles=False)
    if here.library is not Library.MPICH or here.version != wanted.mpi_version:
        raise InputError(
            f"{here.mpiexec} is {here.library} {here.version}, and the files are made around the trees of an MPICH "
            f"{wanted.mpi_version}, as the tunings are of",
            "Name one by --mpiexec",
        )
    return open_backend(here)


def _files(backend: Backend, rules: Mapping[str, RuleSet]) -> dict[str, bytes]:
    files = dict(backend.emitter.emit(list(rules.values())))
    if not isinstance(backend, MpichBackend):
        return files
    own = backend.emitter.defaults
    lines: list[str] = []
    for name, tree in zip(FILES["mpich"].values(), (own.general, own.ch4, own.posix or {}), strict=True):
        if name in files:
            before, after = (data.decode().splitlines(keepends=True) for data in (format_tree(tree), files[name]))
            lines += difflib.unified_diff(before, after, f"default/{name}", f"proposed/{name}")
    return {**files, DIFF: "".join(lines).encode()}


def _evidence(views: Sequence[_View], found: ProposedDefault, catalogue: Catalogue) -> bytes:
    """A row for each call that a tuning looked at."""
    out = io.StringIO()
    out.write("tuning,collective,nodes,ppn,size_bytes,choice,verdict,speedup,low,high,launches,proposed\n")
    writer = csv.writer(out, lineterminator="\n")
    for number, view in enumerate(views, start=1):
        judged = _judged(view.tuning)
        for it in sorted(view.stances):
            said: list[object] = ["default", "stays", "", "", "", ""]
            if (one := judged.get(it)) is not None:
                numbers = [
                    f"{value:.4g}" if one.has_evidence else ""
                    for value in (one.speedup.estimate, one.speedup.low, one.speedup.high)
                ]
                named = one.choice if one.choice in catalogue.choices(it.collective) else "another"
                said = [named, one.verdict, *numbers, one.launches or ""]
            yes = "yes" if it in found.choices else "no"
            writer.writerow([number, it.collective, it.nodes, it.ppn, it.size_bytes, *said, yes])
    return out.getvalue().encode()


def _page(views: Sequence[_View], found: ProposedDefault, backend: Backend) -> str:
    where = views[0].tuning.environment
    own = [name for name in FILES[where.mpi].values() if name in found.files]
    regions, tunings = [], []
    for number, tuning in enumerate((view.tuning for view in views), start=1):
        kept, refused = (tuning.summary.having(verdict) for verdict in (Verdict.KEPT, Verdict.REFUSED))
        regions += [(number, it) for it in judged_regions(one for one in kept if one.scenario in found.choices)]
        matches = _MACHINE.match(tuning.environment.machine), _FABRIC.match(tuning.environment.fabric)
        known = (match[0] if match else "unknown" for match in matches)
        tunings.append((*known, tuning.tuned_in, len(kept), len(refused), len(views[number - 1].stances)))
    return page_template("proposal.html.j2").render(
        library=NAMES[where.mpi],
        mpi=where,
        found=found,
        regions=sorted(regions, key=lambda pair: (pair[1].place, pair[0])),
        tunings=tunings,
        evidence=EVIDENCE,
        files=own,
        variables=variables_for(backend.emitter, Path("$PWD"), own),
        version=__version__,
        css=page_text("report.css"),
    )
