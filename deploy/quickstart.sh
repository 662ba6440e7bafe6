#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# From a clean clone to the point of muster in one or two minutes: builds it, trains a small network
# with five workers three times, and shows what one slow worker costs under two policies.
# usage: quickstart.sh
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$root/build/release
figures=$root/build/quickstart

fail() {
	echo "quickstart: $*" >&2
	exit 1
}

build_release() {
	"$root/deploy/packages.sh" build
	echo "quickstart: building"
	(cd "$root" && cmake --preset release -DMUSTER_TESTS=OFF -DMUSTER_WERROR=OFF && cmake --build --preset release) \
		>"$figures/build.log" 2>&1 || {
		tail -n 30 "$figures/build.log" >&2
		fail "the build failed, see $figures/build.log"
	}
}

# train NAME POLICY [DIGITS OPTION ...]: one run; its figures go to NAME.run.json, NAME.digits.json.
train() {
	local name=$1 policy=$2
	shift 2
	echo "quickstart: $name"
	"$build/tools/muster" run -n 5 --policy "$policy" --commits 200 \
		--json "$figures/$name.run.json" -- \
		"$build/client/examples/digits" --product plain --delay const:20 "$@" \
		--json "$figures/$name.digits.json" >"$figures/$name.log" 2>&1 || {
		tail -n 30 "$figures/$name.log" >&2
		fail "the run \"$name\" failed, see $figures/$name.log"
	}
}

figure() { # NAME KIND FILTER
	jq -er "$3" "$figures/$1.$2.json" || fail "$figures/$1.$2.json has no $3"
}

row() { # NAME TITLE
	local mean p99 accuracy verdicts
	mean=$(figure "$1" run .mean_step_ms)
	p99=$(figure "$1" run .p99_step_ms)
	accuracy=$(figure "$1" digits '.accuracy * 100')
	verdicts=$(figure "$1" run '[.ranks[] | "\(.counted)/\(.late)"] | join("  ")')
	printf '%-22s %9.1f ms %9.1f ms %8.1f %%   %s\n' "$2" "$mean" "$p99" "$accuracy" "$verdicts"
}

report() {
	local even slow backup
	even=$(figure bsp run .mean_step_ms)
	slow=$(figure bsp-slow run .mean_step_ms)
	backup=$(figure backup-slow run .mean_step_ms)

	printf '\n%-22s %12s %12s %10s   %s\n' "" "mean step" "p99 step" "accuracy" \
		"counted/late, ranks 0 to 4"
	row bsp "bsp"
	row bsp-slow "bsp, rank 4 slow"
	row backup-slow "backup:4, rank 4 slow"
	printf '\nOne worker of five that is ten times slower makes every step of bsp %.1f times as long;\n' \
		"$(jq -n "$slow / $even * 10 | round / 10")"
	printf 'backup:4 commits without it, at %.2f times the step of five even workers.\n' \
		"$(jq -n "$backup / $even * 100 | round / 100")"
}

if [ "$#" -ne 0 ]; then
	sed -n '3,5s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
	[ "$1" = --help ] && exit 0
	echo "quickstart: it takes no arguments" >&2
	exit 2
fi
mkdir -p "$figures"
build_release
train bsp bsp
train bsp-slow bsp --delay 4:const:200
train backup-slow backup:4 --delay 4:const:200
report
