"""Which collectives the programs of NPB and HPCC call, and with what sizes, by class and number of processes.

    python benchmarks/application_messages.py --npb DIR [--classes S,W,A] [--ranks 2,4,8] [--to 16,32,64,512,1024]
        [--hpcc COMMAND] [--hpcc-mpiexec COMMAND]

Tables II and III of the paper on Tianhe-2 (2020), by `colltune profile` on this machine, and beyond it by what profiles
at fewer processes say (profile/extrapolate.py). DIR: the programs of NPB 3.4 for MPI (ft.A.x and so on), built with the
mpicc beside this Python. Those that ask for a square number of processes run on 4 and 9. HPCC runs with its sample
input, all seven parts in one program (Debian: `apt-get install hpcc openmpi-bin`). Only what is called counts, no
times, so other work does not matter. Profiles stay in bench/messages and are not made again. Prints the tables.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from colltune.core.errors import InputError
from colltune.core.units import format_size
from colltune.profile.application_profile import Profile
from colltune.profile.extrapolate import extrapolate
from colltune.profile.profile_files import load_profile
from harness import mpi_beside, options_of

KEPT = Path("bench") / "messages"
NPB, SQUARES = ("is", "ft", "cg", "mg", "lu", "sp", "bt"), ("sp", "bt")
INPUT = Path(__file__).parent / "application_inputs" / "hpccinf.txt"
# Ranks that wait give way: there are more of them than processors.
YIELD = {"MPIR_CVAR_ENABLE_HEAVY_YIELD": "1", "OMPI_MCA_mpi_yield_when_idle": "1"}
YIELD |= {f"OMPI_ALLOW_RUN_AS_ROOT{more}": "1" for more in ("", "_CONFIRM")}


def profiled(name: str, command: Sequence[str], mpiexec: str, ranks: int, place: Path = KEPT) -> Profile | None:
    """None, and why, where the program does not run so."""
    out = (KEPT / f"{name}-{ranks}.json").resolve()
    if not out.exists():
        words = [sys.executable, "-m", "colltune", "profile", "--out", str(out), "--"]
        job = [mpiexec, *["--oversubscribe"] * ("openmpi" in mpiexec), "-n", str(ranks), *command]
        done = subprocess.run(
            [*words, *job], env={**os.environ, **YIELD}, cwd=place, capture_output=True, text=True, check=False
        )
        if done.returncode != 0 or not out.exists():
            print(f"{name} on {ranks} is left out: {(done.stdout + done.stderr)[-300:]}", file=sys.stderr)
            return None
    return load_profile(out)


def called(profiles: Iterable[Profile]) -> str:
    """The collectives, those with most time first."""
    names = dict.fromkeys(call.collective for profile in profiles for call in profile.by_time())
    return ", ".join(f"MPI_{name.capitalize()}" for name in names) or "none"


def sizes(profile: Profile, collective: str) -> str:
    """From the call with most time to that with least; a block for each peer, or the whole vector."""
    found = [call for call in profile.by_time() if call.collective == collective]
    texts = dict.fromkeys(
        format_size(call.size_least)
        if call.size_least == call.size_most
        else f"{format_size(call.size_least)} to {format_size(call.size_most)}"
        for call in found
    )
    return ", ".join(list(texts)[:3]) + ", ..." * (len(texts) > 3)


def of_ranks(profiles: Sequence[Profile], ranks: int) -> Profile | None:
    """The profile of so many ranks, or what the others say of it; None where they say nothing."""
    with suppress(InputError):
        return next((one for one in profiles if one.ranks == ranks), None) or extrapolate(profiles, ranks, 1)[0]
    return None


def cell(view: Profile | None, taken: Sequence[Profile], collective: str) -> str:
    text = sizes(view, collective) if view else ""
    return text if view in taken else f"({text})" if text else "-"


def table(rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([lines[0], "|---" * len(rows[0]) + "|", *lines[1:]])


def main() -> None:
    parser = options_of(__doc__)
    parser.add_argument("--npb", type=Path, required=True)
    parser.add_argument("--classes", default="S,W,A")
    parser.add_argument("--ranks", default="2,4,8")
    parser.add_argument("--to", default="16,32,64,512,1024")
    parser.add_argument("--hpcc", default="hpcc")
    parser.add_argument("--hpcc-mpiexec", default="mpiexec.openmpi")
    asked = parser.parse_args()
    KEPT.mkdir(parents=True, exist_ok=True)
    (KEPT / INPUT.name).write_bytes(INPUT.read_bytes())
    ranks, further = ([int(word) for word in text.split(",")] for text in (asked.ranks, asked.to))
    mpiexec = str(mpi_beside().mpiexec)
    made: dict[str, list[Profile]] = {}
    for name in (f"{program}.{size}" for program in NPB for size in asked.classes.split(",")):
        numbers = [4, 9] if name.split(".")[0] in SQUARES else ranks
        command = [str((asked.npb / f"{name}.x").resolve())]
        made[name] = [one for count in numbers if (one := profiled(name, command, mpiexec, count))]
    made["hpcc"] = [one for n in ranks if (one := profiled("hpcc", [asked.hpcc], asked.hpcc_mpiexec, n))]
    of: dict[str, list[Profile]] = {}
    for name, profiles in made.items():
        of.setdefault(name.split(".")[0], []).extend(profiles)
    print(table([["program", "collectives"], *([program, called(some)] for program, some in of.items())]), "\n")
    rows = [["program", "collective", *map(str, ranks + further)]]
    for name, profiles in made.items():
        views = [of_ranks(profiles, count) for count in ranks + further]
        for collective in dict.fromkeys(call.collective for one in profiles for call in one.by_time()):
            if any(call.size_most for one in profiles for call in one.calls if call.collective == collective):
                rows.append([name, collective, *(cell(view, profiles, collective) for view in views)])
    print(table(rows))


if __name__ == "__main__":
    main()
