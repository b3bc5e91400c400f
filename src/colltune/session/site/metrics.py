"""The status of a store as metrics, in the text format that node_exporter's textfile collector reads."""

from collections.abc import Iterator

from colltune.session.site.state import SiteMachine, StoreStatus

_HELP = {
    "colltune_site_entries": "Entries in the store, by machine.",
    "colltune_site_pairs_measured": "Pairs of call and algorithm that are measured, of a shape of job.",
    "colltune_site_pairs_possible": "Pairs of call and algorithm that a job of the shape may measure.",
    "colltune_site_decisions_proven": "Decisions that are proven in the last tuning of the shape.",
    "colltune_site_tuned_timestamp_seconds": "When a job last handed over a tuning of the shape, or confirmed it.",
    "colltune_site_slow_nodes": "Nodes that are slower in all jobs that ran on them.",
    "colltune_site_saved_node_hours": "What applications saved under a release (own: in no release), by measured runs.",
    "colltune_site_saved_node_hours_low": "The same, the lower bound (95% of each run).",
    "colltune_site_saved_node_hours_high": "The same, the upper bound (95% of each run).",
    "colltune_site_measured_node_hours": "How long the runs were by which it is known what was saved.",
    "colltune_site_quarantined": "Entries that cannot be used.",
    "colltune_site_release_active": "1 for the release that modules load.",
}


def metrics(status: StoreStatus) -> str:
    """All gauges, each with its help; a shape without a tuning has no time stamp."""
    found: dict[str, list[str]] = {name: [] for name in _HELP}
    for machine in status.machines:
        for name, labels, value in _of_machine(machine):
            found[name].append(_line(name, labels, value))
    found["colltune_site_quarantined"].append(_line("colltune_site_quarantined", {}, len(status.quarantined)))
    for release in status.releases:
        name, labels = "colltune_site_release_active", {"release": release}
        found[name].append(_line(name, labels, release == status.active))
    blocks = [
        [f"# HELP {name} {_HELP[name]}", f"# TYPE {name} gauge", *lines] for name, lines in found.items() if lines
    ]
    return "".join(f"{line}\n" for block in blocks for line in block)


def _of_machine(machine: SiteMachine) -> Iterator[tuple[str, dict[str, str], float]]:
    one = machine.identity
    of = {"mpi": f"{one.mpi} {one.mpi_version}", "thread_level": one.thread_level, "identity": one.key}
    yield "colltune_site_entries", of, machine.entries
    yield "colltune_site_slow_nodes", of, len(machine.slow)
    for saved in machine.saved:
        at = {**of, "release": saved.release or "own"}
        yield "colltune_site_saved_node_hours", at, saved.saved_h
        yield "colltune_site_saved_node_hours_low", at, saved.low_h
        yield "colltune_site_saved_node_hours_high", at, saved.high_h
        yield "colltune_site_measured_node_hours", at, saved.measured_h
    for shape in machine.shapes:
        at = {**of, "nodes": str(shape.nodes), "ppn": str(shape.ppn)}
        yield "colltune_site_decisions_proven", at, shape.proven
        if shape.tuned_s is not None:
            yield "colltune_site_tuned_timestamp_seconds", at, shape.tuned_s
        for collective, (measured, possible) in shape.measured.items():
            yield "colltune_site_pairs_measured", {**at, "collective": collective}, measured
            yield "colltune_site_pairs_possible", {**at, "collective": collective}, possible


def _line(name: str, labels: dict[str, str], value: float) -> str:
    shown = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
    return f"{name}{{{shown}}} {float(value):.10g}" if labels else f"{name} {float(value):.10g}"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
