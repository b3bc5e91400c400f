"""Module files of a release, for Lmod and for Tcl: they load the tuning of the shape of the job that loads them.

Each checks that the MPI library is still the one that was tuned, by its checksum, and does nothing but set variables.
While a candidate is tried, those jobs get it that get it by `colltune site run`: `sha256sum` takes the same hash.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from colltune.site.identity import Identity
from colltune.site.knowledge import JOB_NUMBERS


class ReleasedTuning(Protocol):
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
_SIGNED = """\
To see who signed it: colltune site verify {release} --store {store} --signers SIGNERS
Without colltune, in {place}:
sha256sum --check SHA256SUMS
ssh-keygen -Y verify -n colltune -I NAME -f SIGNERS -s SHA256SUMS.sig < SHA256SUMS"""
_LUA = """\
-- Written by `colltune site publish`; a release is never changed.
help([[{{ about }}
What is not proven faster than the library's default is the library's default.
{{ signed }}]])
whatis("{{ about }}")
local own, version = "{{ place }}", "{{ name }}"
local outbox = own:match("^(.*)/releases/[^/]+$")

local function first(...)
    for _, name in ipairs({ ... }) do
        local text = os.getenv(name)
        if text and text ~= "" then return text end
    end
end

-- What `release` has for this MPI: its library, and the shapes with a tuning of their own, the smallest first.
local function read(release)
    local found = { release = release, libmpi = "", build = "", shapes = {} }
    local file = assert(io.open(release .. "/modules/shapes/" .. version))
    for line in file:lines() do
        local word, rest = line:match("^(%a+) (.*)$")
        if word == "tuning" then
            local nodes, ppn, directory = rest:match("^(%d+) (%d+) (.+)$")
            table.insert(found.shapes,
                { nodes = tonumber(nodes), ppn = tonumber(ppn), directory = directory, variables = {} })
        elseif word == "set" then
            local name, value = rest:match("^(%S+) (.*)$")
            found.shapes[#found.shapes].variables[name] = value
        elseif word then
            found[word] = rest
        end
    end
    file:close()
    return found
end

local function fits(tuned)
    if tuned.libmpi == "" or not isFile(tuned.libmpi) then return true end
    local found = capture("sha256sum '" .. tuned.libmpi .. "'"):match("^%x+")
    return not found or found == tuned.build
end

-- The candidate release, if this job is one of those that get it: by the same hash as in `colltune site run`.
local function candidate()
    local job = first({{ jobs }})
    local file = job and io.open(outbox .. "/canary.json")
    if not file then return nil end
    local said = file:read("*a")
    file:close()
    local release, share = said:match('"release": "([%w.-]+)"'), said:match('"share": (%d+)')
    local text = "'" .. (job .. " " .. release):gsub("'", "'\\\\''") .. "'"
    local digits = capture("printf %s " .. text .. " | sha256sum"):match("^%x%x%x%x%x%x%x%x")
    if tonumber(digits, 16) % 100 < tonumber(share) then
        local tuned = read(outbox .. "/releases/" .. release)
        return fits(tuned) and tuned or nil
    end
end

-- A job keeps what it has loaded. Whatever is wrong with another release leaves it with this one.
local known, tuned = true, nil
if mode() == "load" then
    known, tuned = pcall(candidate)
elseif mode() == "unload" and first("COLLTUNE_RELEASE") then
    known, tuned = pcall(read, first("COLLTUNE_RELEASE"))
end
if not known or not tuned then tuned = read(own) end
if mode() == "load" and not fits(tuned) then
    LmodError("the MPI library " .. tuned.libmpi .. " is not the one that was tuned: publish a new release")
end
-- The shape of this job; outside of one, the largest that was tuned.
local nodes = tonumber((first("SLURM_JOB_NUM_NODES", "SLURM_NNODES", "PBS_NUM_NODES") or ""):match("^%d+"))
local ppn = tonumber((first("SLURM_NTASKS_PER_NODE", "SLURM_TASKS_PER_NODE", "PBS_NUM_PPN") or ""):match("^%d+"))
local chosen = nil
for _, one in ipairs(tuned.shapes) do
    if not nodes or not ppn or (not chosen and one.nodes >= nodes and one.ppn >= ppn) then
        chosen = one
    end
end
if chosen then
    local directory = tuned.release .. "/" .. chosen.directory
    for name, value in pairs(chosen.variables) do
        pushenv(name, (value:gsub("{directory}", (directory:gsub("%%", "%%%%")))))
    end
    setenv("COLLTUNE_RELEASE", tuned.release)
    setenv("COLLTUNE_TUNED", directory)
end
"""
_TCL = """\
#%Module1.0
# Written by `colltune site publish`; a release is never changed.
proc ModulesHelp { } {
    puts stderr {{ '{' }}{{ about }}
What is not proven faster than the library's default is the library's default.
{{ signed }}}
}
module-whatis {{ '{' }}{{ about }}}
set own {{ '{' }}{{ place }}}
set version {{ '{' }}{{ name }}}
regexp {^(.*)/releases/[^/]+$} $own all outbox

