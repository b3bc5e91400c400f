"""EasyBuild hooks: the module of every MPI that is built names this site's store and finds its tuned modules.

    COLLTUNE_STORE=/shared/colltune eb --hooks=colltune_hooks.py MPICH-5.0.2-GCC-14.2.0.eb

The module sets COLLTUNE_STORE, to which jobs then add, and puts the modules of the active release on MODULEPATH. It
loads none of them: `module load colltune-tuned/mpich-5.0.2` refuses a library that was not tuned, and the MPI should
load all the same.
"""

import os

from easybuild.tools.build_log import EasyBuildError, print_msg

MPIS = ("MPICH", "OpenMPI", "impi", "MVAPICH", "MVAPICH2")


def pre_module_hook(self, *args, **kwargs):
    """Called before the module file of ``self``, an EasyBlock, is written."""
    if self.name not in MPIS:
        return
    store = os.environ.get("COLLTUNE_STORE", "")
    if not os.path.isfile(os.path.join(store, "site.json")):
        raise EasyBuildError("COLLTUNE_STORE (%r) is no store: colltune site init DIRECTORY, and export its path", store)
    store = os.path.abspath(store)
    modules = os.path.join(store, "outbox", "active", "modules")
    self.cfg.update("modextravars", {"COLLTUNE_STORE": store})
    if self.module_generator.SYNTAX == "Lua":
        self.cfg.update("modluafooter", 'prepend_path("MODULEPATH", "%s")\n' % os.path.join(modules, "lmod"))
    else:
        self.cfg.update("modtclfooter", "prepend-path MODULEPATH {%s}\n" % os.path.join(modules, "tcl"))
    print_msg("the module of %s names the store %s", self.name, store)
