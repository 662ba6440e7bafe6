#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Builds muster in its configurations (presets of CMakePresets.json), each in build/<preset>, and
# runs the tests of all of them in one run of ctest (one_run.py). A configuration that does not
# build keeps no other from being tested. Fails if any failed or if one ran no test.
#
# usage: run.sh [--quick | --all] [--seed N]
#   (nothing)  release, asan, tsan, without tests that are labelled slow; and a build that no
#              preset makes, without tests (builds.sh)
#   --quick    release, and of its tests the quick ones
#   --all      also clang, whose fuzzers are guided, two minutes each; all build types with both
#              compilers; 50000 simulated worlds of each kind, or MUSTER_WORLDS of them; larger
#              models; the kernels for aarch64, emulated
#   --seed     other worlds, histories, mutants and timings than in every run; what only they find
#              is for tests/found.md
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
jobs=$(nproc)
# Most tests wait most of the time, so more run at once than there are processors; the others take
# several of these slots (cmake/muster.cmake).
slots=$((5 * (jobs < 8 ? jobs : 8)))
presets=(release asan tsan)
selection=(--slots "$slots")
settings=(-DMUSTER_TESTS=ON -DMUSTER_WORLDS=500 -DMUSTER_MODEL_DEEP=OFF)
summary=()
failed=0

export UBSAN_OPTIONS=print_stacktrace=1
# By default each program that has threads sleeps for a second before it ends, so that a race at its
# end shows; threads here do something every few milliseconds.
export TSAN_OPTIONS=halt_on_error=1:atexit_sleep_ms=100

usage() {
	sed -n '3,15s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
}

say() {
	echo "run: $*"
}

# Notes how a part has ended, and fails the run where it has failed.
note() {
	local part=$1 outcome=$2

	summary+=("$part: $outcome")
	[ "${outcome#FAILED}" = "$outcome" ] || failed=1
}

configure() {
	(cd "$root" && cmake --preset "$1" "${settings[@]}") >"$root/build/$1.log" 2>&1
}

# After the process of its configure().
build() {
	local preset=$1 log=$root/build/$1.log

	say "$preset: building"
	{ wait "$2" &&
		cmake --build "$root/build/$preset" --parallel "$jobs" >>"$log" 2>&1; } || {
		grep -E -A5 'error|FAILED|Error' "$log" | head -n 60 || tail -n 30 "$log"
		return 1
	}
}

# Builds all, and leaves in `built` those that can be tested. All are configured at once, for that
# takes one processor each.
build_all() {
	local preset began
	local -A configuring

	for preset in "${presets[@]}"; do
		configure "$preset" &
		configuring[$preset]=$!
	done
	built=()
	for preset in "${presets[@]}"; do
		began=$SECONDS
		if build "$preset" "${configuring[$preset]}"; then
			built+=("$preset")
			note "$preset" "built in $((SECONDS - began)) s"
		else
			note "$preset" "FAILED, it does not build, see build/$preset.log"
		fi
	done
}

# Builds that no preset makes; with --all every type. It does so while tests run, of which most wait
# most of the time, and gives way to them.
build_types() {
	local log=$root/build/types.log all=()

	[ "$elsewhere" = no ] || all=(--all)
	renice -n 19 "$BASHPID" >/dev/null
	"$root/tests/builds.sh" "${all[@]}" >"$log" 2>&1
}

run_tests() {
	local began=$SECONDS rc=0

	[ "${#built[@]}" -gt 0 ] || return 0
	say "testing ${built[*]}"
	"$root/tests/one_run.py" "${selection[@]}" "${built[@]}" || rc=$?
	if [ "$rc" -eq 0 ]; then
		note tests "passed in $((SECONDS - began)) s"
	else
		note tests "FAILED, see above, in $((SECONDS - began)) s"
	fi
}

# The kernels for another processor: a project of its own, and few tests.
neon() {
	local directory=$root/build/neon began=$SECONDS outcome=passed

	say "neon: building and testing"
	{ cmake -S "$root/tests/neon" -B "$directory" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo \
		-DMUSTER_WERROR=ON &&
		cmake --build "$directory" --parallel "$jobs" &&
		ctest --test-dir "$directory" --parallel "$slots" --no-tests=error \
			--output-on-failure; } >"$directory.log" 2>&1 || {
		tail -n 30 "$directory.log"
		outcome=FAILED
	}
	note neon "$outcome, see build/neon.log, in $((SECONDS - began)) s"
}

elsewhere=no
types=yes
packages="test"
words=()
seed=""
while [ $# -gt 0 ]; do
	if [ "$1" = --seed ] && [[ ${2-} =~ ^[1-9][0-9]{0,8}$ ]]; then
		seed=$2
		shift
	else
		words+=("$1")
	fi
	shift
done
settings+=(-DMUSTER_SEED="$seed")
set -- "${words[@]}"
case ${1-} in
"") ;;
--quick)
	presets=(release)
	selection+=(--label quick)
	types=no
	;;
--all)
	presets=(release asan tsan clang)
	settings+=(-DMUSTER_FUZZ_SECONDS=120 -DMUSTER_WORLDS="${MUSTER_WORLDS:-50000}"
		-DMUSTER_MODEL_DEEP=ON)
	selection+=(--slow)
	export MUSTER_WHOLE=1 # for digest.py
	elsewhere=yes
	packages=cross
	;;
*)
	usage
	exit 2
	;;
esac
if [ -n "${CI-}" ] && [ "$types" = yes ]; then
	selection+=(--ci)
fi

"$root/deploy/packages.sh" "$packages"
mkdir -p "$root/build"
build_all
if [ "$types" = yes ]; then
	say "types: building"
	build_types &
	building=$!
fi
run_tests
if [ "$types" = yes ]; then
	if wait "$building"; then
		note types passed
	else
		cat "$root/build/types.log"
		note types "FAILED, see build/types.log"
	fi
fi
if [ "$elsewhere" = yes ]; then
	neon
fi
summary+=("all in $SECONDS s")
for line in "${summary[@]}"; do
	say "$line"
done
exit "$failed"
