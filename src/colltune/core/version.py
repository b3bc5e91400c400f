"""The version of colltune: that of the tag it was built from."""

from pathlib import Path

# Written by the build (pyproject.toml). A file, because importlib.metadata would delay every command.
_FILE = "version.txt"


def read_version(directory: Path) -> str:
    """The version that the build wrote into ``directory``; without a build that of the installed package.

    "0+unknown" for a source tree that was never installed.
    """
    try:
        return (directory / _FILE).read_text(encoding="ascii").strip()
    except OSError:
        from importlib import metadata

        try:
            return metadata.version("colltune")
        except metadata.PackageNotFoundError:
            return "0+unknown"


__version__ = read_version(Path(__file__).parent)
