#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What is installed can be used: a program outside the tree is built against a temporary prefix,
# once through pkg-config and once through find_package, and run. The prefix is moved before. Then
# README.md is taken at its word: readme.py runs what it shows.
# usage: package.sh BUILD_DIR COMPILER
set -euo pipefail

build=$1
compiler=$2
here=$(cd "$(dirname "$0")" && pwd)
stranger=$here/package
readme=$here/../../README.md
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

fail() {
	echo "package: $*" >&2
	exit 1
}

# The one match of a pattern below the prefix.
installed() {
	local found
	found=$(find "$prefix" -path "*/$1")
	[ -n "$found" ] || fail "$1 was not installed"
	echo "$found"
}

prefix=$scratch/first
cmake --install "$build" --prefix "$prefix" >/dev/null
mv "$prefix" "$scratch/usr"
prefix=$scratch/usr

installed include/muster/muster.h >/dev/null
installed include/muster/state.h >/dev/null
library=$(installed libmuster.so.0)
LD_LIBRARY_PATH=$(dirname "$library")
export LD_LIBRARY_PATH
readelf -d "$library" | grep -q "SONAME.*\[libmuster\.so\.0\]" ||
	fail "the soname is not libmuster.so.0"
for file in "$library" "$(installed bin/muster)" "$(installed bin/musterd)"; do
	if readelf -d "$file" | grep "NEEDED" | grep -E "ibverbs|rdmacm"; then
		fail "$file does not load on a host without rdma-core"
	fi
	if readelf -d "$file" | grep "NEEDED" | grep -i "blas"; then
		fail "$file wants OpenBLAS, which is for the example digits alone"
	fi
done

echo "through pkg-config:"
PKG_CONFIG_PATH=$(dirname "$(installed pkgconfig/muster.pc)")
export PKG_CONFIG_PATH
read -ra flags < <(pkg-config --cflags --libs muster)
"$compiler" -std=c17 -Wall -Wextra -Werror "$stranger/stranger.c" "${flags[@]}" -o "$scratch/by-pc"
"$scratch/by-pc"

echo "through find_package:"
cmake -S "$stranger" -B "$scratch/build" -DCMAKE_C_COMPILER="$compiler" \
	-DCMAKE_PREFIX_PATH="$prefix" >/dev/null
cmake --build "$scratch/build" >/dev/null
"$scratch/build/stranger"

for program in muster musterd; do
	"$(installed "bin/$program")" --help >/dev/null || fail "$program --help failed"
done

echo "README.md:"
/usr/bin/python3 "$here/readme.py" "$readme" "$prefix" "$(command -v "$compiler")"
echo "installed: library, header, both ways to find them, programs that run"
