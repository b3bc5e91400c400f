"""The status of a store as metrics, in the text format that node_exporter's textfile collector reads.

What there is of each machine, shape and release is in report/page/site.prom.j2.
"""

from colltune.report.templates import page_template
from colltune.session.site.state import ShapeCoverage, SiteMachine, StoreStatus


def metrics(status: StoreStatus) -> str:
    """All gauges, each with its help; a shape without a tuning has no time stamp."""
    page = page_template("site.prom.j2", status=status, labels=_labels, number=_number, escaped=_escaped)
    return page.render().rstrip("\n") + "\n"


def _labels(machine: SiteMachine, shape: ShapeCoverage | None = None, **more: str) -> str:
    one = machine.identity
    known = {"mpi": f"{one.mpi} {one.mpi_version}", "thread_level": one.thread_level, "identity": one.key}
    known |= {} if shape is None else {"nodes": str(shape.nodes), "ppn": str(shape.ppn)}
    return "{" + ",".join(f'{name}="{_escaped(text)}"' for name, text in (known | more).items()) + "}"


def _number(value: float) -> str:
    return f"{float(value):.10g}"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
