"""Profiles that IPM and mpiP wrote, as far as it is certain what they say.

IPM (with IPM_LOG=full): XML with a line for each rank, call and size; communicators are not in it. A call counts as one
of all ranks where all made it equally often. mpiP (with -y): text with shares of the time in MPI by call, communicator
size and message size, the latter two as powers of two. A call counts as one of all ranks where their number is in its
range; how often it was made is not known. All other calls are left out: ``lost_calls``, where they were counted.
"""

import re
from collections import Counter, defaultdict
from math import isfinite

from colltune.core.errors import InputError
from colltune.core.scenario import COLLECTIVES
from colltune.machine.file_formats import PROFILE_BEGINS, Format
from colltune.profile.application_profile import BLOCKING, Calls, Communicator, Profile

_INSIDE = r"[^>]{0,400}?"  # a tag that is cut off costs little
_TASK = re.compile(rf'<task {_INSIDE}\bmpi_rank="(\d{{1,9}})" mpi_size="(\d{{1,9}})"')
_HOST = re.compile(rf"<host {_INSIDE}>([^<]{{1,200}})</host>")
_WALL = re.compile(r'<perf wtime="([^"]{1,40})"')
_ENTRY = re.compile(
    rf'<hent {_INSIDE}\bcall="MPI_(\w{{1,40}})" bytes="(\d{{1,18}})"{_INSIDE} count="(\d{{1,18}})"{_INSIDE}>'
    r"\s*([^\s<]{1,40})"
)
_SECTION = re.compile(r"^@--- (.+?) -*$", re.MULTILINE)
_RANGE = r"\s+(\d{1,18}) - +(\d{1,18})"
_SHARE = re.compile(rf"(\w+)\s+([^\s]{{1,40}}){_RANGE}{_RANGE}\s*")
_UNSIZED = ("reduce_scatter", "exscan")  # and kin: mpiP does not say their sizes


def parse_other_profile(text: str, tool: Format) -> Profile:
    """Of what `log_text` made of a file of ``tool``, IPM or mpiP. Raises ValueError if it cannot be read.

    Raises InputError if it holds no sizes of calls, or not one whole run.
    """
    begins = [match.start() for match in PROFILE_BEGINS[tool].finditer(text)]
    if len(begins) > 1:
        raise InputError(f"this is {tool} about {len(begins)} runs", "Give a file for each run")
    return _ipm(text) if tool is Format.IPM else _mpip(text[begins[0] :])


def _ipm(text: str) -> Profile:
    tasks = list(_TASK.finditer(text))
    ends = [*(task.start() for task in tasks[1:]), len(text)]
    of_rank = {int(task[1]): text[task.start() : end] for task, end in zip(tasks, ends, strict=False)}
    ranks = max((int(task[2]) for task in tasks), default=0)
    if not 0 < len(of_rank) <= ranks:
        raise ValueError("it has no ranks")
    if "</ipm_job_profile>" not in text:
        raise InputError("this XML of IPM is cut off: </ipm_job_profile> is missing", "Give the whole file")
    hosts = Counter(host[1] for part in of_rank.values() if (host := _HOST.search(part)))
    if hosts.total() != len(of_rank):
        raise ValueError("it does not name the hosts of all ranks")
    counts: defaultdict[tuple[str, int], Counter[int]] = defaultdict(Counter)
    times_s: defaultdict[tuple[str, int], float] = defaultdict(float)
    for rank, part in of_rank.items():
        for entry in _ENTRY.finditer(part):
            if (name := entry[1].lower()) in COLLECTIVES:
                counts[name, int(entry[2])][rank] += int(entry[3])
                times_s[name, int(entry[2])] += _number(entry[4])
    if "<hent " not in text:
        raise InputError("this profile of IPM holds no sizes of calls", "Run the program again with IPM_LOG=full")
    wall_s = [_number(found[1]) for part in of_rank.values() if (found := _WALL.search(part))]
    everywhere = _everywhere(hosts, ranks)
    of_all = {key for key, made in counts.items() if len(made) == ranks and len(set(made.values())) == 1}
    calls = [_calls(everywhere, *key, key[1], times_s[key], sum(counts[key].values())) for key in sorted(of_all)]
    lost = sum(sum(made.values()) for key, made in counts.items() if key not in of_all)
    return _profile(everywhere, calls, max(wall_s, default=0.0), len(of_rank), lost, "IPM")


def _mpip(text: str) -> Profile:
    head, *rest = _SECTION.split(text)
    sections = dict(zip(rest[::2], rest[1::2], strict=True))
    hosts = Counter(line.split()[-1] for line in head.splitlines() if line.startswith("@ MPI Task Assignment"))
    times = [line.split() for line in sections.get("MPI Time (seconds)", "").splitlines()]
    rows = [words for words in times if len(words) == 4 and (words[0] == "*" or words[0].isdecimal())]
    ranks = len(rows) - 1
    if ranks < 1 or rows[-1][0] != "*" or hosts.total() != ranks:
        raise ValueError("it does not say how long its ranks took")
    name = next((name for name in sections if name.startswith("Aggregate Collective Time")), None)
    if name is None:
        raise InputError(
            "this profile of mpiP holds no sizes of calls", "Run the program again with MPIP=-y, or give the whole file"
        )
    everywhere, calls = _everywhere(hosts, ranks), []
    for match in filter(None, map(_SHARE.fullmatch, sections[name].splitlines())):
        call, (least, most) = match[1].lower(), (int(match[5]), int(match[6]))
        if call in COLLECTIVES and not call.startswith(_UNSIZED) and int(match[3]) <= ranks <= int(match[4]):
            time_s = _number(match[2]) / 100 * _number(rows[-1][2])
            calls.append(_calls(everywhere, call, least, max(least, most), time_s, 0))
    return _profile(everywhere, calls, max(_number(words[1]) for words in rows[:-1]), ranks, 0, "mpiP")


def _number(text: str) -> float:
    number = float(text)
    if not (isfinite(number) and 0.0 <= number < 1e12):
        raise ValueError(f"{text} is no time")
    return number


def _everywhere(hosts: Counter[str], ranks: int) -> Communicator:
    """All ranks of the job, whose ranks on each host are ``hosts``."""
    return Communicator(ranks, len(hosts), max(hosts.values()), even=len(set(hosts.values())) == 1)


def _calls(where: Communicator, name: str, least: int, most: int, time_s: float, rank_calls: int) -> Calls:
    return Calls(where, name, BLOCKING, "", rank_calls, rank_calls * least, time_s, least, (least + most) / 2, most)


def _profile(
    everywhere: Communicator, calls: list[Calls], elapsed_s: float, reporting: int, lost: int, tool: str
) -> Profile:
    if not calls:
        raise InputError(f"no collective of all ranks is in this profile of {tool}", "Run `colltune profile`")
    where, nodes = ((everywhere, 1.0),), everywhere.nodes
    return Profile(tuple(calls), where, everywhere.size, nodes, elapsed_s, reporting, lost_calls=lost, mpi=tool)
