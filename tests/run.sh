#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Builds and tests muster in its configurations (presets of CMakePresets.json), each in
# build/<preset>. Goes through all of them, then fails if any failed or if one ran no test.
#
# usage: run.sh [--quick | --all]
#   (nothing)  release, asan, tsan, without tests that are labelled slow
#   --quick    release, and of its tests the quick ones
#   --all      also clang, whose fuzzers are guided, two minutes each; 50000 simulated worlds
#              of each kind, or MUSTER_WORLDS of them; larger models; the kernels for aarch64,
#              emulated
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
jobs=2
presets=(release asan tsan)
selection=()
settings=(-DMUSTER_TESTS=ON -DMUSTER_WORLDS=1000 -DMUSTER_MODEL_DEEP=OFF)
summary=()
failed=0

export UBSAN_OPTIONS=print_stacktrace=1
export TSAN_OPTIONS=halt_on_error=1

usage() {
	sed -n '3,12s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
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

# Whatever happens in a configuration, the next one is tried.
build() {
	local preset=$1 log=$root/build/$1.log

	say "$preset: building"
	(cd "$root" && cmake --preset "$preset" "${settings[@]}" &&
		cmake --build --preset "$preset" --parallel "$jobs") >"$log" 2>&1 || {
		grep -E -A5 'error|FAILED|Error' "$log" | head -n 60 || tail -n 30 "$log"
		return 1
	}
}

# A count in the head of a JUnit file; 0 where there is none.
count_of() {
	local found
	found=$(grep -o -m 1 "[[:space:]]$2=\"[0-9]*\"" "$1" | tr -cd 0-9) || true
	echo "${found:-0}"
}

# Did a test in a machine with soft-RoCE run? Of one that was skipped the file says so.
ran_on_rdma() {
	grep '<testcase name="vm\.' "$1" | grep -q 'status="run"'
}

# The style tests read the checkout, so one configuration is enough for them. What is labelled slow
# only looks again, or more closely, at what others look at.
filter_of() {
	local without=()

	[ "$1" = release ] || without+=(tidy)
	[ "$elsewhere" = yes ] || without+=(slow)
	[ "${#without[@]}" -eq 0 ] || (IFS='|' && echo "-LE ${without[*]}")
}

run_tests() {
	local preset=$1 junit=$root/build/$1/junit.xml rc=0 total bad skipped
	local launcher filter

	read -ra launcher < <(launcher_of "$preset") || true
	read -ra filter < <(filter_of "$preset") || true
	say "$preset: testing"
	rm -f "$junit"
	(cd "$root" && "${launcher[@]}" ctest --preset "$preset" --parallel "$jobs" \
		--no-tests=error --output-junit "$junit" "${filter[@]}" "${selection[@]}") || rc=$?
	[ -f "$junit" ] || touch "$junit"
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
		summary+=("$preset: FAILED, $bad of $total tests failed, $skipped skipped")
		return 1
	fi
	summary+=("$preset: passed, $((total - skipped)) tests, $skipped skipped")
}

configuration() {
	local preset=$1 began=$SECONDS

	if ! build "$preset"; then
		summary+=("$preset: FAILED, it does not build, see build/$preset.log")
		failed=1
	elif ! run_tests "$preset"; then
		failed=1
	fi
	summary[-1]+=", in $((SECONDS - began)) s"
}

# The kernels for another processor: a project of its own, and few tests.
neon() {
	local directory=$root/build/neon began=$SECONDS outcome=passed

	say "neon: building and testing"
	{ cmake -S "$root/tests/neon" -B "$directory" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo &&
		cmake --build "$directory" --parallel "$jobs" &&
		ctest --test-dir "$directory" --parallel "$jobs" --no-tests=error \
			--output-on-failure; } >"$directory.log" 2>&1 || {
		tail -n 30 "$directory.log"
		outcome=FAILED
		failed=1
	}
	summary+=("neon: $outcome, see build/neon.log, in $((SECONDS - began)) s")
}

elsewhere=no
packages="test"
case ${1-} in
"") ;;
--quick)
	presets=(release)
	selection=(-L quick)
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
for preset in "${presets[@]}"; do
	configuration "$preset"
done
if [ "$elsewhere" = yes ]; then
	neon
fi
for line in "${summary[@]}"; do
	say "$line"
done
exit "$failed"
