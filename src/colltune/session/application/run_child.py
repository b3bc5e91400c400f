"""Runs an application as a child, and finds out whether the tuning was in force."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from colltune.core.errors import on_os_error
from colltune.core.stop import put_back
from colltune.emit.live_rules import LIVE_VARIABLE
from colltune.mpi.mpich_settings import overriding
from colltune.prove.in_run.matched_calls import Counting, RuleEffect
from colltune.prove.loaded import (
    SUMMARY_VARIABLE,
    FileWatch,
    LoadEvidence,
    SummaryFilter,
    files_of,
    has_summary,
    judge,
)
from colltune.store.tuning import Tuning

_FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
_KEYS = (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
_SENT_BY_KERNEL = 0x80  # SI_KERNEL: a key on the terminal, which has sent it to the child too


def run_and_prove(
    command: Sequence[str],
    environment: Mapping[str, str],
    variables: Mapping[str, str],
    tuning: Tuning,
    count: Counting,
) -> tuple[int, LoadEvidence]:
    """Runs ``command`` to its end; its exit code (128 + the signal that ended it), and the proof.

    ``variables``: those of ``environment`` that put ``tuning`` in force. Signals are handed on.
    Where MPICH tells what it loaded, what it says is taken out of the standard output; a command that sends the
    output of MPI elsewhere finds it there.
    """
    if not variables:
        return run_child(command, environment), LoadEvidence(True, "it has no rule, so the library's own choice stands")
    if LIVE_VARIABLE in variables:
        code = run_child(command, environment)
        return code, _with_effect(None, count.finish(), tuning)
    asks = has_summary(tuning.environment.mpi, tuning.environment.mpi_version) and not environment.get(SUMMARY_VARIABLE)
    summary = SummaryFilter()
    child_environment = {**environment, SUMMARY_VARIABLE: "1"} if asks else dict(environment)
    with FileWatch(map(Path, files_of(variables).values())) as watch:
        code = run_child(command, child_environment, summary if asks else None)
        loaded = judge(variables, summary.loaded, watch.opened(), watch.failure)
    return code, _with_effect(loaded, count.finish(), tuning)


def _with_effect(loaded: LoadEvidence | None, effect: RuleEffect, tuning: Tuning) -> LoadEvidence:
    """The proof with what was counted. ``loaded``: that the library read the files; None with the live selector."""
    text = effect.text(tuning.environment, tuning.rule_sets)
    if loaded is None:
        return LoadEvidence(effect.met > 0, f"the live selector counted: {text}")
    return LoadEvidence(loaded.proven and (effect.met > 0 or bool(effect.failure)), f"{loaded.text}; {text}")


def weighed(
    proof: LoadEvidence, environment: Mapping[str, str], collectives: Iterable[str], obstacles: Sequence[str]
) -> LoadEvidence:
    """``proof``, which proves nothing where something is known to keep the files from deciding.

    ``obstacles``: that, a sentence each; ``environment``, of the application, may hold more.
    """
    why = "; ".join(obstacles)
    if not why and (passed_by := overriding(environment, collectives)):
        why = f"{', '.join(passed_by)} in the environment passes them by"
    return LoadEvidence(False, f"{proof.text}, but {why}") if why and proof.proven else proof


def run_child(command: Sequence[str], environment: Mapping[str, str], summary: SummaryFilter | None = None) -> int:
    """Runs ``command``, with signals handed on, to its end; its exit code, or 128 + the signal that ended it."""
    # Signals are blocked before the child is there, so that none is lost; the child gets the mask of before.
    signals = {*_FORWARDED, signal.SIGCHLD}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    shared = os.isatty(0)  # the terminal, whose keys reach the child too
    handlers = _through_this_thread(_KEYS if shared else ())
    try:
        with on_os_error(f"cannot run {command[0]}", "Check the command after --"):
            child = subprocess.Popen(
                command,
                env=environment,
                stdout=None if summary is None else subprocess.PIPE,
                # On a terminal the child must stay in the foreground; elsewhere a group of its own keeps a signal to
                # our group from reaching it twice.
                process_group=None if shared else 0,
                preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_SETMASK, before),
            )
        pump = threading.Thread(target=_pump, args=(child, summary)) if summary is not None else None
        if pump is not None:
            pump.start()
        code = _wait(child, signals)
        if pump is not None:
            pump.join()
        return code if code >= 0 else 128 - code
    finally:
        put_back(handlers)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _through_this_thread(dropped: Collection[signal.Signals]) -> dict[signal.Signals, Any]:
    """Leads signals that come to a thread of a numerical library, which blocks none, to this one, which has them
    blocked; the handlers until now. Those ``dropped`` have reached the child too."""
    if threading.current_thread() is not threading.main_thread():
        return {}

    def lead(number: int, _frame: FrameType | None) -> None:
        if number not in dropped:
            signal.pthread_kill(threading.get_ident(), number)

    heard = [number for number in _FORWARDED if signal.getsignal(number) is not signal.SIG_IGN]
    return {number: signal.signal(number, lead) for number in heard}


def _wait(child: subprocess.Popen[bytes], signals: set[signal.Signals]) -> int:
    """Hands signals on until the child has ended; its return code."""
    while (code := child.poll()) is None:
        got = signal.sigtimedwait(signals, 0.5)  # the time-out covers a signal that was merged with another
        if got is None or got.si_signo == signal.SIGCHLD:
            continue
        if got.si_code != _SENT_BY_KERNEL:
            child.send_signal(got.si_signo)
    return code


def _pump(child: subprocess.Popen[bytes], summary: SummaryFilter) -> None:
    """From the child's standard output to ours, without the summary."""
    assert child.stdout is not None
    source, target = child.stdout.fileno(), sys.stdout.fileno()
    open_target = True
    while data := os.read(source, 1 << 16):
        open_target = open_target and _write(target, summary.feed(data))
    if open_target:
        _write(target, summary.close())


def _write(target: int, data: bytes) -> bool:
    """False where nobody reads any more; the child's output is then read on, and dropped."""
    try:
        while data:
            data = data[os.write(target, data) :]
    except OSError:
        return False
    return True
