"""Rules to the text that the live selector reads (native/shim/select.c), and back.

The text expresses every rule: ranks per node and so node counts, parameters, sizes beyond 2 GiB, and the size of a
gather or a scatter, which no library's file can compare. The preconditions are written with each choice, and the
selector checks them in each call. The all-to-all's table is text of the same kind (native/common/rules.h).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from colltune.catalog import Algorithm, Catalogue
from colltune.core.errors import InputError
from colltune.core.rules import Rule, RuleSet
from colltune.core.sample import DEFAULT, Choice, SizeBasis, format_choice, parse_choice

HEAD = "colltune-rules 2"
_HEADS = (HEAD, "colltune-live 1")  # the second is the earlier head of the same text
# As native/common/rules.h has it.
MOST_CHOICES = 512


def format_rules(lines: list[str]) -> bytes:
    """The content of a file: the head, and ``lines``."""
    return ("\n".join([HEAD, *lines]) + "\n").encode("ascii")


def parse_lines(text: str) -> Iterator[tuple[str, list[str], str]]:
    """Yields (kind, words, comment) of each line that is not empty: its first word, the other ones, what follows "#".

    Raises ValueError for text with another head.
    """
    head, *lines = text.splitlines() or [""]
    if head.strip() not in _HEADS:
        raise ValueError(f"its first line is {head[:60]!r}, not {HEAD!r}")
    for line in lines:
        content, _, comment = line.partition("#")
        if words := content.split():
            yield words[0], words[1:], comment.strip()


def format_list(words: list[str]) -> str:
    """Words with commas between them; "-" for none."""
    return ",".join(words) or "-"


LIVE_FILE = "colltune-live.rules"
LIVE_VARIABLE = "COLLTUNE_SELECT"

Settings = Sequence[tuple[str, int]]


def live_basis(catalogue: Catalogue, collective: str) -> SizeBasis:
    """The size that live rules of ``collective`` compare, also where a library's file cannot compare it."""
    basis = catalogue.collective(collective).basis
    return SizeBasis.MESSAGE if basis is SizeBasis.NONE and collective != "barrier" else basis


class LiveEmitter:
    """``settings``: the control variables of a choice with their integers in this library; None if it lacks one."""

    name = "live"

    def __init__(self, catalogue: Catalogue, settings: Callable[[str, Choice], Settings | None]) -> None:
        self._catalogue = catalogue
        self._settings = settings

    def emit(self, rule_sets: Sequence[RuleSet]) -> dict[str, bytes]:
        numbers: dict[tuple[str, Choice], int] = {}
        choices, rules = [], []
        for rule_set in sorted(rule_sets, key=lambda rule_set: rule_set.collective):
            if not rule_set.departs:
                continue
            for rule in rule_set.rules:
                key = (rule_set.collective, rule.choice)
                if rule.choice != DEFAULT and key not in numbers:
                    numbers[key] = len(numbers)
                    choices.append(self._choice(numbers[key], *key))
            rules += _rule_lines(rule_set, numbers)
        if len(choices) > MOST_CHOICES:
            raise InputError(f"{len(choices)} choices are more than the live selector takes", "Tune fewer collectives")
        return {LIVE_FILE: format_rules([*choices, *rules])}

    def _choice(self, number: int, collective: str, choice: Choice) -> str:
        needs = format_list(_needs(self._catalogue.algorithm(collective, choice)))
        settings = self._settings(collective, choice)
        if settings is None:
            raise InputError(f"this MPI does not know {collective} {choice}", "Tune again: the MPI has changed")
        written = format_list([f"{name}={value}" for name, value in settings])
        return f"choice {number} {needs} {written} # {collective} {format_choice(choice)}"

    def parse(self, files: Mapping[str, bytes], collective: str) -> RuleSet:
        try:
            rule_sets = parse_live(files[LIVE_FILE].decode("ascii"))
        except (KeyError, UnicodeDecodeError):
            raise InputError(f"there is no readable {LIVE_FILE}", "Write the files again") from None
        return rule_sets.get(collective, RuleSet.always(collective, live_basis(self._catalogue, collective)))

    def environment(self, directory: Path) -> dict[str, str]:
        return {LIVE_VARIABLE: str(directory / LIVE_FILE)}


def _rule_lines(rule_set: RuleSet, numbers: Mapping[tuple[str, Choice], int]) -> list[str]:
    lines = [f"rules {rule_set.collective} {rule_set.basis.value}"]
    for rule in rule_set.rules:
        number = numbers.get((rule_set.collective, rule.choice))
        lines.append(" ".join(["rule", *("-" if bound is None else str(bound) for bound in (*rule.bounds, number))]))
    return lines


