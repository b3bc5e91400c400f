-- Lmod hooks for EESSI: whoever loads an MPI gets this site's store of colltune, and finds its tuned modules.
-- Put it into host_injections/VERSION/.lmod/SitePackage.lua of EESSI's repository; EESSI runs it after its own hooks.
-- Without EESSI: into a directory of its own, named by LMOD_PACKAGE_PATH.
local hook = require("Hook")
local store = "/shared/colltune"
local mpis = { MPICH = true, OpenMPI = true, impi = true, MVAPICH = true }

-- Lmod undoes these two when the MPI is unloaded.
local function with_store(t)
    if mpis[t.modFullName:match("^[^/]+")] then
        setenv("COLLTUNE_STORE", store)
        prepend_path("MODULEPATH", pathJoin(store, "outbox/active/modules/lmod"))
    end
end

-- Lmod keeps one function for each hook: EESSI's runs first.
local function on_load(t)
    local first = rawget(_G, "eessi_load_hook")
    if first then
        first(t)
    end
    with_store(t)
end
hook.register("load", on_load)
hook.register("unload", with_store)
