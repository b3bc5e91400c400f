"""`colltune study tune`: what `colltune tune` does, on a simulated cluster."""

import sys
import time
from pathlib import Path
from typing import Annotated, Unpack

import typer

from colltune.cli.options import AsJson, offers
from colltune.cli.stopping import go_on_command
from colltune.session.arguments import CampaignArguments


@offers(CampaignArguments)
def tune(
    cluster: Annotated[str, typer.Argument(help="dragonfly:64x4 (nodes x ranks per node), fattree:... or torus:...")],
    collectives: Annotated[list[str], typer.Argument(help="Collectives to tune: bcast allreduce ..., or all.")],
    out: Annotated[Path, typer.Option(help="Directory for the tuning.")] = Path("tuned"),
    as_json: AsJson = False,
    **arguments: Unpack[CampaignArguments],
) -> None:
    """Tune a cluster that SimGrid simulates: how far a tuning comes there. No MPI reads its rules."""
    from colltune.cli.tune import tune_and_show
    from colltune_study.simulated.tune import opened, options_of

    began_s = time.monotonic()
    options = options_of(collectives, arguments)
    with opened(cluster) as bench:
        tune_and_show(options, out, began_s, go_on_command(sys.argv[1:]), as_json=as_json, bench=bench)
