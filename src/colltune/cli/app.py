"""All commands in one application. A command's module is imported when its name is asked for: most runs need one."""

from collections import UserDict
from collections.abc import Mapping
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from colltune.core.extras import CommandEntry, __version__, has_study, study

_ABOUT_STUDY = "For people who study how tuning works, and for clusters that are not at hand."
_PASS_ON = {"allow_extra_args": True, "ignore_unknown_options": True, "allow_interspersed_args": False}
# By what a reader wants to do, in the order of the help. Each summary fits a line of 80 columns.
_SECTIONS = {
    "What everybody needs": {
        "doctor": CommandEntry("What is here: MPI, launcher, job, and what can be tuned"),
        "plan": CommandEntry("How long tuning takes, and how many core-hours"),
        "tune": CommandEntry("Measure, decide, prove, and write the files", command_class="LaunchLineCommand"),
        "report": CommandEntry("What was gained, how sure that is, and what stays out"),
        "run": CommandEntry("Run a program with a tuning", passes_on=True, command_class="RunCommand"),
        "verify": CommandEntry("Does it hold? Right results, and nowhere slower", command_class="LaunchLineCommand"),
    },
    "To look closer, for a site, and to study tuning": {
        "demo": CommandEntry("A recorded cluster and this machine, tuned in a minute"),
        "profile": CommandEntry("Which collectives a program calls", passes_on=True),
        "compare": CommandEntry("Two settings, files or builds of an MPI: equally fast?"),
        "guidelines": CommandEntry(
            "Which collectives take longer than others that do the same", module="colltune.cli.compare"
        ),
        "explain": CommandEntry("Which rule decides a call, and why"),
        "env": CommandEntry("The exports that load a tuning, for eval in a shell"),
        "lint": CommandEntry("Find errors in files for MPICH and Open MPI"),
        "export": CommandEntry("Write a tuning in another format"),
        "predict": CommandEntry("Write a tuning without measuring"),
        "site": CommandEntry("The memory of a site, and the tunings it hands out", is_group=True),
        "study": CommandEntry("For research: collect, evaluate, tune, train (colltune-study)", passes_on=True),
    },
}


class _Commands(UserDict[str, Any]):
    """Commands by name; one is made when it is looked up."""

    def __getitem__(self, name: str) -> Any:
        command = self.data[name]
        if isinstance(command, CommandEntry):
            command = self.data[name] = _made(name, command)
        return command


def _made(name: str, entry: CommandEntry) -> Any:
    if name == "study" and has_study():
        return _Study(name=name, help=_ABOUT_STUDY, no_args_is_help=True, rich_markup_mode=None)
    module = import_module(entry.module or f"colltune.cli.{name}")
    holder = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    if entry.is_group:
        holder.add_typer(getattr(module, name), name=name)
        return get_command(holder).commands[name]  # type: ignore[attr-defined]
    settings = _PASS_ON if entry.passes_on else None
    own = getattr(module, entry.command_class) if entry.command_class else None
    holder.command(context_settings=settings, cls=own)(getattr(module, name))
    return get_command(holder)


class _Group(TyperGroup):
    """Lists its commands in sections without importing any of them."""

    sections: Mapping[str, Mapping[str, CommandEntry]] = _SECTIONS

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = _Commands({n: entry for section in self.sections.values() for n, entry in section.items()})

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        return list(self.commands)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        for title, entries in self.sections.items():
            with formatter.section(title):
                formatter.write_dl([(name, entry.summary) for name, entry in entries.items()])


class _Study(_Group):
    """The commands of colltune-study."""

    def __init__(self, **attributes: Any) -> None:
        self.sections = {"Commands": study("commands")}
        super().__init__(**attributes)


class _Main(_Group):
    def format_help(self, ctx: Any, formatter: Any) -> None:
        """One screen of 24 lines: the commands, and where the rest is said."""
        formatter.write("Usage: colltune COMMAND [OPTIONS]\n")
        self.format_commands(ctx, formatter)
        formatter.write("\n`colltune COMMAND --help` lists its options; --version, --install-completion\n")


app = typer.Typer(
    cls=_Main,
    help="Tunes the collectives of your MPI library inside your own job, and hands it a file that is safe.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _say_version(asked_for: bool) -> None:
    if asked_for:
        typer.echo(f"colltune {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_say_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Tunes the collectives of your MPI library inside your own job, and hands it a file that is safe."""
