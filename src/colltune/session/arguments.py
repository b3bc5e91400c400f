"""What a caller may say, by name: the command line and the Python interface are both made from this.

An argument is written once, with its help, its default and its bounds. `TypedDict` gives a type checker the names and
types; `Flag` gives the command line its options.
"""

import difflib
import inspect
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypedDict, TypeVar, cast, get_type_hints

from colltune.core.errors import InputError
from colltune.core.units import parse_size

if TYPE_CHECKING:
    from colltune.bench.workbench import MachineOptions

# The largest message that is tuned, collected, planned or predicted for, where nobody says another.
MAX_SIZE = "1MiB"
LARGEST_BYTES = parse_size(MAX_SIZE)
VIA = "file: what the library itself loads. live: a preloaded selector, which can tell more apart."
PathLike = str | os.PathLike[str]
_Arguments = TypeVar("_Arguments", bound=Mapping[str, object])


@dataclass(frozen=True)
class Flag:
    """How an argument is offered. ``kind``: its type on the command line. ``least``: the smallest number allowed."""

    help: str
    default: object = None
    kind: type = str
    least: int | None = None


class MachineArguments(TypedDict, total=False):
    """Where to run. What is not given is found; to look at a tuning it is that of the tuning."""

    mpiexec: Annotated[str | None, Flag("mpiexec of the MPI to use. Default: beside this Python, then on PATH.")]
    hostfile: Annotated[PathLike | None, Flag("File with the nodes, where no scheduler says them.", kind=Path)]
    nodes: Annotated[int | None, Flag("Nodes to use. Default: all of the job.", kind=int, least=1)]
    ppn: Annotated[int | None, Flag("Ranks per node. Default: as many as the job has.", kind=int, least=1)]
    launch_line: Annotated[
        str | None,
        Flag(
            'How you start programs, up to the program: "srun --cpu-bind=cores ./wrapper.sh". Launches are made so,'
            " with its ranks. With tune and verify the same may stand behind --."
        ),
    ]


class CampaignArguments(TypedDict, total=False):
    """What to tune, and how long."""

    profile: Annotated[
        PathLike | Sequence[PathLike] | None,
        Flag(
            "Tune what this application calls: a file of `colltune profile`, or a directory in which"
            " `colltune run --profile` left one. Given several times, of other numbers of ranks: what they say of"
            " this job's.",
            kind=list[Path],
        ),
    ]
    runtime: Annotated[
        str | float, Flag("With --profile: the time that the application will still run, all runs together.", "2h")
    ]
    check: Annotated[
        bool,
        Flag(
            "With --profile: at the end run the application too, by the command of its profile, with and without"
            " the rules in turn. Rules with which it is slower are withdrawn.",
            False,
            bool,
        ),
    ]
    budget: Annotated[
        str | float,
        Flag(
            "Time for the whole command, such as 90s or 5m: launches, measuring, proof, conformance check. Where a"
            " tuning takes longer at least, it says so at its start. --check comes on top.",
            "5m",
        ),
    ]
    min_size: Annotated[str | int, Flag("Smallest message.", "1")]
    max_size: Annotated[str | int, Flag("Largest message, such as 64KiB or 1MiB.", MAX_SIZE)]
    sizes: Annotated[
        str | Sequence[str | int] | None,
        Flag(
            "The message sizes themselves, such as 8,300,4KiB. Default: powers of two between --min-size and"
            " --max-size, and one in five between two of these."
        ),
    ]
    resume: Annotated[bool, Flag("Go on with a campaign that was cut off.", False, bool)]
    gate: Annotated[str, Flag("on: keep only rules proven faster in fresh launches. off: keep all (research).", "on")]
    reproducible: Annotated[bool, Flag("Reductions give the same bits for every message size and timing.", False, bool)]
    topology: Annotated[
        str | None,
        Flag(
            "Which parts of the job may measure at once: a file, a scheme such as aurora, or serial."
            " Default: what Slurm or the names of the hosts tell, else serial."
        ),
    ]
    store: Annotated[
        PathLike | None,
        Flag(
            "Directory in which the jobs of this site keep what they measure: begin with that, and add to it."
            " Default: COLLTUNE_STORE.",
            kind=Path,
        ),
    ]
    seed: Annotated[int, Flag("Seed of every random choice.", 1, int, least=0)]


class TuneArguments(CampaignArguments, MachineArguments, total=False):
    """All that `tune` takes beside the collectives and the directory."""

    thread_level: Annotated[
        str,
        Flag(
            "What the application asks MPI_Init_thread for: single, funneled, serialized or multiple."
            " Default: with --profile that of its program, else single.",
            "",
        ),
    ]


