"""The test suite on every Python and MPICH that is supported: `nox`, or `nox -s "tests-3.12(mpich='4.3.2')"`."""

from __future__ import annotations

import nox

nox.options.default_venv_backend = "venv"


@nox.session(python=["3.11", "3.12"])
@nox.parametrize("mpich", ["4.0.3", "4.1.3", "4.2.3", "4.3.2", "5.0.2"])
def tests(session: nox.Session, mpich: str) -> None:
    session.install(".", "./packaging/study", f"mpich=={mpich}", "pytest", "pytest-timeout", "pytest-xdist", "hypothesis")
    session.run("pytest", "-m", "not slow", *session.posargs)
