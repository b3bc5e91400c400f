"""Draws the papers' figures: ``PYTHONPATH=benchmarks python3 -m papers DATA... --out docs/figures`` (`make figures`).

Every figure is a picture and a section of README.md in the directory, with its numbers as a table.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from colltune.core.errors import ColltuneError, InputError
from colltune_study.research.evaluation import load
from papers.acclaim import acclaim_4, acclaim_6, acclaim_7, acclaim_8, acclaim_9, acclaim_12
from papers.fact import fact_3, fact_4, fact_5, fact_7, fact_8, fact_9
from papers.hyperparameters import fact_10
from papers.parallel import acclaim_11
from papers.pml_mpi import pml_2, pml_5, pml_6, pml_7, pml_8, pml_9, pml_10, pml_11, pml_12
from papers.slides import slides_52, slides_68
from papers.study import Made, Study
from papers.tianhe2 import tianhe_2

Figure = Callable[[Study], Made]
FIGURES: Sequence[Figure] = (
    fact_3,
    fact_4,
    fact_5,
    fact_7,
    fact_8,
    fact_9,
    fact_10,
    acclaim_4,
    acclaim_6,
    acclaim_7,
    acclaim_8,
    acclaim_9,
    acclaim_11,
    acclaim_12,
    pml_2,
    pml_5,
    pml_6,
    pml_7,
    pml_8,
    pml_9,
    pml_10,
    pml_11,
    pml_12,
    tianhe_2,
    slides_52,
    slides_68,
)
# What no data here can show.
NOT_MADE = {
    "acclaim_5": "it counts message sizes in traces of applications on up to 1,024 nodes, and we have none",
    "acclaim_16": "it compares compositions of MPICH on many nodes, which no table here holds",
    "pml_13": "it runs Gromacs and MiniFE on a cluster",
}


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        figures = chosen(options.only)
        options.out.mkdir(parents=True, exist_ok=True)
        deadline_s = time.monotonic() + 60.0 * options.minutes
        study = Study(load(options.data), options.out, options.seeds, options.jobs, deadline_s)
        made, left_out = draw(study, figures)
        if not made:
            raise InputError("no figure could be drawn", "; ".join(f"{name}: {why}" for name, why in left_out))
        (options.out / "README.md").write_text(page(made, left_out, _command(options)))
    except ColltuneError as error:
        print(f"colltune: {error}", file=sys.stderr)
        return error.exit_code
    return 0


def chosen(names: str) -> Sequence[Figure]:
    """The figures of comma-separated names; all without any. Raises InputError for a name that is none."""
    by_name = {name_of(figure): figure for figure in FIGURES}
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    unknown = [name for name in wanted if name not in by_name]
    if unknown:
        raise InputError(f"there is no figure {unknown[0]!r}", f"There are {', '.join(by_name)}")
    return [by_name[name] for name in wanted] if wanted else FIGURES


def name_of(figure: Figure) -> str:
    """The name of a function, or the first argument of one that was made of a table."""
    return str(figure.args[0]) if isinstance(figure, partial) else figure.__name__


def draw(study: Study, figures: Sequence[Figure]) -> tuple[list[Made], list[tuple[str, str]]]:
    """What was drawn, and what was not, with the reason: a table without odd sizes has no figure of them."""
    made, left_out = [], []
    for figure in figures:
        began_s = time.monotonic()
        try:
            made.append(figure(study))
        except InputError as error:
            left_out.append((name_of(figure), error.what))
        print(f"{name_of(figure)}: {time.monotonic() - began_s:.1f} s", flush=True)
    return made, left_out


def page(made: Sequence[Made], left_out: Sequence[tuple[str, str]], command: str) -> str:
    """README.md of the directory."""
    lines = [
        "# The figures of the papers",
        "",
        f"Made by `{command}`; docs/evaluate.md says how tuning is replayed.",
        "",
    ]
    for one in made:
        lines += [f"## {one.title}", "", one.caption, ""]
        if one.picture:
            lines += [f"![{one.title}]({one.picture})", ""]
        lines += [_row(one.columns), _row(["---"] * len(one.columns)), *map(_row, one.rows), ""]
    lines += [f"Not drawn: {name} ({why})." for name, why in [*left_out, *NOT_MADE.items()]]
    return "\n".join(lines).rstrip() + "\n"


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _command(options: argparse.Namespace) -> str:
    data = " ".join(map(str, options.data))
    return f"PYTHONPATH=benchmarks python3 -m papers {data} --seeds {options.seeds} --out {options.out}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m papers", description=__doc__.split("\n")[0])
    parser.add_argument("data", nargs="+", type=Path, help="tables of measurements")
    parser.add_argument("--out", type=Path, default=Path("docs/figures"))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=30.0, help="figures that are not begun by then are left out")
    parser.add_argument("--only", default="", help="names with commas, such as fact_3,acclaim_9")
    return parser


if __name__ == "__main__":
    sys.exit(main())
