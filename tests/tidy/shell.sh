#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Every shell script parses and passes shellcheck. usage: shell.sh ROOT
set -euo pipefail

cd "$1"
mapfile -t scripts < <(
	find .ci deploy tests tools \( -name "*.sh" -o -path ".ci/*" \) -type f | sort
)
if [ "${#scripts[@]}" -eq 0 ]; then
	echo "nothing to check: is this the root of a checkout?"
	exit 1
fi
for script in "${scripts[@]}"; do
	bash -n "$script"
done
if ! command -v shellcheck >/dev/null; then
	echo "skipped: shellcheck is not installed (Debian package shellcheck)"
	exit 77
fi
shellcheck "${scripts[@]}"
echo "${#scripts[@]} scripts, 0 complaints"
