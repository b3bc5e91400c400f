"""Draws time against radix and against batch from simulated times."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from alltoallv_simulators import Timing
from colltune.alltoallv.lookup_table import Shape

PLACE = Path(__file__).resolve().parents[1] / "docs" / "figures"


def draw(timings: Iterable[Timing], shape: Shape, sizes: Sequence[int]) -> None:
    """docs/figures/alltoallv_radix.png: ParAta's radix; alltoallv_batch.png: HieAta's nodes in flight."""
    mine = [t for t in timings if t.shape == shape and t.pattern.distribution == "uniform"]
    parata = [t for t in mine if t.setting.algorithm == "parata" and t.setting.batch == 0]
    hieata = [t for t in mine if t.setting.algorithm == "hieata" and t.setting.radix == shape.ppn]
    _plot(PLACE / "alltoallv_radix.png", "radix", f"ParAta, {shape.ranks} ranks", sizes, parata)
    _plot(PLACE / "alltoallv_batch.png", "batch", f"HieAta (radix {shape.ppn}), {shape.nodes} nodes", sizes, hieata)


def _plot(path: Path, axis: str, title: str, sizes: Sequence[int], timings: Sequence[Timing]) -> None:
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6, 4))
    for size in sizes:
        found = sorted((_value(t, axis), t.time_s * 1e6) for t in timings if t.pattern.largest == size)
        axes.plot(*zip(*found, strict=True), marker="o", label=f"blocks up to {size} B")
    axes.set(xscale="log", yscale="log", xlabel=axis, ylabel="time in us", title=title)
    axes.set_xscale("log", base=2)
    axes.legend()
    figure.savefig(path, bbox_inches="tight")


def _value(timing: Timing, axis: str) -> int:
    if axis == "radix":
        return timing.setting.radix
    return timing.setting.batch or timing.shape.nodes - 1
