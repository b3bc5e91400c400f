"""What `colltune site publish` does: a release of what jobs handed over, whose rules are measured anew in a job."""

import os
import tempfile
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from colltune.bench.workbench import MachineOptions, open_tuned_workbench
from colltune.core.errors import ColltuneError, LaunchError
from colltune.core.extras import __version__
from colltune.core.interval import SpeedVerdict
from colltune.core.proven import Verdict
from colltune.core.sample import DEFAULT, format_choice
from colltune.core.units import format_count
from colltune.deploy.faults import faults_in
from colltune.judge.verdict import fewest_launches
from colltune.mpi.detect import mpi_at_hand
from colltune.prove.compare.two_sides import verify
from colltune.session.site.state import user_name, user_text
from colltune.site.knowledge import job_name
from colltune.site.release import Release, publish
from colltune.site.store import SiteStore
from colltune.store.tuning import Tuning, load_tuning, save_tuning

# What is measured anew before it is published: so many calls, in about so many seconds.
_ANEW, _ANEW_S = 24, 120.0


def publish_here(store: SiteStore, trusted: Collection[int] = (), note: Callable[[str], None] = print) -> Release:
    """Makes a release of what can be handed to users; in a job its rules are measured anew. Raises ColltuneError."""

    def faults(tuning: Tuning) -> list[str]:
        return list(faults_in(tuning)) or lost_here(tuning, os.environ, note)

    return publish(store, user_name(), __version__, faults, trusted=trusted)


def lost_here(tuning: Tuning, environ: Mapping[str, str], note: Callable[[str], None]) -> list[str]:
    """Where the files are slower than the default when they are measured anew, in a job of their shape; else nothing.

    ``note`` hears whether they were.
    """
    if not job_name(environ):
        return []
    here = tuning.environment
    shape = f"{here.nodes} x {here.ppn}"
    kept = [decision.scenario for decision in tuning.summary.having(Verdict.KEPT)]
    scenarios = kept[:: max(1, -(-len(kept) // _ANEW))]
    with tempfile.TemporaryDirectory(prefix="colltune-", dir=Path.cwd()) as place:
        try:
            mpiexec = str(mpi_at_hand((), environ, build=here.mpi_build).mpiexec)
            bench = open_tuned_workbench(MachineOptions(mpiexec, nodes=here.nodes, ppn=here.ppn), here, environ)
            save_tuning(Path(place), tuning)
            launches = fewest_launches(len(scenarios))
            comparisons = verify(bench, tuning, Path(place), scenarios, launches, 1, deadline_s=bench.now_s() + _ANEW_S)
        except LaunchError as error:
            return [f"measured anew, a job under it fails: {error.what}"]
        except ColltuneError as error:
            note(f"{shape} is not measured anew: {error.what}")
            return []
    note(f"{shape}: measured anew at {format_count(len(comparisons), 'call')}")
    slower = [str(comparison.scenario) for comparison in comparisons if comparison.verdict is SpeedVerdict.SLOWER]
    return [f"measured anew, it is slower at {', '.join(slower)}"] if slower else []


def described(release: Release) -> list[str]:
    """What ``release`` hands out and by whom it is said, a line each."""
    lines = []
    for tuning in release.tunings:
        rules = load_tuning(release.place / tuning.directory).rule_sets
        lines.append(
            f"{tuning.directory}: {tuning.proven} decisions proven, said by {', '.join(map(user_text, tuning.writers))}"
        )
        for name in tuning.collectives:
            choices = sorted({format_choice(rule.choice) for rule in rules[name].rules if rule.choice != DEFAULT})
            lines.append(f"  {name}: {', '.join(choices)}")
        lines += [f"  sets {name}={value}" for name, value in sorted(tuning.variables.items())]
    return lines
