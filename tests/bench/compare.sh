#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Measures muster beside Open MPI and Gloo, in turn, and prints tables: builds what that takes in
# --build DIR (default build/release, configured if need be), then hands on to compare.py.
# compare.sh --help has the options, README.md beside this file what the figures mean.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
python=/usr/bin/python3
build=$root/build/release
jobs=2
rest=()

while [ $# -gt 0 ]; do
	case $1 in
	--build)
		build=${2?"--build takes a folder"}
		shift
		;;
	--build=*) build=${1#*=} ;;
	-h | --help) exec "$python" "$root/tests/bench/compare.py" --help ;;
	*) rest+=("$1") ;;
	esac
	shift
done

if [ ! -f "$build/CMakeCache.txt" ] && [ "$build" = "$root/build/release" ]; then
	(cd "$root" && cmake --preset release -DMUSTER_TESTS=ON >/dev/null)
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# Configured again, for Open MPI may have come since.
{ cmake "$build" && cmake --build "$build" --parallel "$jobs" --target bench_peers; } \
	>"$log" 2>&1 || {
	tail -n 30 "$log" >&2
	echo "compare: $build does not build; is it configured with MUSTER_TESTS=ON?" >&2
	exit 1
}
"$python" "$root/tests/bench/compare.py" --build "$build" "${rest[@]}"
