"""A tuning for other programs, and for a ticket: the first screen of the report as a record and as Markdown."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path

from colltune.core.proven import Decision
from colltune.judge.wording import record
from colltune.report.ending import told
from colltune.report.findings import Findings
from colltune.report.headline import facts, next_steps
from colltune.report.job import HEAD, ShapeGain, job_shape, known_scenarios, shape_gains
from colltune.report.text import warnings


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
        "reason": decision.told,
    }


def report_markdown(findings: Findings, directory: Path) -> str:
    """The first screen as Markdown: this job's gains, how sure they are, and the line that uses them."""
    gains = shape_gains(findings) if findings.summary.gated else []
    mine = [gain for gain in gains if gain.shape == job_shape(findings)]
    rows = dict(told(findings, gains, len(gains)))
    lines = [f"**{_escaped(rows.pop('this job'))}**", ""]
    if mine:
        lines += [_row(HEAD), _row("---" for _ in HEAD), *(_row(gain.row) for gain in mine), ""]
    for label, text in next_steps(findings, directory):
        lines += ["```sh", text, "```", ""] if label == "use it" else [f"- {label}: {_escaped(text)}"]
    lines += [f"- {label}: {_escaped(text)}" for label, text in rows.items()]
    lines += [f"- warning: {_escaped(text)}" for text in warnings(findings)]
    return "\n".join([*lines, "", _escaped("; ".join(facts(findings)))])


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(_escaped(cell) for cell in cells)} |"


def _escaped(text: str) -> str:
    """No name in a tuning leaves its cell."""
    for mark in ("\\", "|", "<", "*", "_", "`", "["):
        text = text.replace(mark, f"\\{mark}")
    return text.replace("\n", " ")
