"""What a measured run of the application says, in words: the closing line, and the page behind it."""

from collections.abc import Callable, Sequence

from colltune.core.interval import Interval
from colltune.core.sample import DEFAULT, Choice
from colltune.core.text_table import TextTable
from colltune.core.units import format_count, format_duration, format_size_range
from colltune.deploy.explored import CallKind
from colltune.judge import wording
from colltune.prove.in_run.application_trial import withdrawn_text
from colltune.prove.in_run.in_application import NextRun
from colltune.session.application_gain import ApplicationGain, CallTimes, CellGain, total_saved

_WIDTH = 220  # of the page, whose lines are long: a row for each kind of call


def gain_line(gain: ApplicationGain) -> str:
    """What the run took, what it would have taken without the tuning, and what the experiment cost."""
    if not gain.complete:
        return f"after {format_duration(gain.elapsed_s)}, not ended by MPI_Finalize: {_so_far(gain)}"
    if gain.share == 0:
        return f"this run took {format_duration(gain.elapsed_s)}; proven choices were not compared with the default"
    if not gain.cells:
        few = format_count(gain.too_few, "call") if gain.too_few else f"calls of {format_count(gain.kinds_met, 'kind')}"
        met = (
            f"{few} met a rule: too few to compare tuned and default blocks" if gain.kinds_met else "no call met a rule"
        )
        return f"this run took {format_duration(gain.elapsed_s)}; {met}"
    untuned, text = gain.untuned_s, f"this run took {format_duration(gain.elapsed_s)}; "
    of_runs = f"over {gain.runs} runs" if gain.runs > 1 else "of this run alone; runs differ by more"
    interval = f" (95% interval {untuned.bounds_text(_time)}, {of_runs})"
    if gain.is_sure:
        cost_s = gain.experiment_s
        text += f"without the tuning it would have taken about {_time(untuned.estimate)}{interval}"
        text += f"; its calls by default {'cost' if cost_s >= 0.0 else 'saved'} about {format_duration(abs(cost_s))}"
    else:
        interval = interval if gain.faster.is_telling else ""
        text += f"it does not tell whether it would have taken longer without the tuning{interval}"
    return text + (f". In the calls alone the tuning {saved}" if (saved := _saved_text(gain.saved_in_calls_s)) else "")


def whole_run_text(gain: ApplicationGain, application: str, withdrawn: Sequence[str]) -> str:
    """The sentence on the application: faster, slower or neither, by how much, and what it is without from now on."""
    text = f"what the rules are worth to {application} was not measured"
    if gain.cells:
        how = f"95% interval of {format_count(gain.runs, 'run')}"
        text = f"with the rules {wording.sentence(application, gain.faster, how)}"
    return f"{text}; {withdrawn_text(withdrawn)}"


def _saved_text(saved: Interval) -> str:
    """``"saved 1.2 s (1.1 s to 1.3 s)"``, or ``"cost 1.2 s (1.1 s to 1.3 s)"``; "" where it may be either."""
    if not saved.excludes(0.0):
        return ""
    cost = saved.estimate < 0.0
    if cost:
        saved = Interval(-saved.estimate, -saved.high, -saved.low)
    return f"{'cost' if cost else 'saved'} {format_duration(saved.estimate)} ({saved.bounds_text(format_duration)})"


def run_text(number: int, gain: ApplicationGain, in_force: int, changes: str) -> str:
    """One line of the run ``number`` of a program whose runs tune it, with so many rules ``in_force``; ``changes``:
    what it says of the next one."""
    of_rules = [cell for cell in gain.cells if not cell.candidate]
    whole_s = max(gain.untuned_s.estimate, 1e-9)
    if not gain.complete:
        text = f"ended after {format_duration(gain.elapsed_s)} without MPI_Finalize"
    elif of_rules:
        saved = total_saved(of_rules)
        text = "the rules in force do not surely save time yet"
        if saved.low > 0.0:
            text = f"saves {saved.estimate / whole_s:.1%} of its time, surely {saved.low / whole_s:.1%}"
    else:
        text = "no rule in force yet"
        if in_force:
            text = f"{format_count(in_force, 'rule')} in force, not compared with the default in this run"
    if gain.tried:
        text += f"; {format_count(gain.tried, 'choice')} tried, which cost about {gain.tried_s / whole_s:.2%} of it"
    return f"run {number}: {text}; {changes}"


