# Spack recipe of colltune, for Spack 1.0 and later:
#   spack repo create colltune-repo colltune && spack repo add colltune-repo/spack_repo/colltune
#   mkdir colltune-repo/spack_repo/colltune/packages/py_colltune
#   cp package.py colltune-repo/spack_repo/colltune/packages/py_colltune/
#   cp -r py_msgspec colltune-repo/spack_repo/colltune/packages/  # unless Spack has it by now
#   spack install py-colltune ^mpich

from spack_repo.builtin.build_systems.python import PythonPackage

from spack.package import *


class PyColltune(PythonPackage):
    """Tunes the collectives of an MPI library inside the job that will use them, and hands it a file that is safe."""

    license("BSD-3-Clause")

    # The folder that holds pyproject.toml: spack install --source, or spack develop, or a release's archive.
    version("main", branch="main")

    variant("predict", default=False, description="Predict a tuning for the MPI, before anything was measured")

    depends_on("c", type="build")  # the agent is compiled on first use, by the mpicc of the MPI that is tuned
    depends_on("python@3.11:", type=("build", "run"))
    depends_on("py-hatchling@1.25:", type="build")
    depends_on("py-hatch-vcs@0.4:", type="build")
    depends_on("py-numpy@1.26:", type=("build", "run"))
    depends_on("py-scipy@1.12:", type=("build", "run"))
    depends_on("py-threadpoolctl@3.2:", type=("build", "run"))
    depends_on("py-typer@0.12:", type=("build", "run"))
    depends_on("py-rich@13:", type=("build", "run"))
    depends_on("py-jinja2@3.1:", type=("build", "run"))
    depends_on("py-msgspec@0.19:", type=("build", "run"))
    depends_on("py-pyyaml@6:", type=("build", "run"))
    # Not vl-convert-python: without it the HTML page has its tables alone, and says so.
    depends_on("mpi", type=("build", "run"))

    @run_after("install", when="+predict")
    def predict(self):
        """In this package's own prefix, for that of the MPI is not ours to write; load it by `colltune env`."""
        own = join_path(self.prefix, self.spec["python"].package.purelib)
        colltune = Executable(self.prefix.bin.colltune)
        colltune.add_default_env("PYTHONPATH", ":".join(filter(None, [own, env.get("PYTHONPATH")])))
        out = join_path(self.prefix, "share", "colltune", "predicted")
        colltune("predict", "--install", "--out", out, "--mpiexec", self.spec["mpi"].prefix.bin.mpiexec)
