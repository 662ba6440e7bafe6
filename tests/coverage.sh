#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Measures which lines of the deciding code the tests execute: builds the preset "coverage", runs
# the tests, but for what needs a machine or a fuzzer, and prints a table per file. Fails if a
# directory is below the limit, or a test fails.
#
# usage: coverage.sh [BUILD]      or   cmake --build build/coverage --target coverage
#   BUILD  a folder configured with MUSTER_COVERAGE; by default build/coverage, made if need be
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=${1-$root/build/coverage}
jobs=2
limit=95
# Left out: what reads the checkout, wants a machine or RDMA, or is long and adds nothing here.
labels='tidy|vm|fuzz|bench|sim|model'
names='sim|verbs|kill|at_any_moment|tool_|digits|package|lesson|faults\.(status|doctor|run)'
decides=(server/core client/core)                            # must reach the limit
moves=(server client common/transport common/transport/shm) # is printed beside them

if [ $# -gt 1 ] || [[ ${1-} == -* ]]; then
	sed -n '3,9s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
	exit 2
fi
if [ $# -eq 0 ]; then
	(cd "$root" && cmake --preset coverage >/dev/null)
fi
cmake --build "$build" --parallel "$jobs" | tail -n 1
find "$build" -name '*.gcda' -delete # counts of other runs, or of sources as they were
rc=0
(cd "$build" && ctest --parallel "$jobs" --no-tests=error --label-exclude "$labels" \
	--exclude-regex "$names" --output-on-failure) |
	{ grep -vE '^ +Start | Passed ' || true; } || rc=$?
/usr/bin/python3 "$root/tests/coverage.py" "$build" --limit 0 "${moves[@]}"
/usr/bin/python3 "$root/tests/coverage.py" "$build" --limit "$limit" --lines "${decides[@]}"
exit "$rc"
