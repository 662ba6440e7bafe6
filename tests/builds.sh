#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Compiles what is installed and the examples, without tests, as no preset does; a warning is a
# failure. And configures without zlib, as on a host that has none: the example that wants it is
# left out, and what is left has its tests.
#
# usage: builds.sh [--all]
#   (nothing)  gcc's optimising build type, in which it sees most. The presets build three others:
#              release gcc's RelWithDebInfo, asan its Debug at -O1, tsan clang's RelWithDebInfo.
#   --all      every build type, and none, with both compilers; and what there is without zlib
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
directory=$root/build/types
compilers=(gcc)
types=(Release)
whole=no
if [ "${1-}" = --all ]; then
	compilers=(gcc clang)
	types=(Release Debug RelWithDebInfo MinSizeRel none)
	whole=yes
fi
jobs=$(nproc)
failed=0

# configure FOLDER COMPILER TYPE [OPTION ...]
configure() {
	local folder=$1 compiler=$2 type=${3#none}
	shift 3
	cmake -S "$root" -B "$folder" -G Ninja -DCMAKE_C_COMPILER="$compiler" \
		-DCMAKE_BUILD_TYPE="$type" -DMUSTER_WERROR=ON -DMUSTER_TESTS=OFF "$@"
}

report() { # NAME OUTCOME LOG SECONDS
	echo "builds: $1: $2, in $4 s"
	[ "$2" = passed ] || {
		failed=1
		grep -E -A5 'error|warning|FAILED|Error' "$3" | head -n 40 || tail -n 30 "$3"
	}
}

compile() { # COMPILER TYPE
	local folder=$directory/$1-$2 began=$SECONDS outcome=passed
	{ configure "$folder" "$1" "$2" && cmake --build "$folder" --parallel "$jobs"; } \
		>"$folder.log" 2>&1 || outcome=FAILED
	report "$1, type $2" "$outcome" "$folder.log" "$((SECONDS - began))"
}

# A pkg-config that knows no zlib.
without_zlib() {
	local folder=$directory/without-zlib began=$SECONDS outcome=passed
	cat >"$directory/pkg-config" <<-'EOF'
		#!/bin/sh
		case "$*" in *zlib*) exit 1 ;; esac
		exec pkg-config "$@"
	EOF
	chmod +x "$directory/pkg-config"
	{ configure "$folder" gcc none -DPKG_CONFIG_EXECUTABLE="$directory/pkg-config" &&
		{ [ "$whole" = no ] || cmake --build "$folder" --parallel "$jobs"; } &&
		! ninja -C "$folder" -t query digits &&
		configure "$folder" gcc none -DMUSTER_TESTS=ON &&
		(cd "$folder" && ctest -R '^unit.digits_idx$'); } \
		>"$folder.log" 2>&1 || outcome=FAILED
	grep -q "Digits cannot be learnt" "$folder.log" &&
		grep -q "unit.digits_idx (Skipped)" "$folder.log" || outcome=FAILED
	report "gcc, type none, without zlib" "$outcome" "$folder.log" "$((SECONDS - began))"
}

mkdir -p "$directory"
for compiler in "${compilers[@]}"; do
	for type in "${types[@]}"; do
		compile "$compiler" "$type"
	done
done
without_zlib
exit "$failed"
