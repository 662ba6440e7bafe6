#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Builds and tests muster in its configurations (presets of CMakePresets.json), each in
# build/<preset>. Goes through all of them, then fails if any failed or if one ran no test.
#
# usage: run.sh [--quick | --all]
#   (nothing)  release, asan, tsan, without tests that are labelled slow, asan and tsan also without
#              those labelled tidy and bench, tsan without those labelled one-thread; and builds
#              that no preset makes, without tests (builds.sh)
#   --quick    release, and of its tests the quick ones
#   --all      also clang, whose fuzzers are guided, two minutes each; all build types with both
#              compilers; 50000 simulated worlds of each kind, or MUSTER_WORLDS of them; larger
#              models; the kernels for aarch64, emulated
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
jobs=$(nproc)
# Most tests wait most of the time, so more run at once than there are processors; the others take
# several of these slots (cmake/muster.cmake).
slots=$((4 * (jobs < 8 ? jobs : 8)))
presets=(release asan tsan)
selection=()
settings=(-DMUSTER_TESTS=ON -DMUSTER_WORLDS=1000 -DMUSTER_MODEL_DEEP=OFF)
summary=()
failed=0

export UBSAN_OPTIONS=print_stacktrace=1
# By default each program that has threads sleeps for a second before it ends, so that a race at its
# end shows; threads here do something every few milliseconds.
export TSAN_OPTIONS=halt_on_error=1:atexit_sleep_ms=100

usage() {
	sed -n '3,13s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
}

say() {
	echo "run: $*"
}

# The thread sanitizer of clang 14 cannot place its shadow where the kernel scatters mappings
# widely, so it runs without address randomisation where that may be asked for.
launcher_of() {
	if [ "$1" = tsan ] && setarch "$(uname -m)" -R true 2>/dev/null; then
		echo "setarch $(uname -m) -R"
	fi
}

build() {
	local preset=$1 log=$root/build/$1.log

	say "$preset: building"
	(cd "$root" && cmake --preset "$preset" "${settings[@]}" &&
		cmake --build --preset "$preset" --parallel "$jobs") >"$log" 2>&1 || {
		grep -E -A5 'error|FAILED|Error' "$log" | head -n 60 || tail -n 30 "$log"
		return 1
	}
}

# Builds that no preset makes; with --all every type.
build_types() {
	local log=$root/build/types.log all=()

	[ "$elsewhere" = no ] || all=(--all)
	say "types: building"
	"$root/tests/builds.sh" "${all[@]}" >"$log" 2>&1 || {
		cat "$log"
		return 1
	}
}

# Builds all, one after the other; whatever happens to one, the next is tried. All but the first are
# built while others are tested, of which most wait most of the time, and give way to them. Says for
# wait_built() how each ended, and in how many seconds.
build_all() {
	local preset began=$SECONDS outcome

	for preset in "${presets[@]}"; do
		outcome=passed
		build "$preset" >&2 || outcome=FAILED
		echo "$outcome $((SECONDS - began))"
		began=$SECONDS
		renice -n 19 "$BASHPID" >/dev/null
	done
	[ "$types" = yes ] || return 0
	outcome=passed
	build_types >&2 || outcome=FAILED
	echo "$outcome $((SECONDS - began))"
}

# Waits for the next of build_all(), and sets `built` to its seconds. Did it succeed?
wait_built() {
	local outcome=none

	read -r outcome built <&3 || built=0
	[ "$outcome" = passed ]
}

# A count in the head of a JUnit file; 0 where there is none.
count_of() {
	local found
	found=$(grep -o -m 1 "[[:space:]]$2=\"[0-9]*\"" "$1" | tr -cd 0-9) || true
	echo "${found:-0}"
}

# The ten slowest tests of a JUnit file, and the time that all took one after the other.
print_slowest() {
	local times
	times=$(sed -n 's/.*<testcase name="\([^"]*\)".* time="\([0-9.]*\)".*/\2 \1/p' "$2" |
		sort -rn)
	say "$1: the slowest tests, of $(awk '{ sum += $1 } END { print int(sum) }' <<<"$times") s:"
	head -n 10 <<<"$times" | awk '{ printf "run:   %7.1f s  %s\n", $1, $2 }'
}

