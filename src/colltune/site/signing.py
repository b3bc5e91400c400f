"""Signed releases, by what sites have: ``ssh-keygen -Y``, and a file of allowed signers. No cryptography of our own.

What is signed is SHA256SUMS, which names every file of the release: `sha256sum --check` and `ssh-keygen` verify it.
"""

import hashlib
import subprocess
from pathlib import Path

from colltune.core.errors import ColltuneError
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
    command = ["ssh-keygen", "-Y", "sign", "-f", str(key), "-n", _NAMESPACE]
    try:
        done = subprocess.run(
            command, input=(directory / SUMS).read_bytes(), capture_output=True, timeout=_PATIENCE_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ColltuneError(f"ssh-keygen cannot be run: {error}", "Install OpenSSH 8.2 or later") from error
    if done.returncode != 0:
        raise ColltuneError(f"{directory.name} is published and not signed: {_said(done)}", "Check --sign KEY")
    (directory / SIGNATURE).write_bytes(done.stdout)
    (directory / SIGNATURE).chmod(0o444)


def _said(done: subprocess.CompletedProcess[bytes]) -> str:
    lines = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()
    return lines[0] if lines else f"ssh-keygen ended with exit code {done.returncode}"
