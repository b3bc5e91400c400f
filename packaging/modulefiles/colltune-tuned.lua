-- Lmod: makes the MPI of this site use what was tuned for it.
-- Copy the lines of `colltune env DIRECTORY` into the setenv lines below; the names here are those of MPICH.
help([[Selection of collective algorithms, tuned on this machine by colltune.
What is not proven faster than the library's default is the library's default.]])

local tuned = "/opt/colltune/tuned-64x32" -- the directory of `colltune tune --out`
local colltune = "/opt/colltune/bin/colltune"
local mpi = "/opt/mpich/5.0.2" -- the MPI that was tuned

-- A tuning belongs to one build of one MPI: load it with that MPI alone.
depends_on("mpich/5.0.2")
-- Since the MPI was tuned it may have been upgraded in its place. `colltune env` says so in one line, and then this module is
-- not loaded. It also asks the library whether it knows the variables below.
local check = "PATH='" .. mpi .. "/bin':$PATH '" .. colltune .. "' env '" .. tuned .. "' 2>&1 >/dev/null || echo refused"
if mode() == "load" then
    local said = capture(check)
    if said:find("refused%s*$") then
        LmodError(said)
    end
end
setenv("MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE", pathJoin(tuned, "mpich/mpich-coll.json"))
setenv("MPIR_CVAR_CH4_COLL_SELECTION_TUNING_JSON_FILE", pathJoin(tuned, "mpich/mpich-ch4-coll.json"))
-- Only a tuning that changes what runs inside a node has this file.
local posix = pathJoin(tuned, "mpich/mpich-posix-coll.json")
if isFile(posix) then
    setenv("MPIR_CVAR_CH4_POSIX_COLL_SELECTION_TUNING_JSON_FILE", posix)
end
