"""`colltune site`: what the jobs of a site know together, and the releases that its users load."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from colltune.session.site.state import SiteMachine
    from colltune.site.store import SiteStore

site = typer.Typer(
    help="The memory of a site: what all jobs measured, and the releases that its users load.", no_args_is_help=True
)
Store = Annotated[
    Path | None, typer.Option("--store", help="Directory of the store. Default: COLLTUNE_STORE.", show_default=False)
]
Name = Annotated[str, typer.Argument(help="A release, by its name.", show_default=False)]


def _opened(store: Path | None) -> SiteStore:
    """The store that is named, or that of the site. Raises InputError where there is none."""
    from colltune.session.site.state import store_of

    return store_of(store)


@site.command()
def init(
    directory: Annotated[Path, typer.Argument(help="Where the jobs can write.", show_default=False)],
    predict: Annotated[
        bool, typer.Option("--predict", help="Predict a tuning for the MPI at hand, beside it, to begin with.")
    ] = False,
    hardware: Annotated[
        Path | None, typer.Option(help="With --predict: the record of a compute node, by `colltune doctor --record`.")
    ] = None,
) -> None:
    """Make a store: an inbox that the group may write to, and an outbox for releases that only you write."""
    from colltune.site.store import SiteStore

    store = SiteStore.made(directory)
    if predict:
        from colltune.bench.workbench import MachineOptions
        from colltune.session.predict import predict_here

        predicted = predict_here([], None, MachineOptions(), install=True, hardware=hardware).out
        typer.echo(f"{predicted} is predicted, not proven: for jobs until a release of what they measured replaces it.")
    typer.echo(f"{store.directory} is a store. In job scripts: export COLLTUNE_STORE={store.directory.resolve()}")
    typer.echo(f"The inbox is writable for its group: chgrp -R GROUP {store.directory}, if that is not yours.")


@site.command()
def status(
    directory: Annotated[
        Path | None, typer.Argument(help="The store, as --store names it.", show_default=False)
    ] = None,
    store: Store = None,
) -> None:
    """Say what is known by shape of job and collective, how old it is, and what the next job would measure."""
    from colltune.session.site.runs import predicted_here
    from colltune.session.site.state import status as find_status

    state = find_status(_opened(directory or store))
    if not state.machines:
        typer.echo("No job has added anything yet.")
    for machine in state.machines:
        _show_machine(machine)
    for name, reason in state.quarantined:
        typer.echo(f"in quarantine: {name[:29]}: {reason}")
    published = ", ".join(state.releases) or "none"
    typer.echo(f"releases: {published}; active: {state.active or 'none'}")
    if (predicted := predicted_here()) is not None:
        typer.echo(f"jobs of which no release is get {predicted}: predicted, not proven")


def _show_machine(machine: SiteMachine) -> None:
    counted = f"{machine.entries} entries of {machine.users} users"
    typer.echo(f"{machine.identity}: {counted}, the last {_date(machine.newest_s)}")
    for shape in machine.shapes:
        counts = shape.measured.items()
        known = ", ".join(
            f"{name} {count} of {pairs}" if pairs else f"{name} {count}" for name, (count, pairs) in counts
        )
        tuned = "no tuning" if shape.tuned_s is None else f"tuned {_date(shape.tuned_s)}, {shape.proven} proven"
        typer.echo(f"  {shape.nodes} x {shape.ppn}: {shape.jobs} jobs; measured {known or 'nothing'}; {tuned}")
        typer.echo(f"      the next job would {shape.next}")


def _date(when_s: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(when_s))


@site.command()
def add(
    tuned: Annotated[Path, typer.Argument(help="Directory that `colltune tune` wrote.", show_default=False)],
    store: Store = None,
) -> None:
    """Add a tuning that was made without the store, or what could not be added when it was made."""
    from colltune.core.units import format_count
    from colltune.session.site.state import add as add_directory

    count = add_directory(_opened(store), tuned, lambda text: typer.echo(f"colltune: {text}", err=True))
    typer.echo(f"added {format_count(count, 'entry', 'entries')}")


Trust = Annotated[
    list[str] | None,
    typer.Option("--trust", help="A user whose word is enough, beside yours; may be given again.", show_default=False),
]


@site.command()
def publish(
    trust: Trust = None,
    sign: Annotated[
        Path | None, typer.Option(help="Sign the release with this key of ssh-keygen.", show_default=False)
    ] = None,
    store: Store = None,
) -> None:
    """Make a release of the last tuning of every shape; nothing is activated. What is stale or unproven stays out.

    A tuning goes in if you, a user whom you trust, or two users have said it. In a job its rules are measured anew.
    """
    from colltune.session.site.publish import described, publish_here
    from colltune.session.site.state import user_number
    from colltune.site.release import sign as sign_release

    release = publish_here(_opened(store), [user_number(user) for user in trust or ()], typer.echo)
    for line in described(release):
        typer.echo(line)
    for why in release.refused:
        typer.echo(f"left out: {why}")
    if sign is not None:
        sign_release(release.place, sign)
    typer.echo(f"published {release.name}. Compare it, then: colltune site activate {release.name}")


@site.command()
def revoke(what: Annotated[str, typer.Argument(metavar="USER|ENTRY", show_default=False)], store: Store = None) -> None:
    """Believe no more what a user said, or an entry: neither jobs nor the next release do. For the store's owner."""
    from colltune.session.site.state import revoke as take_back

    typer.echo(f"revoked {take_back(_opened(store), what)}; publish anew, for releases that are there stay as they are")


@site.command()
def activate(release: Name, store: Store = None) -> None:
    """Make a release the one that modules load from now on. Jobs that run keep theirs."""
    from colltune.site.release import activate as make_active

    opened = _opened(store)
    make_active(opened, release)
    modules = opened.outbox.resolve() / "active/modules"
    typer.echo(f"{release} is active. Lmod: module use {modules}/lmod; Tcl: module use {modules}/tcl")


@site.command()
def rollback(store: Store = None) -> None:
    """Go back to the release that was active before. Jobs that run keep theirs."""
    from colltune.site.release import rollback as go_back

    typer.echo(f"{go_back(_opened(store)).name} is active again")


@site.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def run(
    context: typer.Context,
    measure: Annotated[bool, typer.Option("--measure", help="Measure in the application what it is worth.")] = False,
    share: Annotated[str, typer.Option(help="With --measure: of the calls that run by default, 1% to 50%.")] = "5%",
    out: Annotated[Path, typer.Option(help="Where the tuning of the release is copied to.")] = Path("colltune-release"),
    store: Store = None,
) -> None:
    """Run a command with the active release: colltune site run -- mpiexec -n 4 ./app.

    What was predicted for the MPI is for jobs of which no release is; with --measure as by run --auto.
    """
    from colltune.cli.run import replace_by
    from colltune.core.errors import InputError
    from colltune.session.site.runs import given_here
    from colltune.site.release import LOADED

    if not context.args:
        raise InputError("there is no command to run", "Write: colltune site run -- mpiexec -n 4 ./app")
    opened = _opened(store)
    given = given_here(opened, out)
    if given is None:
        typer.echo("colltune: the active release has no tuning for this job; it runs by default", err=True)
        replace_by(context.args, (context.args, os.environ))
    how = ["--auto"] if given.release is None else ["--measure", "--share", share]
    options = how if measure else []
    command = [sys.executable, "-P", "-m", "colltune", "run", *options, str(given.tuning), "--", *context.args]
    loaded = {} if given.release is None else {LOADED: str(given.release.place.resolve())}
    environment = {**os.environ, **loaded}
    replace_by(context.args, (command, environment))