proc colltuneFirst { names } {
    foreach name $names {
        if { [info exists ::env($name)] && $::env($name) ne "" } { return $::env($name) }
    }
    return ""
}

# What a release has for this MPI: itself, the library, its checksum, and the shapes with a tuning of their own, the
# smallest first (nodes, ranks per node, directory, variables).
proc colltuneRead { release version } {
    set libmpi ""
    set build ""
    set shapes {}
    set file [open "$release/modules/shapes/$version"]
    foreach line [split [read $file] "\\n"] {
        if { [regexp {^tuning ([0-9]+) ([0-9]+) (.+)$} $line all nodes ppn directory] } {
            lappend shapes $nodes $ppn $directory {}
        } elseif { [regexp {^set ([^ ]+) (.*)$} $line all name value] } {
            lset shapes end [concat [lindex $shapes end] [list $name $value]]
        } elseif { ![regexp {^libmpi (.*)$} $line all libmpi] } {
            regexp {^build (.*)$} $line all build
        }
    }
    close $file
    return [list $release $libmpi $build $shapes]
}

proc colltuneFits { tuned } {
    set libmpi [lindex $tuned 1]
    if { ![file isfile $libmpi] || [catch { exec sha256sum $libmpi } said] } { return 1 }
    return [expr { [lindex $said 0] eq [lindex $tuned 2] }]
}

# The candidate release, if this job is one of those that get it: by the same hash as in `colltune site run`.
proc colltuneCandidate { outbox version } {
    set job [colltuneFirst { {{ jobs }} }]
    if { $job eq "" || ![file exists "$outbox/canary.json"] } { return {} }
    set file [open "$outbox/canary.json"]
    set said [read $file]
    close $file
    regexp {"release": "([A-Za-z0-9.-]+)"} $said all release
    regexp {"share": ([0-9]+)} $said all share
    set digits [string range [exec sha256sum << "$job $release"] 0 7]
    if { [expr { "0x$digits" % 100 }] >= $share } { return {} }
    set tuned [colltuneRead "$outbox/releases/$release" $version]
    return [lindex [list {} $tuned] [colltuneFits $tuned]]
}

# A value of the user's own comes back when the module is unloaded. Modules have pushenv from 5.1 on. Lmod's, for Tcl,
# takes our value for the user's in 8.6, so it gets the user's first, and the pop of the unload leaves that one.
proc colltunePush { name value } {
    set kept "__COLLTUNE_HAD_$name"
    if { [info commands pushenv] eq "" || ([module-info mode load] && ![info exists ::env($name)]) } {
        setenv $name $value
    } elseif { [module-info mode load] } {
        pushenv $name $::env($name)
        pushenv $name $value
        setenv $kept 1
    } elseif { [colltuneFirst $kept] ne "" } {
        setenv $kept 1
        pushenv $name $value
    } else {
        setenv $name $value
    }
}

