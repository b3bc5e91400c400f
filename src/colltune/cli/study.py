"""`colltune study` where colltune-study is not installed, or is that of another release."""

import typer

from colltune.core.extras import study as part_of_study


def study(context: typer.Context) -> None:
    """For people who study how tuning works, and for clusters that are not at hand.

    The commands are in colltune-study, a distribution of its own. In the checkout of colltune:
    pip install ./packaging/study
    """
    del context
    part_of_study("commands")
