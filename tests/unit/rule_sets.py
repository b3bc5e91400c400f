"""Small sets of rules, drawn at random."""

from hypothesis import strategies as st

from colltune.core.rules import Rule, RuleSet
from colltune.core.sample import DEFAULT, Choice, SizeBasis

CHOICES = (DEFAULT, Choice("ring"), Choice("recexch", (("k", 4),)))


@st.composite
def rule_sets(draw: st.DrawFn) -> RuleSet:
    def bounds(most: int) -> list[int | None]:
        return [*sorted(draw(st.sets(st.integers(1, most), max_size=2))), None]

    rules = []
    for ppn in bounds(3):
        for ranks in bounds(5):
            rules += [Rule(ppn, ranks, size, draw(st.sampled_from(CHOICES))) for size in bounds(6)]
    return RuleSet("bcast", SizeBasis.MESSAGE, tuple(rules))
