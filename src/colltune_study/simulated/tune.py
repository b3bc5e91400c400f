"""A tuning of a simulated cluster: what is asked for, and where."""

import os
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import cast

from colltune.core.errors import InputError
from colltune.session.arguments import CampaignArguments, TuneArguments
from colltune.session.tuning.options import TuneOptions
from colltune_study.simulated.simulated_cluster import Simulation, open_simulation


def opened(cluster: str) -> closing[Simulation]:
    """The cluster that the text describes. Raises InputError for a text that describes none, and without SimGrid."""
    return closing(open_simulation(cluster, os.environ))


def options_of(collectives: Sequence[str], arguments: CampaignArguments) -> TuneOptions:
    """What to tune. Raises InputError for what cannot be understood, and for what is about a real machine."""
    if arguments.get("profile"):
        raise InputError("--profile is for a real machine, not for a simulated one", "Leave it out")
    store = arguments.get("store")
    # What a site measures is of its machine: a simulated cluster goes there only when it is told to.
    return replace(TuneOptions.of(collectives, cast(TuneArguments, arguments)), store=Path(store) if store else None)
