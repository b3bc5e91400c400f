"""Signed releases, by what sites have: ``ssh-keygen -Y``, and a file of allowed signers. No cryptography of our own.

What is signed is SHA256SUMS, which names every file of the release: `sha256sum --check` and `ssh-keygen` verify it too.
"""

import hashlib
import subprocess
from collections.abc import Sequence
from pathlib import Path

from colltune.core.errors import ColltuneError, InputError
from colltune.machine.files import LARGEST_BYTES, read_file

SUMS, SIGNATURE = "SHA256SUMS", "SHA256SUMS.sig"
_NAMESPACE = "colltune"  # a signature for something else is none for a release
_PATIENCE_S = 60.0


def checksums(directory: Path) -> bytes:
    """Of all files in ``directory``, as `sha256sum` writes them. Raises OSError, also for what is no plain file."""
    paths = sorted(path for path in directory.rglob("*") if not path.is_dir() or path.is_symlink())
    named = [(path.relative_to(directory), path) for path in paths if path.name not in (SUMS, SIGNATURE)]
    digests = [(hashlib.sha256(read_file(path, LARGEST_BYTES)).hexdigest(), name) for name, path in named]
    return "".join(f"{digest}  {name}\n" for digest, name in digests).encode()


def sign(directory: Path, key: Path) -> None:
    """Signs the release in ``directory`` with the private ``key``, or with that of an agent. Raises ColltuneError."""
    done = _keygen(["sign", "-f", str(key), "-n", _NAMESPACE], (directory / SUMS).read_bytes())
    if done.returncode != 0:
        raise ColltuneError(f"{directory.name} is published and not signed: {_said(done)}", "Check --sign KEY")
    (directory / SIGNATURE).write_bytes(done.stdout)
    (directory / SIGNATURE).chmod(0o444)


def verified(directory: Path, signers: Path) -> str:
    """Who signed the release in ``directory``, by their name in ``signers``. Raises InputError where nobody did, and
    where a file of it is another one now, or one more."""
    try:
        sums = read_file(directory / SUMS)
        read_file(directory / SIGNATURE)
        if sums != checksums(directory):
            raise InputError(f"{directory}: its files are not those that were published", "Publish anew")
    except OSError as error:
        raise InputError(
            f"{directory} is not signed: {error.filename}: {error.strerror}", "Publish with --sign"
        ) from error
    by = ["-s", str(directory / SIGNATURE), "-f", str(signers)]
    found = _keygen(["find-principals", *by], b"")
    name = found.stdout.decode(errors="replace").splitlines()[0] if found.returncode == 0 and found.stdout else ""
    done = _keygen(["verify", "-n", _NAMESPACE, "-I", name, *by], sums) if name else found
    if done.returncode != 0:
        raise InputError(f"{directory}: no signer in {signers} signed it: {_said(done)}", "Do not use it")
    return name


def _keygen(words: Sequence[str], given: bytes) -> subprocess.CompletedProcess[bytes]:
    command = ["ssh-keygen", "-Y", *words]
    try:
        return subprocess.run(command, input=given, capture_output=True, timeout=_PATIENCE_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ColltuneError(f"ssh-keygen cannot be run: {error}", "Install OpenSSH 8.2 or later") from error


def _said(done: subprocess.CompletedProcess[bytes]) -> str:
    lines = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()
    return lines[0] if lines else f"ssh-keygen ended with exit code {done.returncode}"
