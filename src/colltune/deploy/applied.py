"""A tuning in force in an application: what its launcher and its ranks get, and what keeps the tuning from deciding."""

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from colltune.deploy.faults import require_sound
from colltune.machine.compile import PRELOAD, cache_directory, preload_variables
from colltune.mpi.detect import mpi_at_hand
from colltune.mpi.libraries import record_of
from colltune.mpi.program import tuned_command
from colltune.mpi.same import TunedMpi
from colltune.store.tuning import Tuning


@dataclass(frozen=True)
class AppliedTuning:
    """``tuning``, which lies in ``directory``, in force by ``variables`` in what is started from ``around``.

    ``exported``: these variables and others that the ranks need; some launchers export only those that they are given.
    """

    directory: Path
    tuning: Tuning
    around: Mapping[str, str]
    variables: Mapping[str, str]
    exported: Mapping[str, str]

    @property
    def environment(self) -> dict[str, str]:
        """Of the launcher."""
        return {**self.around, **self.exported}

    def exporting(self, variables: Mapping[str, str]) -> "AppliedTuning":
        """The same where the ranks get ``variables`` too."""
        return replace(self, exported={**self.exported, **variables})

    def command(self, command: Sequence[str]) -> list[str]:
        """``command`` such that its ranks on all nodes see what they need, by the MPI that was tuned."""
        beside = Path(sys.executable).parent
        return tuned_command(command, beside, self.tuning.environment.mpi, self.exported, self.environment.get("PATH"))

    def check_mpi(self, command: Sequence[str]) -> str:
        """Raises InputError where ``command`` would use another MPI than the one that was tuned.

        Returns what could not be found out, "" for nothing.
        """
        return self.mpi.check_command(replace(self, exported={}).command(command))

    @property
    def mpi(self) -> TunedMpi:
        """The MPI that was tuned, against which whatever is started from ``around`` is held."""
        values = numbered_algorithms(self.tuning) if self.variables else {}
        return TunedMpi(str(self.directory), self.tuning.environment, self.variables, self.around, values)

    def profiled(self, command: Sequence[str]) -> "tuple[Path, AppliedTuning]":
        """A file in the history of the directory for the profile of ``command``, and the same so that it is written."""
        from colltune.mpi.programs import library_for
        from colltune.profile.profile_files import profile_variables
        from colltune.store.earlier import PROFILE, new_entry

        installation = mpi_at_hand(command, self.around, build=self.tuning.environment.mpi_build)
        library = library_for(installation, cache_directory(self.environment))
        record = new_entry(self.directory, time.time()) / PROFILE
        return record, self.exporting(profile_variables(library, record, self.environment))

    def obstacles(self, command: Sequence[str]) -> list[str]:
        """What keeps the files from deciding, or lets them decide where they were not proven; a sentence each."""
        from colltune.bench.backends import obstacles_of
        from colltune.deploy.live_selector import only_live
        from colltune.mpi.launch_line import job_shape

        environment, mpi = self.environment, self.tuning.environment.mpi
        obstacles = obstacles_of(mpi, environment, command)
        if PRELOAD not in self.variables and (unsaid := only_live(self.tuning)):
            obstacles.append(f"no file of this MPI decides {', '.join(unsaid)}: for these use --via live")
        if record_of(mpi).tells_nodes:
            return obstacles
        shape = job_shape(environment, command)
        counts = sorted({count for count, _ in self.tuning.tuned_in})
        if shape is not None and shape[0] not in counts:
            obstacles.append(
                f"tuned on {' and '.join(map(str, counts))} {'node' if counts == [1] else 'nodes'}, and this job has"
                f" {shape[0]}: a file of {record_of(mpi).title} cannot tell them apart"
            )
        return obstacles


def numbered_algorithms(tuning: Tuning) -> dict[str, list[int]]:
    """The algorithms that Open MPI's rules of ``tuning`` name by number, by the variable that lists them."""
    from colltune.catalog import load
    from colltune.emit.openmpi.rules_file import RULES_FILE, parse_rules

    data = tuning.files.get(f"openmpi/{RULES_FILE}")
    if data is None:
        return {}
    catalogue = load("openmpi", tuning.environment.mpi_version)
    names = {number: entry.name for number, entry in catalogue.numbered().items()}
    return {
        f"{catalogue.prefix}{names[number]}_algorithm": sorted(
            {rule.algorithm for rules in communicators.values() for rule in rules}
        )
        for number, communicators in parse_rules(data.decode("ascii"), RULES_FILE).items()
        if number in names
    }


def put_in_force(
    directory: Path, tuning: Tuning, around: Mapping[str, str], via: str = "file", command: Sequence[str] = ()
) -> AppliedTuning:
    """``tuning``, which lies in ``directory``, by way of ``via``, "file" or "live", in ``command``.

    Raises as ``in_force_via``, and InputError for a fault in its files: whoever made it may not wish us well.
    """
    require_sound(tuning, str(directory))
    if via == "file":
        variables = tuning.variables_at(directory)
        return AppliedTuning(directory, tuning, around, variables, variables)
    from colltune.deploy.live_selector import in_force_via

    # A file that is in force already, by a module for example, would decide the calls by default.
    around = {name: value for name, value in around.items() if name not in tuning.variables}
    build = tuning.environment.mpi_build
    tuning = in_force_via(tuning, via, around, lambda: mpi_at_hand(command, around, build=build))
    variables = tuning.variables_at(directory)
    preloaded = preload_variables(variables[PRELOAD], around) if variables else {}
    return AppliedTuning(directory, tuning, around, variables, {**variables, **preloaded})
