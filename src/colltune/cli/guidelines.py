"""`colltune study guidelines`: which collectives take longer than others that do the same."""

from typing import Annotated, Unpack

import typer

from colltune.cli.options import AsJson, MaxSize, MinSize, ThreadLevel, offers
from colltune.session.arguments import MachineArguments


@offers(MachineArguments)
def guidelines(
    min_size: MinSize = "4",
    max_size: MaxSize = "256KiB",
    budget: Annotated[str, typer.Option(help="Time to spend, such as 90s or 5m.")] = "5m",
    seed: Annotated[int, typer.Option(min=0, help="Seed of every random choice.")] = 1,
    as_json: AsJson = False,
    thread_level: ThreadLevel = "single",
    **where: Unpack[MachineArguments],
) -> None:
    """Which collectives take longer than others that do the same? Exit code 1 if there is any.

    An allreduce should not be slower than a reduce and a bcast, nor a message than a longer one. These are performance
    guidelines, which any MPI can keep. What seems violated is measured anew in new launches, and only these decide.
    A line that says slower is a guideline that is violated: its call takes longer than what stands as its choice.
    """
    from colltune.api.compared import guidelines
    from colltune.cli.compare import finish
    from colltune.cli.terminal import make_console

    found = guidelines(
        min_size=min_size,
        max_size=max_size,
        budget=budget,
        seed=seed,
        thread_level=thread_level,
        note=lambda note: make_console(err=as_json).print(note, markup=False),
        **where,
    )
    finish("guidelines", found, as_json)
