"""`colltune tune`: measure, decide, prove, write."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from colltune.cli.options import HostFile, Mpiexec, Nodes, Ppn, Simulate, refuse_with_simulate
from colltune.cli.stopping import go_on_command, heed_scheduler

if TYPE_CHECKING:
    from colltune.profile.application import Profile
    from colltune.search.priors import PriorSources
    from colltune.session.options import TuneOptions


def tune(
    context: typer.Context,
    collectives: Annotated[
        list[str] | None, typer.Argument(help="Collectives to tune: bcast allreduce ..., or all.", show_default=False)
    ] = None,
    profile: Annotated[
        Path | None,
        typer.Option(
            help="Tune what this application calls: a file of `colltune profile`, or a directory in which"
            " `colltune run --profile` left one."
        ),
    ] = None,
    runtime: Annotated[
        str, typer.Option(help="With --profile: the time that the application will still run, all runs together.")
    ] = "2h",
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="With --profile: at the end run the application too, by the command of its profile, with and without"
            " the rules in turn. Rules with which it is slower are withdrawn.",
        ),
    ] = False,
    out: Annotated[Path, typer.Option(help="Directory for the tuning.")] = Path("tuned"),
    budget: Annotated[
        str,
        typer.Option(
            help="Time for the whole command, such as 90s or 5m: launches, measuring, proof, replay. Where a tuning"
            " takes longer at least, it says so at its start. --check comes on top."
        ),
    ] = "5m",
    min_size: Annotated[str, typer.Option(help="Smallest message.")] = "1",
    max_size: Annotated[str, typer.Option(help="Largest message, such as 64KiB or 1MiB.")] = "1MiB",
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a campaign that was cut off.")] = False,
    gate: Annotated[
        str, typer.Option(help="on: keep only rules proven faster in fresh launches. off: keep all (research).")
    ] = "on",
    reproducible: Annotated[
        bool, typer.Option("--reproducible", help="Reductions give the same bits for every message size and timing.")
    ] = False,
    topology: Annotated[
        str | None,
        typer.Option(
            help="Which parts of the job may measure at once: a file, a scheme such as aurora, or serial."
            " Default: Slurm's topology file, else serial."
        ),
    ] = None,
    prior: Annotated[
        list[str] | None,
        typer.Option(
            help="Start from what is known elsewhere: an earlier tuning, a table of `colltune collect` (of another"
            " cluster, or simulated), a model of `colltune train`, or shipped. May be given several times."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of every random choice.")] = 1,
    mpiexec: Mpiexec = None,
    hostfile: HostFile = None,
    nodes: Nodes = None,
    ppn: Ppn = None,
    thread_level: Annotated[
        str,
        typer.Option(
            help="What the application asks MPI_Init_thread for: single, funneled, serialized or multiple."
            " Default: with --profile that of its program, else single.",
            show_default=False,
        ),
    ] = "",
    simulate: Simulate = "",
) -> None:
    """Measure collectives on the nodes of this job, and write the file that makes MPI choose best."""
    from colltune.core.collective_names import only_alltoallv, parse_collectives
    from colltune.core.errors import InputError
    from colltune.core.units import parse_duration, parse_size

    alltoallv = only_alltoallv(collectives or []) and not simulate
    if not alltoallv:
        parse_collectives(collectives or [])  # a slip of the fingers is said before MPI starts
    else:
        from colltune.cli.tune_alltoallv import refuse_other_options

        refuse_other_options(context)
    began_s = time.monotonic()
    if gate not in ("on", "off"):
        raise InputError(f"--gate {gate} is neither on nor off", "Leave it out, unless you do research on colltune")
    if profile is None and not collectives:
        raise InputError("nothing to tune is given", "Name collectives, or give a profile by --profile app.json")
    if profile is not None and simulate:
        raise InputError("--profile is for a real machine, not for --simulate", "Leave one of them out")
    if check and profile is None:
        raise InputError("--check runs the application of a profile, and none is given", "Give one by --profile")
    application, runtime_s = _load(profile), parse_duration(runtime)
    budget_s, smallest, largest = parse_duration(budget), parse_size(min_size), parse_size(max_size)
    # The heavy imports come after the cheap checks, so that a slip of the fingers costs no wait.
    from colltune.bench.workbench import MachineOptions, open_workbench
    from colltune.cli.display import Display
    from colltune.session.options import TuneOptions, require_writable
    from colltune.session.tune import tune as run_tune
    from colltune.store.lock import locked

    require_writable(out)
    context.with_resource(locked(out))
    machine = MachineOptions(mpiexec, hostfile, nodes, ppn, thread_level or "single")
    if alltoallv:
        from colltune.cli.tune_alltoallv import tune_alltoallv_here

        tune_alltoallv_here(machine, out, largest, budget_s, seed, resume=resume)
        return
    options = TuneOptions(
        collectives or [], smallest, largest, budget_s, resume, seed, gate == "on", reproducible, topology=topology
    )
    if prior:
        options = replace(options, prior=_prior(prior))
    if simulate:
        refuse_with_simulate(machine)
        _tune_simulated(simulate, options, out)
        return
    if application is not None:
        from colltune.mpi.detect import ask_flux
        from colltune.mpi.job import find_job
        from colltune.session.payoff import machine_like

        job = find_job(os.environ, host_file=hostfile, flux_resources=ask_flux(os.environ))
        machine = machine_like(application, machine, thread_level, job)
    bench = open_workbench(machine, os.environ)
    stop = heed_scheduler()
    if application is not None:
        from colltune.session.payoff import for_application

        shape = (bench.nodes, bench.ppn)
        options = for_application(options, application, runtime_s, bench.catalogue, shape, typer.echo)
        if check:
            from colltune.prove.trial import require_command

            require_command(application.command, bench.environment.facts, bench.process_environment)
    with Display() as display:
        display.machine(bench)
        result = run_tune(bench, options, out, display.listener(), stop, began_s)
        if check and application is not None and not result.outcome.interrupted:
            from colltune.cli.tune_check import check_with_application

            result = check_with_application(bench, result, application, options, out, display.listener(), stop)
    display.result(result, out, go_on_command(sys.argv[1:]))
    if options.stakes is not None and not result.outcome.interrupted:
        from colltune.session.payoff import payoff_of

        typer.echo(payoff_of(result, options.stakes, bench.nodes * bench.ppn).text())
    if not result.outcome.interrupted:
        typer.echo(_page(out))


def _tune_simulated(text: str, options: TuneOptions, out: Path) -> None:
    from colltune.bench.simulated import open_simulation
    from colltune.cli.display import Display
    from colltune.session.tune_simulated import tune_simulated

    simulation = open_simulation(text, os.environ)
    stop = heed_scheduler()
    try:
        with Display() as display:
            display.simulated(simulation)
            result = tune_simulated(simulation, options, out, display.listener(), stop)
    finally:
        simulation.close()
    display.result(result, out, go_on_command(sys.argv[1:]))


def _prior(names: list[str]) -> PriorSources:
    from colltune.pretrained.features import read_features
    from colltune.pretrained.record import RunningMachine
    from colltune.search.priors import load_prior_sources

    return load_prior_sources(names, lambda: read_features(RunningMachine()))


def _load(path: Path | None) -> Profile | None:
    if path is None:
        return None
    from colltune.profile.files import load_profile
    from colltune.store.history import latest_profile

    return load_profile(latest_profile(path) if path.is_dir() else path)


def _page(out: Path) -> str:
    """Makes the page of the report, and says where it is. What is tuned is tuned, whatever becomes of the page."""
    from colltune.core.errors import InputError
    from colltune.machine.compile import cache_directory
    from colltune.report.html import PAGE, write_page
    from colltune.session.explain import load_findings

    try:
        return f"Look at it: {write_page(load_findings(out), out / PAGE, cache_directory(os.environ))}"
    except InputError as error:
        return f"No page was made: {error}"
