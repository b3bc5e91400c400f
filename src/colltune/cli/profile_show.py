"""How a profile is printed."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from colltune.alltoallv.matrices import alltoallv_share
from colltune.cli.terminal import make_console
from colltune.core.text_table import TextTable
from colltune.core.units import format_count, format_duration
from colltune.machine.command_lines import colltune_command, mpiexec_option
from colltune.mpi.program import launcher_place
from colltune.profile.advice import benefit_text, by_name_text, page_faults_text, tunable_by_name, tunable_share
from colltune.profile.application_profile import Calls, Profile

_BAR = 24
_BRIEF = 8
# Rows that differ in the operation alone; sums and products are not named.
_OPERATIONS = {
    "extremum": "max, min", "logical": "logical", "bitwise": "bitwise", "location": "maxloc, minloc",
    "user_commutative": "own operation", "user_ordered": "own operation, ordered",
}  # fmt: skip


def print_profile(profile: Profile, path: Path, *, brief: bool) -> None:
    """The calls by time with a bar each, and whether tuning can pay."""
    console = make_console()
    ended = f", ended by {profile.ended}" if profile.ended else ""
    console.print(
        f"{format_count(profile.ranks, 'rank')} on {format_count(profile.nodes, 'node')}, "
        f"{format_duration(profile.elapsed_s)}{ended}; {profile.collective_s / max(profile.core_s, 1e-12):.1%} "
        "of the time in collectives"
    )
    rows = profile.by_time()
    if rows:
        console.print(_table(profile, rows[: _BRIEF if brief else len(rows)]))
    if brief and len(rows) > _BRIEF:
        console.print(f"and {len(rows) - _BRIEF} more: {colltune_command('profile', 'show', path)}")
    if profile.reporting < profile.ranks:
        console.print(
            f"These are the calls of {profile.reporting} of {profile.ranks} ranks. A rank leaves none after SIGKILL or"
            f" _exit, and where its node does not share the directory {path.absolute().parent}."
        )
    elif sizes := sorted({row.communicator.size for row in rows if row.members}):
        console.print(
            f"Communicators of {', '.join(map(str, sizes))} ranks: the calls of this job's ranks alone. Processes that"
            " it spawned, or was joined with, are not recorded."
        )
    if profile.lost_calls:
        console.print(
            f"{profile.lost_calls} calls of kinds that the table had no room for, or of unknown ranks, are not in it."
        )
    tunable = tunable_share(profile)
    console.print(benefit_text(tunable))
    if not brief:
        console.print("Of non-blocking and persistent calls the time is that of the call, not of its completion.")
    if tunable >= 0.01:
        place = launcher_place(profile.command)
        mpiexec = mpiexec_option(None if place is None else shutil.which(profile.command[place]))
        tune = colltune_command("tune", "--profile", path, *mpiexec, "--runtime", "2h")
        console.print(f"Tune for it with: {tune}")
    if (share := alltoallv_share(profile)) >= 0.01:
        console.print(
            f"Its MPI_Alltoallv ({share:.1%} of the time) is tuned by itself:"
            f" {colltune_command('tune', 'alltoallv', '--profile', path)}"
        )
    if called := tunable_by_name(profile):
        console.print(f"{by_name_text(called)}: {colltune_command('tune', *called)}")
    if pays := page_faults_text(profile):
        console.print(pays)


def _table(profile: Profile, rows: Sequence[Calls]) -> TextTable:
    headers = "collective", "nodes x ppn>", "size>", "calls>", "bytes/rank>", "mean>", "share>", "?"
    table = TextTable(headers)
    longest = max(row.time_s for row in rows) or 1.0
    for row in rows:
        table.add_row(
            _name(row),
            str(row.communicator),
            _size(row),
            f"{max(1, round(row.calls)):.6g}",
            f"{row.own_bytes / max(profile.reporting, 1):,.0f}",
            format_duration(row.time_s / max(row.rank_calls, 1)),
            f"{row.time_s / max(profile.core_s, 1e-12):.1%}",
            "█" * round(_BAR * row.time_s / longest),
        )
    return table


def _name(calls: Calls) -> str:
    form = {"blocking": "", "nonblocking": " (non-blocking)", "persistent": " (persistent)"}[calls.form]
    extra = [_OPERATIONS[calls.op]] if calls.op in _OPERATIONS else []
    if calls.blocks is not None and calls.blocks.total_bytes:
        if calls.blocks.sparsity > 0.0:
            extra.append(f"{calls.blocks.sparsity:.0%} empty")
        extra.append(f"spread {calls.blocks.spread:.2g}")
    if calls.gaps:
        extra.append("data with gaps" if calls.gaps == calls.rank_calls else "some data with gaps")
    return calls.collective + form + (f" [{', '.join(extra)}]" if extra else "")


def _size(calls: Calls) -> str:
    least, most = calls.size_least, calls.size_most
    return f"{least} B" if least == most else f"{least} to {most} B"
