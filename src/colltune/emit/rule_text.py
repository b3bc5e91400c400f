"""The text of rules that libcolltune.so reads (native/common/rules.h), for the live selector and for the all-to-all."""

from collections.abc import Iterator

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


def format_bound(bound: int | None) -> str:
    """An upper bound as text; None is no bound."""
    return "-" if bound is None else str(bound)


def format_list(words: list[str]) -> str:
    """Words with commas between them; "-" for none."""
    return ",".join(words) or "-"
