"""What commands and scripts print and how they end.

``colltune`` and ``script`` are called in the process of the tests, without the start of another one;
tests/unit/test_terminal.py starts each command once as a user does.
"""

import contextlib
import gc
import io
import multiprocessing
import os
import runpy
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, BinaryIO
from unittest import mock

from colltune.cli import main

Done = subprocess.CompletedProcess[str]
# What hangs ends a test after so long; a busy machine may take minutes for what takes a second.
PATIENCE_S = 300


def run_to_end(command: Sequence[str | Path], *, check: bool = False, timeout: float = PATIENCE_S, **more: Any) -> Done:
    """``command``, with ``more`` for ``subprocess.run``; nothing is typed where ``more`` has no input.

    ``check``: it has to end with 0.
    """
    if "input" not in more:
        more.setdefault("stdin", subprocess.DEVNULL)
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=timeout, **more)
    return ended_with(0, done) if check else done


def ended_with(code: int, done: Done) -> Done:
    """``done``, which has to have ended with ``code``."""
    assert done.returncode == code, f"{done.args} ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def shell_script(path: Path, commands: str) -> Path:
    """``path``, now a program that runs ``commands``."""
    path.write_text(f"#!/bin/sh\n{commands}\n")
    path.chmod(0o755)
    return path


def comes_true(ready: Callable[[], object], patience_s: float = PATIENCE_S) -> bool:
    """Whether ``ready`` is true within ``patience_s``; it is asked 20 times a second."""
    until_s = time.monotonic() + patience_s
    while not ready():
        if time.monotonic() > until_s:
            return False
        time.sleep(0.05)
    return True


def forked(run: Callable[[int], object]) -> tuple[BaseProcess, BinaryIO]:
    """``run`` in a process of its own, and what it writes to the descriptor that it is given."""
    reading, writing = os.pipe()
    process = multiprocessing.get_context("fork").Process(target=run, args=(writing,))
    process.start()
    os.close(writing)
    return process, os.fdopen(reading, "rb")


def end(process: subprocess.Popen[bytes]) -> None:
    """By a signal that it hears, or else by the other."""
    process.terminate()
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def colltune(*arguments: str, environ: Mapping[str, str] | None = None, code: int | None = None) -> Done:
    """``colltune ARGUMENTS``, which has to end with ``code``; ``environ`` is the whole environment, if given."""
    environ = os.environ if environ is None else environ
    if arguments[:1] == ("run",):  # which becomes the command that it is given
        command = [sys.executable, "-m", "colltune", *arguments]
        done = run_to_end(command, env=environ)
    else:
        done = _called(main, ["colltune", *arguments], environ)
    return done if code is None else ended_with(code, done)


def script(path: Path, *arguments: object) -> Done:
    """``python PATH ARGUMENTS``."""
    return _called(
        lambda: runpy.run_path(str(path), run_name="__main__"), [str(path), *map(str, arguments)], os.environ
    )


class _Written(io.BytesIO):
    """Can be read also when who wrote to it has closed it."""

    def close(self) -> None:
        pass


def _called(run: Callable[[], object], words: list[str], environ: Mapping[str, str]) -> Done:
    encoding, _, errors = environ.get("PYTHONIOENCODING", "utf-8").partition(":")
    written = _Written(), _Written()
    out, err = (io.TextIOWrapper(to, encoding, errors or "strict", write_through=True) for to in written)
    code, collected = 0, gc.get_threshold()
    with (
        mock.patch.object(sys, "argv", words),
        mock.patch.dict(os.environ, dict(environ), clear=True),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            run()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        finally:
            gc.set_threshold(*collected)
    return subprocess.CompletedProcess(words, code, *(to.getvalue().decode(encoding) for to in written))
