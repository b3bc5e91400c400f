"""A terminal that cuts no words."""

from __future__ import annotations

from typing import Any

from rich.console import Console

from colltune.cli.console import folded


class Terminal(Console):
    """Goes on in the next line between words: where a terminal wraps, it cuts words and numbers."""

    def print(self, *objects: Any, **options: Any) -> None:
        if self.is_terminal and len(objects) == 1 and isinstance(objects[0], str) and "soft_wrap" not in options:
            objects = (folded(objects[0], self.width),)
        super().print(*objects, **options)
