"""Options that several commands share."""

import inspect
import shlex
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from typer.core import TyperCommand

from colltune.session.arguments import VIA, Flag, offered, signature_of

_Command = TypeVar("_Command", bound=Callable[..., None])

Tuned = Annotated[Path, typer.Argument(help="Directory that `colltune tune` wrote.", show_default=False)]
Mpiexec = Annotated[
    str | None, typer.Option(help="mpiexec of the MPI to use. Default: beside this Python, then on PATH.")
]
MinSize = Annotated[str, typer.Option(help="Smallest message.")]
MaxSize = Annotated[str, typer.Option(help="Largest message, such as 64KiB or 1MiB.")]
Via = Annotated[str, typer.Option(help=VIA)]
AsJson = Annotated[
    bool, typer.Option("--json", help="For other programs: one JSON document, by the schema in docs/reference/json.md.")
]
ThreadLevel = Annotated[
    str, typer.Option(help="What the application asks MPI_Init_thread for: single, funneled, serialized or multiple.")
]


class LaunchLineCommand(TyperCommand):
    """Has the words behind ``--`` as ``--launch-line``: how the user starts programs, up to the program."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if "--" in args:
            place = args.index("--")
            args = [*args[:place], "--launch-line", shlex.join(args[place + 1 :])]
        return super().parse_args(ctx, args)


def given_options(context: typer.Context, names: Iterable[str]) -> list[str]:
    """Those of ``names`` that stand on the command line."""
    sources = {name: context.get_parameter_source(name) for name in names}
    return [name for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"]


def offers(arguments: type) -> Callable[[_Command], _Command]:
    """Gives a command that takes ``**arguments``, a TypedDict, an option for each of them."""

    def decorate(command: _Command) -> _Command:
        signature = signature_of(command, arguments)
        offered_as = {name: _option(name, option) for name, option in offered(arguments).items()}
        made = [
            parameter.replace(annotation=offered_as[parameter.name], kind=inspect.Parameter.POSITIONAL_OR_KEYWORD)
            if parameter.name in offered_as
            else parameter
            for parameter in signature.parameters.values()
        ]
        setattr(command, "__signature__", signature.replace(parameters=made))  # noqa: B010 - no attribute of the type
        command.__annotations__ = {parameter.name: parameter.annotation for parameter in made}
        return command

    return decorate


def _option(name: str, option: Flag) -> object:
    flag = "--" + name.replace("_", "-")
    kind = option.kind if option.default is not None else option.kind | None
    return Annotated[kind, typer.Option(flag, help=option.help, min=option.least)]
