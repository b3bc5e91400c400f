"""The report in words: the gain, where it is, how certain it is, what it cost, and what to distrust."""

from collections.abc import Iterator
from statistics import median

from colltune.core.heap import page_faults_of
from colltune.core.units import format_factor
from colltune.machine.conditions import advice
from colltune.report.findings import Findings, spreads
from colltune.report.job import shape_text

# Above these a reader should know that the machine was noisy, or moved while it was measured.
NOISY = 0.25
DRIFTING = 0.10


def warnings(findings: Findings) -> Iterator[str]:
    """What a reader should distrust, each with its number and what to do."""
    scatter = spreads(findings)
    if scatter:
        typical = median(spread.relative_iqr for spread in scatter)
        if typical > NOISY:
            yield (
                "The machine was noisy: half of a typical measurement's repetitions differ by"
                f" {format_factor(1.0 + typical)}. Tune again when it is idle, or with a larger --budget."
            )
    if findings.drift > 1.0 + DRIFTING:
        after = "What was proven was proven over these launches all the same."
        if not findings.is_steady:
            after = "So no confidence is stated: tune again when the machine is idle."
        yield f"Times moved by {format_factor(findings.drift)} or more between launches in one call of ten. {after}"
    yield from advice(findings.environment.facts)
    if findings.summary.heap is not None:
        yield findings.summary.heap.finding
    elif text := page_faults_of(findings.samples):
        yield f"{text}."


def environment_rows(findings: Findings) -> list[tuple[str, str]]:
    """What the tuning is valid for, as label and value."""
    here = findings.environment
    rows = [
        ("MPI", f"{here.mpi} {here.mpi_version}"),
        ("build of libmpi (SHA-256)", here.mpi_build),
        ("machine", here.machine),
        ("job", "; ".join(shape_text(job) for job in findings.jobs or [(here.nodes, here.ppn)])),
        ("thread level", here.thread_level),
        ("seed", str(findings.summary.seed)),
    ]
    rows += sorted(here.facts.items())
    rows += [(f"{name} stopped because", reason) for name, reason in findings.summary.reasons.items()]
    return rows
