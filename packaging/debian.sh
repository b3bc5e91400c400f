#!/bin/sh
# Builds the Debian package of this source tree into the folder given, and looks at it with lintian.
#
#     packaging/debian.sh ../deb
#
# Needs debhelper, dh-python, pybuild-plugin-pyproject, lintian, and hatchling and hatch-vcs as of pyproject.toml: where
# the distribution's are older, give PYTHONPATH of an environment that has them. So build dependencies are not checked.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$1"
cd "$1"
version=$(dpkg-parsechangelog -l "$root/packaging/debian/changelog" -S Version)
upstream=${version%-*}
(cd "$root" && SETUPTOOLS_SCM_PRETEND_VERSION=$upstream python3 -m hatchling build -t sdist -d "$OLDPWD")
mv "colltune-$upstream.tar.gz" "colltune_$upstream.orig.tar.gz"
tar xf "colltune_$upstream.orig.tar.gz"
cp -r "$root/packaging/debian" "colltune-$upstream/debian"
(cd "colltune-$upstream" && dpkg-buildpackage -us -uc -d --build=full)
lintian --fail-on error,warning "colltune_${version}_"*.changes
