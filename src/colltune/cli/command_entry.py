"""A command, before anything of it is imported."""

from dataclasses import dataclass


@dataclass(frozen=True)
class CommandEntry:
    """``summary``: its line in the help. ``module``: with its package; "" for that of its name in ``colltune.cli``.

    ``command_class``: a class there that reads the arguments. ``passes_on``: what follows belongs to another program.
    ``is_group``: the command has commands itself.
    """

    summary: str
    module: str = ""
    passes_on: bool = False
    command_class: str = ""
    is_group: bool = False