def changes_text(before: NextRun, after: NextRun) -> str:
    """How many kinds of calls are open after a run, and which rules come into force or leave by it."""
    came = [kind for kind, choice in after.in_force.items() if choice not in (DEFAULT, before.in_force.get(kind))]
    left = [kind for kind, choice in before.in_force.items() if choice not in (DEFAULT, after.in_force.get(kind))]
    texts = [
        f"{format_count(len(after.tried), 'kind')} of calls still open" if after.tried else "nothing is left to try"
    ]
    decided = {kind: holds for kind, holds in after.confirmed.items() if before.confirmed.get(kind) is not holds}
    changes = {
        "from the next run on": [(kind, after.in_force[kind]) for kind in came],
        "no longer used": [(kind, before.in_force[kind]) for kind in left],
        "predicted and confirmed": [(kind, kind.predicted) for kind, holds in decided.items() if holds],
        "predicted and withdrawn, for it is not faster here": [
            (kind, kind.predicted) for kind, holds in decided.items() if not holds
        ],
    }
    for title, some in changes.items():
        if some:
            texts.append(f"{title}: " + ", ".join(choice_text(kind, choice) for kind, choice in some))
    return "; ".join(texts)


def choice_text(kind: CallKind, choice: Choice) -> str:
    """``"alltoall 1 KiB to 2 KiB by ring"``."""
    sizes = "" if kind.size.high is None else f" {format_size_range(kind.size.low, kind.size.high)}"
    return f"{kind.collective}{sizes} by {choice}"


def _so_far(gain: ApplicationGain) -> str:
    """Of a run that was killed."""
    pairs = sum(cell.pairs for cell in gain.cells)
    if not gain.cells:
        return "too few pairs of blocks to compare tuned and default by now"
    whole, calls = _saved_text(gain.saved_s), _saved_text(gain.saved_in_calls_s)
    text = f"{format_count(pairs, 'pair')} of blocks tell no difference from noise"
    if whole:
        text = f"by {format_count(pairs, 'pair')} of blocks the tuning {whole}"
    return text + (f"; in the calls alone it {calls}" if calls else "")


def gain_page(gain: ApplicationGain) -> list[str]:
    """The lines of the page: the closing line, then each cell with its times, default -> tuned."""
    headers = [
        "collective", "size", "ranks", "choice", "calls tuned>", "pairs>", "speed-up in the call>", "with all between>",
        "us in the call>", "us between calls>", "by all of them>", "note",
    ]  # fmt: skip
    table = TextTable(headers)
    for cell in gain.cells:
        table.add_row(
            cell.collective,
            format_size_range(cell.size_least, cell.size_most),
            f"{cell.ranks} on {format_count(cell.nodes, 'node')}",
            str(cell.choice),
            str(cell.tuned_calls),
            str(cell.pairs),
            wording.text(cell.faster_in_calls),
            wording.text(cell.faster),
            _both(cell, lambda times: times.call_s),
            _both(cell, lambda times: times.between_s),
            _saved_text(cell.saved_s) or "not sure",
            _note(cell),
        )
    by_default = f"{gain.share}% of the blocks ran by default at first. " if gain.share else ""
    notes = [
        f"{by_default}Times: default -> tuned, of one call, means over ranks and pairs; their ratio is the speed-up.",
        "Speed-up: time by default over time tuned, with an interval; all intervals of this page hold together (95%).",
    ]
    if gain.too_few:
        notes.append(f"{format_count(gain.too_few, 'call')} met a rule in fewer than three pairs, and are not counted.")
    return [f"{gain_line(gain)}.", "", *([*table.lines(_WIDTH), ""] if gain.cells else []), *notes]


def _note(cell: CellGain) -> str:
    notes = ["not proven: tried"] if cell.candidate else []
    if cell.off:
        notes.append(f"switched off on {cell.off} of {cell.communicators} communicators: slower here")
    return "; ".join(notes)


def _both(cell: CellGain, of: Callable[[CallTimes], float]) -> str:
    return f"{of(cell.by_default) * 1e6:.1f} -> {of(cell.tuned) * 1e6:.1f}"


def _time(time_s: float) -> str:
    return format_duration(max(time_s, 0.0))
