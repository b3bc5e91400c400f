"""All commands in one application. A command's module is imported when its name is asked for: most runs need one."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from colltune.core.version import __version__

_PASS_ON = {"allow_extra_args": True, "ignore_unknown_options": True, "allow_interspersed_args": False}


@dataclass(frozen=True)
class _Entry:
    """``module``: the file below ``colltune.cli``. ``command_class``: a class there that reads the arguments.

    ``passes_on``: what follows belongs to another program. ``is_group``: the command has commands itself.
    """

    module: str
    passes_on: bool = False
    command_class: str = ""
    is_group: bool = False


# In the order of the help.
_ENTRIES = {
    "tune": _Entry("tune"),
    "run": _Entry("run", passes_on=True, command_class="RunCommand"),
    "profile": _Entry("profile", passes_on=True),
    "env": _Entry("env"),
    "lint": _Entry("lint"),
    "check": _Entry("check"),
    "verify": _Entry("verify"),
    "watch": _Entry("watch"),
    "drift": _Entry("drift"),
    "explain": _Entry("explain"),
    "export": _Entry("export"),
    "diff": _Entry("diff"),
    "report": _Entry("report"),
    "doctor": _Entry("doctor"),
    "plan": _Entry("plan"),
    "collect": _Entry("collect"),
    "features": _Entry("features"),
    "gather": _Entry("features"),
    "evaluate": _Entry("evaluate"),
    "train": _Entry("train"),
    "predict": _Entry("predict"),
    "site": _Entry("site", is_group=True),
    "demo": _Entry("demo"),
}


class _Commands(MutableMapping[str, Any]):
    """The commands by name; one is made when it is looked up."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}
        self._names = list(_ENTRIES)

    def __getitem__(self, name: str) -> Any:
        if name not in self._names:
            raise KeyError(name)
        if name not in self._made:
            self._made[name] = _made(name, _ENTRIES[name])
        return self._made[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self._made[name] = command
        if name not in self._names:
            self._names.append(name)

    def __delitem__(self, name: str) -> None:
        self._names.remove(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def _made(name: str, entry: _Entry) -> Any:
    module = import_module(f"colltune.cli.{entry.module}")
    holder = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    if entry.is_group:
        holder.add_typer(getattr(module, name), name=name)
        return get_command(holder).commands[name]  # type: ignore[attr-defined]
    settings = _PASS_ON if entry.passes_on else None
    own = getattr(module, entry.command_class) if entry.command_class else None
    holder.command(context_settings=settings, cls=own)(getattr(module, name))
    return get_command(holder)


class _Group(TyperGroup):
    """Says the names of all commands without importing any of them."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = _Commands()

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        return list(self.commands)


app = typer.Typer(
    cls=_Group,
    help="Tunes the collectives of your MPI library inside your own job, and hands it a file that is safe.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _say_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"colltune {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_say_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Tunes the collectives of your MPI library inside your own job, and hands it a file that is safe."""