# A job keeps what it has loaded. Whatever is wrong with another release leaves it with this one.
set tuned {}
if { [module-info mode load] } {
    if { [catch { colltuneCandidate $outbox $version } tuned] } { set tuned {} }
} elseif { ([module-info mode unload] || [module-info mode remove]) && [colltuneFirst COLLTUNE_RELEASE] ne "" } {
    if { [catch { colltuneRead [colltuneFirst COLLTUNE_RELEASE] $version } tuned] } { set tuned {} }
}
if { $tuned eq "" } { set tuned [colltuneRead $own $version] }
if { [module-info mode load] && ![colltuneFits $tuned] } {
    puts stderr "the MPI library [lindex $tuned 1] is not the one that was tuned: publish a new release"
    break
}
# The shape of this job; outside of one, the largest that was tuned.
set nodes ""
set ppn ""
regexp {^[0-9]+} [colltuneFirst { SLURM_JOB_NUM_NODES SLURM_NNODES PBS_NUM_NODES }] nodes
regexp {^[0-9]+} [colltuneFirst { SLURM_NTASKS_PER_NODE SLURM_TASKS_PER_NODE PBS_NUM_PPN }] ppn
set chosen {}
foreach { n p directory variables } [lindex $tuned 3] {
    if { $nodes eq "" || $ppn eq "" || ($chosen eq "" && $n >= $nodes && $p >= $ppn) } {
        set chosen [list "[lindex $tuned 0]/$directory" $variables]
    }
}
if { $chosen ne "" } {
    foreach { name value } [lindex $chosen 1] {
        colltunePush $name [string map [list "{directory}" [lindex $chosen 0]] $value]
    }
    setenv COLLTUNE_RELEASE [lindex $tuned 0]
    setenv COLLTUNE_TUNED [lindex $chosen 0]
}
"""


def module_files(place: Path, tunings: Sequence[ReleasedTuning]) -> dict[str, bytes]:
    """By their names in the release at ``place``: one for each identity, in ``modules/lmod`` and ``modules/tcl``."""
    from jinja2 import Environment, StrictUndefined

    jinja = Environment(undefined=StrictUndefined, keep_trailing_newline=True)
    files: dict[str, bytes] = {}
    for name, found in _named(tunings):
        identity = found[0].identity
        values = {
            "about": _plain(_ABOUT.format(identity=identity)),
            "place": _plain(str(place.resolve())),
            "name": name,
            "signed": _SIGNED.format(
                release=place.name, store=_plain(str(place.resolve().parents[2])), place=_plain(str(place.resolve()))
            ),
        }
        lua, tcl = (
            jinja.from_string(text).render(values, jobs=separator.join(map(form.format, JOB_NUMBERS))).encode()
            for text, form, separator in ((_LUA, '"{}"', ", "), (_TCL, "{}", " "))
        )
        files[f"modules/lmod/colltune-tuned/{name}.lua"] = lua
        files[f"modules/tcl/colltune-tuned/{name}"] = tcl
        files[f"modules/shapes/{name}"] = _shapes(found).encode()
    return files


def _shapes(tunings: Sequence[ReleasedTuning]) -> str:
    """What a module reads of a release, a line each, without a quote or a bracket: its own, or that of a candidate."""
    lines = [f"libmpi {_plain(tunings[0].libmpi)}", f"build {_plain(tunings[0].identity.mpi_build)}"]
    for one in sorted(tunings, key=lambda one: (one.nodes * one.ppn, one.nodes)):
        lines.append(f"tuning {one.nodes} {one.ppn} {one.directory}")
        for name, value in sorted(one.variables.items()):
            lines.append(f"set {_plain(name)} {_PLACE.join(map(_plain, value.split(_PLACE)))}")
    return "\n".join(lines) + "\n"


def _named(tunings: Sequence[ReleasedTuning]) -> Iterator[tuple[str, Sequence[ReleasedTuning]]]:
    """A version of the module for each identity: MPI and version, and what it takes to tell them apart."""
    found: defaultdict[Identity, list[ReleasedTuning]] = defaultdict(list)
    for one in tunings:
        found[one.identity].append(one)
    labels = Counter(identity.label for identity in found)
    for identity, mine in sorted(found.items()):
        yield (identity.label if labels[identity.label] == 1 else f"{identity.label}-{identity.key[:8]}"), mine


def _plain(text: str) -> str:
    """``text`` without what ends a string of Lua, a word of Tcl or of a shell, or is evaluated in one."""
    return "".join(one for one in text if one.isprintable() and one not in "\"\\[]{}$'`;")
