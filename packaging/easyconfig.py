"""Writes an EasyBuild recipe of colltune with all that it needs, at the versions and sums that pip finds now.

    python packaging/easyconfig.py dist/colltune-0.2.0-py3-none-any.whl [--predict MPIEXEC] > colltune-0.2.0.eb
    eb --modules-tool=Lmod --sourcepath=dist colltune-0.2.0.eb

With --predict the installation also predicts a tuning for the MPI of MPIEXEC, and writes it beside that MPI.
The recipe uses the system's toolchain and Python, and wheels, so that it builds in a minute. Needs pip >= 22.2.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
from pathlib import Path

RECIPE = '''easyblock = 'PythonBundle'

name = 'colltune'
version = '{version}'

homepage = 'https://colltune.invalid'  # no public address yet
description = """Tunes the collectives of an MPI library inside your own job, and hands it a file that is safe."""

toolchain = SYSTEM

allow_system_deps = [('Python', SYS_PYTHON_VERSION)]

exts_default_options = {{
    'easyblock': 'PythonPackage',
    'modulename': False,
    'sanity_pip_check': True,
    'unpack_sources': False,
}}

exts_list = [
{extensions}]

sanity_check_paths = {{
    'files': ['bin/colltune'],
    'dirs': ['lib/python{python}/site-packages/colltune'],
}}
sanity_check_commands = ['colltune --version']
{predict}
moduleclass = 'tools'
'''


def needed(wheel: Path) -> list[dict[str, str]]:
    """Name, version, file, address and sum of each package, those that others need first, and ``wheel`` last."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed", "--report", "-"]
    done = subprocess.run([*command, str(wheel)], capture_output=True, text=True, check=True)
    found = []
    for one in json.loads(done.stdout)["install"]:
        info, address = one["download_info"], one["metadata"]
        is_ours = address["name"] == "colltune"
        total = hashlib.sha256(wheel.read_bytes()).hexdigest() if is_ours else info["archive_info"]["hashes"]["sha256"]
        directory, _, file = info["url"].rpartition("/")
        found.append(
            {
                "name": address["name"],
                "version": address["version"],
                "file": wheel.name if is_ours else file,
                "directory": "" if is_ours else directory,
                "sum": total,
            }
        )
    return sorted(found, key=lambda one: one["name"] == "colltune")


def recipe(wheel: Path, mpiexec: str | None = None) -> str:
    packages = needed(wheel)
    extensions = ""
    for one in packages:
        where = f"        'source_urls': ['{one['directory']}'],\n" if one["directory"] else ""
        extensions += (
            f"    ('{one['name']}', '{one['version']}', {{\n"
            f"        'source_tmpl': '{one['file']}',\n{where}"
            f"        'checksums': ['{one['sum']}'],\n    }}),\n"
        )
    python = ".".join(map(str, sys.version_info[:2]))
    predict = ""
    if mpiexec is not None:
        where = f"PYTHONPATH=%(installdir)s/lib/python{python}/site-packages %(installdir)s/bin/colltune"
        predict = f"\npostinstallcmds = ['{where} predict --install --mpiexec {mpiexec}']\n"
    return RECIPE.format(version=packages[-1]["version"], extensions=extensions, python=python, predict=predict)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--predict", metavar="MPIEXEC")
    asked = parser.parse_args()
    print(recipe(asked.wheel, asked.predict), end="")
