"""The setting of the C library by which a program keeps the memory that it frees, and calls that it makes faster.

docs/design/agent.md says what the states of the heap are.
"""

from collections.abc import Iterable

from colltune.core.sample import DEFAULT, Sample
from colltune.core.units import format_duration, format_size

# glibc's variables: each process keeps up to 256 MiB of freed memory.
KEEPING = {"MALLOC_MMAP_THRESHOLD_": "268435456", "MALLOC_TRIM_THRESHOLD_": "268435456"}
# A call is named that a heap which keeps memory makes so many times as fast, and so many of them.
_NAMED, _MOST_NAMED = 1.1, 3


def setting_text() -> str:
    """What a user writes into the job script."""
    return "export " + " ".join(f"{name}={value}" for name, value in KEEPING.items())


def page_faults_of(samples: Iterable[Sample]) -> str:
    """Which calls of the library's default pay for page faults, with both times; empty where none does.

    ``samples``: those of other choices say nothing of what a program runs without a tuning.
    """
    by_name: dict[str, tuple[float, str]] = {}
    for sample in samples:
        if sample.choice != DEFAULT or not sample.kept_s or not sample.times_s:
            continue
        gain, name = sample.time_s / sample.kept_s, sample.scenario.collective
        if gain >= max(_NAMED, by_name.get(name, (0.0, ""))[0]):
            scenario = sample.scenario
            where = f"{name} of {format_size(scenario.size_bytes)} on {scenario.nodes} x {scenario.ppn}"
            times = f"{format_duration(sample.time_s)}, {format_duration(sample.kept_s)} where the heap keeps memory"
            by_name[name] = gain, f"{where} ({sample.faults:.0f} page faults in a call: {times})"
    if not by_name:
        return ""
    first = sorted(by_name.values(), reverse=True)
    more = f" and of {len(first) - _MOST_NAMED} other collectives" if len(first) > _MOST_NAMED else ""
    return (
        f"By default calls of {', '.join(text for _, text in first[:_MOST_NAMED])}{more} pay for page faults in a"
        f" program whose heap gives memory back. This keeps it, at up to 256 MiB a process: {setting_text()}"
    )