class RunArguments(TypedDict, total=False):
    """How to run an application under a tuning."""

    prove: Annotated[
        bool,
        Flag(
            "Say at the end whether the tuning was in force, and how many calls met a rule, by collective; exit code 3"
            " if nothing proves it, or no call did.",
            False,
            bool,
        ),
    ]
    profile: Annotated[bool, Flag("Note the collective calls too, for the next `tune --profile TUNED`.", False, bool)]
    provisional: Annotated[bool, Flag("Also use decisions that a job which was ended left unproven.", False, bool)]
    measure: Annotated[
        bool,
        Flag(
            "Measure in the application itself what the tuning is worth: a share of its calls runs by default."
            " Implies --via live.",
            False,
            bool,
        ),
    ]
    share: Annotated[str | int, Flag("With --measure: that share, 1% to 50%.", "5%")]
    auto: Annotated[
        bool,
        Flag(
            "Let the program's own runs tune it, with TUNED as their memory, which need not exist: the first notes what"
            " it calls, later ones try faster algorithms in few of these calls. Implies --via live.",
            False,
            bool,
        ),
    ]
    risk: Annotated[
        str | float, Flag("With --auto: what trying may cost of the run's time, as far as is known.", "0.1%")
    ]
    via: Annotated[str, Flag(VIA, "file")]
    alltoallv: Annotated[
        PathLike | None,
        Flag("Directory (or its table) of `tune alltoallv`, for MPI_Alltoallv; TUNED may then be left out.", kind=Path),
    ]


def offered(arguments: type) -> dict[str, Flag]:
    """How each of ``arguments``, a TypedDict, is offered, by name."""
    hints = get_type_hints(arguments, include_extras=True)
    return {name: next(flag for flag in hint.__metadata__ if isinstance(flag, Flag)) for name, hint in hints.items()}


def complete(kind: type[_Arguments], given: _Arguments) -> _Arguments:
    """``given`` with the defaults of what it leaves out. Raises InputError for a name or number out of place."""
    known = offered(kind)
    for name, value in given.items():
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            raise InputError(
                f"there is no argument {name!r}", f"Did you mean {close[0]}?" if close else f"Use {', '.join(known)}"
            )
        least = known[name].least
        if least is not None and isinstance(value, int) and value < least:
            raise InputError(f"{name}={value} is too small", f"Give {least} or more")
    return cast(_Arguments, {**{name: flag.default for name, flag in known.items()}, **given})


def signature_of(function: object, arguments: type) -> inspect.Signature:
    """The signature of ``function``, which takes ``**arguments``, with each of these by its name, type and default."""
    assert callable(function)
    own = inspect.signature(function, eval_str=True)
    named = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=offered(arguments)[name].default, annotation=hint
        )
        for name, hint in get_type_hints(arguments).items()
    ]
    rest = [parameter for parameter in own.parameters.values() if parameter.kind is not inspect.Parameter.VAR_KEYWORD]
    return own.replace(parameters=[*rest, *named])


def machine_options(given: MachineArguments, thread_level: str = "single") -> "MachineOptions":
    """The same for a workbench."""
    from colltune.bench.workbench import MachineOptions

    values = complete(MachineArguments, given)
    hostfile = values["hostfile"]
    place = None if hostfile is None else Path(hostfile)
    return MachineOptions(values["mpiexec"], place, values["nodes"], values["ppn"], thread_level, values["launch_line"])


def names_of(collectives: str | Sequence[str]) -> Sequence[str]:
    """A name alone, or several."""
    return [collectives] if isinstance(collectives, str) else collectives


def paths_of(given: PathLike | Sequence[PathLike]) -> list[Path]:
    """A path alone, or several."""
    return [Path(path) for path in ([given] if isinstance(given, str | os.PathLike) else given)]


# Arguments of `tune` that say nothing for MPI_Alltoallv, whose algorithms and table are our own.
_NOT_FOR_ALLTOALLV = ("runtime", "check", "min_size", "sizes", "gate", "reproducible", "topology")


def refuse_with_alltoallv(given: Collection[str]) -> None:
    """Raises InputError for arguments, by their names, that would be without effect for MPI_Alltoallv."""
    refused = [name for name in _NOT_FOR_ALLTOALLV if name in given]
    if refused:
        names = ", ".join("--" + name.replace("_", "-") for name in refused)
        raise InputError(f"{names} cannot be used with `tune alltoallv`", "Leave it out; --help says what there is")