# Machines that did not boot or stood still, so that their test was tried again: its output says so.
second_tries() {
	local count
	count=$(grep -c 'lab: second try' "$1") || true
	[ "$count" -eq 0 ] || echo ", $count machines failed or stood still and had a second try"
}

# Did a test in a machine with soft-RoCE run? Of one that was skipped the file says so.
ran_on_rdma() {
	grep '<testcase name="vm\.' "$1" | grep -q 'status="run"'
}

# The style tests read the checkout, and the tests of benchmarks their scripts, so one configuration
# is enough for them. A data race takes two threads. What is labelled slow only looks again, or more
# closely, at what others look at.
filter_of() {
	local without=()

	[ "$1" = release ] || without+=(tidy bench)
	[ "$1" != tsan ] || without+=(one-thread)
	[ "$elsewhere" = yes ] || without+=(slow)
	[ "${#without[@]}" -eq 0 ] || (IFS='|' && echo "-LE ${without[*]}")
}

run_tests() {
	local preset=$1 junit=$root/build/$1/junit.xml rc=0 total bad skipped again
	local launcher filter

	read -ra launcher < <(launcher_of "$preset") || true
	read -ra filter < <(filter_of "$preset") || true
	say "$preset: testing"
	rm -f "$junit"
	(cd "$root" && "${launcher[@]}" ctest --preset "$preset" --parallel "$slots" \
		--no-tests=error --test-output-size-passed 1000000 \
		--output-junit "$junit" "${filter[@]}" "${selection[@]}" 3<&-) || rc=$?
	[ -f "$junit" ] || touch "$junit"
	print_slowest "$preset" "$junit"
	again=$(second_tries "$junit")
	total=$(count_of "$junit" tests)
	bad=$(count_of "$junit" failures)
	skipped=$(($(count_of "$junit" skipped) + $(count_of "$junit" disabled)))
	if [ "$((total - skipped))" -le 0 ]; then
		summary+=("$preset: FAILED, no test ran, $skipped skipped")
		return 1
	fi
	if [ -n "${CI-}" ] && [ "$preset" = release ] && [ "${#selection[@]}" -eq 0 ] &&
		! ran_on_rdma "$junit"; then
		summary+=("$preset: FAILED, every test over RDMA was skipped (tests/vm/README.md)")
		return 1
	fi
	if [ "$rc" -ne 0 ]; then
		summary+=("$preset: FAILED, $bad of $total tests failed, $skipped skipped$again")
		return 1
	fi
	summary+=("$preset: passed, $((total - skipped)) tests, $skipped skipped$again")
}

configuration() {
	local preset=$1 built=0 began

	if ! wait_built; then
		summary+=("$preset: FAILED, it does not build, see build/$preset.log")
		failed=1
		return
	fi
	began=$SECONDS
	run_tests "$preset" || failed=1
	summary[-1]+=", in $((SECONDS - began)) s; built in $built s"
}

other_types() {
	local built=0 outcome=passed

	wait_built || {
		outcome=FAILED
		failed=1
	}
	summary+=("types: $outcome, see build/types.log; built in $built s")
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
		failed=1
	}
	summary+=("neon: $outcome, see build/neon.log, in $((SECONDS - began)) s")
}

elsewhere=no
types=yes
packages="test"
case ${1-} in
"") ;;
--quick)
	presets=(release)
	selection=(-L quick)
	types=no
	;;
--all)
	presets=(release asan tsan clang)
	settings+=(-DMUSTER_FUZZ_SECONDS=120 -DMUSTER_WORLDS="${MUSTER_WORLDS:-50000}"
		-DMUSTER_MODEL_DEEP=ON)
	elsewhere=yes
	packages=cross
	;;
*)
	usage
	exit 2
	;;
esac

"$root/deploy/packages.sh" "$packages"
mkdir -p "$root/build"
exec 3< <(build_all)
for preset in "${presets[@]}"; do
	configuration "$preset"
done
if [ "$types" = yes ]; then
	other_types
fi
if [ "$elsewhere" = yes ]; then
	neon
fi
summary+=("all in $SECONDS s")
for line in "${summary[@]}"; do
	say "$line"
done
exit "$failed"
