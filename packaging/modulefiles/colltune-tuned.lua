-- Lmod: makes the MPI of this site use what was tuned for it.
-- Copy the lines of `colltune env DIRECTORY` into the setenv lines below; the names here are those of MPICH.
help([[Selection of collective algorithms, tuned on this machine by colltune.
What is not proven faster than the library's default is the library's default.]])

local tuned = "/opt/colltune/tuned-64x32" -- the directory of `colltune tune --out`

-- A tuning belongs to one build of one MPI: load it with that MPI alone.
depends_on("mpich/5.0.2")
setenv("MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE", pathJoin(tuned, "mpich/mpich-coll.json"))
setenv("MPIR_CVAR_CH4_COLL_SELECTION_TUNING_JSON_FILE", pathJoin(tuned, "mpich/mpich-ch4-coll.json"))
-- Only a tuning that changes what runs inside a node has this file.
local posix = pathJoin(tuned, "mpich/mpich-posix-coll.json")
if isFile(posix) then
    setenv("MPIR_CVAR_CH4_POSIX_COLL_SELECTION_TUNING_JSON_FILE", posix)
end
