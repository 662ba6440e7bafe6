#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The types of the Python package, which py.typed promises, hold together. The types of PyTorch are
# left out: to read them takes mypy most of a minute, and they differ from release to release.
# usage: types.sh ROOT CACHE
set -euo pipefail

command -v mypy >/dev/null || {
	echo "skipped: there is no mypy here: deploy/packages.sh test"
	exit 77
}
cd "$1/client/python"
mypy --strict --allow-untyped-calls --allow-subclassing-any --no-warn-return-any \
	--no-warn-unused-ignores --follow-imports skip --ignore-missing-imports --cache-dir "$2" \
	muster
