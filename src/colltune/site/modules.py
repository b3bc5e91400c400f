"""Module files of a release, for Lmod and for Tcl: they load the tuning of the shape of the job that loads them.

Each checks that the MPI library is still the one that was tuned, by its checksum, and does nothing but set variables.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from jinja2 import Environment, StrictUndefined

from colltune.site.identity import Identity


class Tuned(Protocol):
    """A tuning in a release, see ``release.Published``."""

    @property
    def directory(self) -> str: ...

    @property
    def identity(self) -> Identity: ...

    @property
    def nodes(self) -> int: ...

    @property
    def ppn(self) -> int: ...

    @property
    def variables(self) -> Mapping[str, str]: ...

    @property
    def libmpi(self) -> str: ...


_PLACE = "{directory}"
_ABOUT = "Selection of collective algorithms for {identity}, tuned on this machine by colltune."
_LUA = """\
-- Written by `colltune site publish`; a release is never changed.
help([[{{ about }}
What is not proven faster than the library's default is the library's default.]])
whatis("{{ about }}")
local release = "{{ place }}"
-- Shapes (nodes, ranks per node) with a tuning of their own, the smallest first.
local shapes = {
{%- for one in shapes %}
    { nodes = {{ one.nodes }}, ppn = {{ one.ppn }}, directory = "{{ one.directory }}", variables = {
    {%- for name, value in one.variables %}
        ["{{ name }}"] = "{{ value }}",
    {%- endfor %}
    } },
{%- endfor %}
}
{%- if libmpi %}
local libmpi, build = "{{ libmpi }}", "{{ build }}"
if mode() == "load" and isFile(libmpi) then
    local found = capture("sha256sum '" .. libmpi .. "'"):match("^%x+")
    if found and found ~= build then
        LmodError("the MPI library " .. libmpi .. " is not the one that was tuned: publish a new release")
    end
end
{%- endif %}
-- The shape of this job; outside of one, the largest that was tuned.
local function first(...)
    for _, name in ipairs({ ... }) do
        local number = (os.getenv(name) or ""):match("^%d+")
        if number then return tonumber(number) end
    end
end
local nodes = first("SLURM_JOB_NUM_NODES", "SLURM_NNODES", "PBS_NUM_NODES")
local ppn = first("SLURM_NTASKS_PER_NODE", "SLURM_TASKS_PER_NODE", "PBS_NUM_PPN")
local chosen = nil
for _, one in ipairs(shapes) do
    if not nodes or not ppn or (not chosen and one.nodes >= nodes and one.ppn >= ppn) then
        chosen = one
    end
end
if chosen then
    for name, value in pairs(chosen.variables) do
        setenv(name, (value:gsub("{directory}", release .. "/" .. chosen.directory)))
    end
    setenv("COLLTUNE_RELEASE", release)
end
"""
_TCL = """\
#%Module1.0
# Written by `colltune site publish`; a release is never changed.
proc ModulesHelp { } {
    puts stderr {{ '{' }}{{ about }}
What is not proven faster than the library's default is the library's default.}
}
module-whatis {{ '{' }}{{ about }}}
set release {{ '{' }}{{ place }}}
{%- if libmpi %}
set libmpi {{ '{' }}{{ libmpi }}}
if { [module-info mode load] && [file isfile $libmpi] && ![catch { exec sha256sum $libmpi } said] } {
    if { [lindex $said 0] ne "{{ build }}" } {
        puts stderr "the MPI library $libmpi is not the one that was tuned: publish a new release"
        break
    }
}
{%- endif %}
# The shape of this job; outside of one, the largest that was tuned.
set nodes ""
set ppn ""
foreach name { SLURM_JOB_NUM_NODES SLURM_NNODES PBS_NUM_NODES } {
    if { $nodes eq "" && [info exists ::env($name)] } { set nodes $::env($name) }
}
foreach name { SLURM_NTASKS_PER_NODE SLURM_TASKS_PER_NODE PBS_NUM_PPN } {
    if { $ppn eq "" && [info exists ::env($name)] } { regexp {^[0-9]+} $::env($name) ppn }
}
set chosen {}
# Shapes with a tuning of their own, the smallest first: nodes, ranks per node, directory, variables.
foreach { n p directory variables } {
{%- for one in shapes %}
    {{ one.nodes }} {{ one.ppn }} {{ '{' }}{{ one.directory }}} {
    {%- for name, value in one.variables %}
        {{ '{' }}{{ name }}} {{ '{' }}{{ value }}}
    {%- endfor %}
    }
{%- endfor %}
} {
    if { $nodes eq "" || $ppn eq "" || ($chosen eq "" && $n >= $nodes && $p >= $ppn) } {
        set chosen [list $directory $variables]
    }
}
if { $chosen ne "" } {
    foreach { name value } [lindex $chosen 1] {
        setenv $name [string map [list "{directory}" "$release/[lindex $chosen 0]"] $value]
    }
    setenv COLLTUNE_RELEASE $release
}
"""


def module_files(place: Path, tunings: Sequence[Tuned]) -> dict[str, bytes]:
    """By their names in the release at ``place``: one for each identity, in ``modules/lmod`` and ``modules/tcl``."""
    jinja = Environment(undefined=StrictUndefined, keep_trailing_newline=True)
    files: dict[str, bytes] = {}
    for name, found in _named(tunings):
        identity = found[0].identity
        values = {
            "about": _plain(_ABOUT.format(identity=identity)),
            "place": _plain(str(place.resolve())),
            "libmpi": _plain(found[0].libmpi),
            "build": _plain(identity.mpi_build),
            "shapes": [
                {
                    "nodes": one.nodes,
                    "ppn": one.ppn,
                    "directory": one.directory,
                    "variables": [
                        (_plain(key), _PLACE.join(map(_plain, value.split(_PLACE))))
                        for key, value in sorted(one.variables.items())
                    ],
                }
                for one in sorted(found, key=lambda one: (one.nodes * one.ppn, one.nodes))
            ],
        }
        files[f"modules/lmod/colltune-tuned/{name}.lua"] = jinja.from_string(_LUA).render(values).encode()
        files[f"modules/tcl/colltune-tuned/{name}"] = jinja.from_string(_TCL).render(values).encode()
    return files


def _named(tunings: Sequence[Tuned]) -> Iterator[tuple[str, Sequence[Tuned]]]:
    """A version of the module for each identity: MPI and version, and what it takes to tell them apart."""
    found: defaultdict[Identity, list[Tuned]] = defaultdict(list)
    for one in tunings:
        found[one.identity].append(one)
    labels = Counter(identity.label for identity in found)
    for identity, mine in sorted(found.items()):
        yield (identity.label if labels[identity.label] == 1 else f"{identity.label}-{identity.key[:8]}"), mine


def _plain(text: str) -> str:
    """``text`` without what ends a string of Lua, a word of Tcl or of a shell, or is evaluated in one."""
    return "".join(one for one in text if one.isprintable() and one not in "\"\\[]{}$'`;")