def with_fewer_rules(text: str, rule_sets: Iterable[RuleSet]) -> bytes:
    """``text`` of LiveEmitter with its choices and their numbers, and of the rules ``rule_sets`` alone, which name no
    other choice. Raises InputError for text that LiveEmitter did not write."""
    numbers = live_numbers(text)
    choices = [line for line in text.splitlines() if line.startswith("choice ")]
    kept = [rule_set for rule_set in rule_sets if rule_set.departs]
    return format_rules([*choices, *(line for rule_set in kept for line in _rule_lines(rule_set, numbers))])


def live_numbers(text: str) -> dict[tuple[str, Choice], int]:
    """The numbers of the choices in ``text``, by collective and choice. Raises as ``live_choices``."""
    choices = [line for line in text.splitlines() if line.startswith("choice ")]
    collectives = [line.partition("# ")[2].partition(" ")[0] for line in choices]
    return {key: number for number, key in enumerate(zip(collectives, live_choices(text), strict=True))}


def _needs(algorithm: Algorithm) -> list[str]:
    """The preconditions of a choice, and of the algorithms below a composition: between the nodes and inside each.

    A composition that works between nodes only has those inside too: on one node it hands the whole call on.
    """
    below = algorithm.leaders.needs if algorithm.leaders is not None else frozenset()
    return [
        *sorted(need.value for need in algorithm.needs),
        *sorted(f"leaders-{need.value}" for need in below),
        *sorted(f"node-{need.value}" for need in below),
    ]


def live_faults(data: bytes, rule_sets: Mapping[str, RuleSet] | None, catalogue: Catalogue) -> Iterator[str]:
    """What the selector should not follow of its rules ``data``, which are to say ``rule_sets``, a line each.

    It sets the control variables of a choice in each call, and believes its preconditions: so they must be those of
    the catalogue. The numbers of algorithms are the library's own, and only the library knows them.
    """
    try:
        text = data.decode("ascii")
        if rule_sets is not None and parse_live(text) != {name: r for name, r in rule_sets.items() if r.departs}:
            yield "it does not say what the tuning says"
        for kind, words, comment in parse_lines(text):
            if kind != "choice":
                continue
            collective, _, written = comment.partition(" ")
            choice = parse_choice(written)
            needs = format_list(_needs(catalogue.algorithm(collective, choice)))
            names = [name for name, _ in catalogue.settings(collective, choice)]
            _, needed, settings = words
            if needed != needs or [word.partition("=")[0] for word in settings.split(",")] != names:
                yield f"{comment} is not chosen by {needed} {settings}"
    except (UnicodeDecodeError, ValueError, InputError) as error:
        yield f"it is not as colltune writes it: {error}"


def live_choices(text: str) -> list[Choice]:
    """The choices in ``text`` by their numbers. Raises InputError for text that LiveEmitter did not write."""
    try:
        return [parse_choice(comment.partition(" ")[2]) for kind, _, comment in parse_lines(text) if kind == "choice"]
    except ValueError as error:
        raise InputError(f"{LIVE_FILE} is not as colltune writes it: {error}", "Tune again") from None


def parse_live(text: str) -> dict[str, RuleSet]:
    """The rules by collective. Raises InputError for text that LiveEmitter did not write."""
    choices: list[tuple[str, Choice]] = []
    rules: dict[tuple[str, SizeBasis], list[Rule]] = {}
    try:
        for kind, words, comment in parse_lines(text):
            if kind == "choice":
                collective, _, choice = comment.partition(" ")
                choices.append((collective, parse_choice(choice)))
            elif kind == "rules":
                some = rules.setdefault((words[0], SizeBasis(words[1])), [])
                current = words[0]
            else:
                ppn, ranks, size, number = (None if word == "-" else int(word) for word in words)
                of, chosen = (current, DEFAULT) if number is None else choices[number]
                if of != current:
                    raise ValueError(f"a rule of {current} names a choice of {of}")
                some.append(Rule(ppn, ranks, size, chosen))
        return {name: RuleSet(name, basis, tuple(some)) for (name, basis), some in rules.items()}
    except (IndexError, ValueError, UnboundLocalError) as error:
        raise InputError(f"{LIVE_FILE} is not as colltune writes it: {error}", "Tune again") from None
