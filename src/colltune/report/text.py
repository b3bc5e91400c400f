"""The report in words: the gain, where it is, how certain it is, what it cost, and warnings.

It is for a terminal and for other programs (a record).
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from statistics import median

from rich.console import Console

from colltune.core.heap import page_faults_of
from colltune.core.proven import Decision, Verdict
from colltune.core.units import format_factor, format_size
from colltune.judge.wording import record
from colltune.machine.command_lines import colltune_command
from colltune.machine.conditions import advice
from colltune.report.curves import OWN, letters_of
from colltune.report.ending import WIDTH, by_gain, ending, next_steps, steps_text
from colltune.report.findings import Findings, spreads
from colltune.report.job import ShapeGain, job_shape, known_scenarios, shape_gains, shape_text
from colltune.report.tables import applications_table, regions_table

# Above these a reader should know that the machine was noisy, or moved while it was measured.
NOISY = 0.25
DRIFTING = 0.10


def warnings(findings: Findings) -> Iterator[str]:
    """What makes the figures uncertain, each with its number and what to do."""
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
    if text := page_faults_of(findings.samples):
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


# Of a first look: shapes of a collective, and regions in a list.
_SHAPES, _ROWS = 6, 5


def print_findings(findings: Findings, console: Console, directory: Path, *, everything: bool) -> None:
    """Prints what ends a tuning, then what runs where, regions, refusals and environment.

    Of two collectives that is 60 lines at most. ``everything``: all shapes and regions, however many.
    """
    for line in ending(findings, min(WIDTH, console.width)):
        console.print(line, soft_wrap=True)
    for sentence in warnings(findings):
        console.print(sentence)
    for line in steps_text(findings, directory):
        console.print(line, soft_wrap=True)
    for name in findings.rule_sets:
        _print_runs(findings, name, console, None if everything else _SHAPES)
    ranked = by_gain(findings, findings.regions(Verdict.KEPT))
    if shown := ranked if everything else ranked[:_ROWS]:
        console.print()
        console.print(regions_table(shown))
    if not everything:
        command = colltune_command("report", directory, "--text", "--all")
        console.print(f"\nall of it: {command}", soft_wrap=True)
        return
    for region in ranked:
        if region.by_heap:
            console.print(f"  {region.place}, {region.choice}: {region.by_heap}")
    if findings.applications:
        console.print()
        console.print(applications_table(findings.applications))
    for verdict in (Verdict.PROVISIONAL, Verdict.REFUSED, Verdict.NOT_TRIED):
        regions = findings.regions(verdict)
        if regions:
            console.print(f"\n{verdict}")
        for region in regions:
            console.print(f"  {region.place}, {region.choice}: {region.explanation}")
    console.print("\nenvironment")
    for label, value in environment_rows(findings):
        console.print(f"  {label}: {value}")


def _print_runs(findings: Findings, collective: str, console: Console, most: int | None) -> None:
    """What runs where on the ``most`` shapes with the most ranks: a line each, with the sizes that an algorithm serves.

    None: on all shapes.
    """
    cells = findings.cells(collective)
    letters = letters_of(cells)
    if not letters:
        return
    shapes = sorted({(c.scenario.nodes, c.scenario.ppn) for c in cells}, key=lambda shape: -shape[0] * shape[1])
    names = [f"{OWN} the library's own choice", *(f"{letter} {choice}" for choice, letter in letters.items())]
    console.print(f"\n{collective}: {', '.join(names)}")
    for nodes, ppn in shapes[:most]:
        mine = [c for c in cells if (c.scenario.nodes, c.scenario.ppn) == (nodes, ppn)]
        runs = []
        for letter, some in groupby(mine, key=lambda cell: letters.get(cell.chosen, OWN)):
            sizes = [format_size(cell.scenario.size_bytes) for cell in some]
            runs.append(f"{letter} {sizes[0]}" + (f" to {sizes[-1]}" if len(sizes) > 1 else ""))
        console.print(f"  {nodes} x {ppn}: {'; '.join(runs)}")


def report_record(findings: Findings, directory: Path) -> Mapping[str, object]:
    """What docs/reference/json.md describes under `report`. Times in seconds, sizes in bytes."""
    here, (nodes, ppn) = findings.environment, job_shape(findings)
    return {
        "directory": directory.absolute(),
        "mpi": here.mpi,
        "mpi_version": here.mpi_version,
        "machine": here.machine,
        "nodes": nodes,
        "ppn": ppn,
        "proven": findings.summary.gated,
        "interrupted": findings.summary.interrupted,
        "known": len(known_scenarios(findings)),
        "gains": [_gain(gain) for gain in shape_gains(findings)],
        "decisions": [_decision(decision) for decision in findings.decisions],
        "warnings": list(warnings(findings)),
        "next": [{"label": label, "text": text} for label, text in next_steps(findings, directory)],
    }


def _gain(gain: ShapeGain) -> Mapping[str, object]:
    low, high = gain.span
    times = gain.example_s
    return {
        "collective": gain.collective,
        "nodes": gain.shape[0],
        "ppn": gain.shape[1],
        "from_bytes": low,
        "to_bytes": high,
        "sizes_changed": len(gain.decisions),
        "sizes_known": gain.sizes,
        **record(gain.gain),
        "example": None
        if gain.example is None or times is None
        else {"size_bytes": gain.example.scenario.size_bytes, "default_s": times[0], "tuned_s": times[1]},
    }


def _decision(decision: Decision) -> Mapping[str, object]:
    return {
        **asdict(decision.scenario),
        "choice": decision.choice,
        "verdict": decision.verdict,
        **record(decision.speedup if decision.has_evidence else None),
        "launches": decision.launches,
        "reason": decision.explanation,
    }
