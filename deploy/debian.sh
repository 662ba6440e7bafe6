#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Builds Debian packages of this tree: libmuster0, libmuster-dev, muster, python3-muster. The build
# is in a temporary folder; the tree is only read. `packages.sh package` installs what this needs.
#
# usage: debian.sh build [FOLDER]   leaves the packages in FOLDER, build/debian by default
#        debian.sh try [FOLDER]     looks for lintian's errors in them, installs them in a fresh
#                                   Debian, uses them there, boots it, uses the unit, purges them;
#                                   takes root, and a mirror that apt reaches
# Exit status 77: it cannot be done here, and nothing was found wrong.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

say() {
	echo "debian: $*"
}

fail() {
	echo "debian: $*" >&2
	exit 1
}

usage() {
	sed -n '3,11s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
}

need() {
	local tool
	for tool in "$@"; do
		command -v "$tool" >/dev/null && continue
		say "skipped: there is no $tool here: deploy/packages.sh package"
		exit 77
	done
}

# What git knows of, or would take; without git all but what was built.
list_tree() {
	if git -C "$root" rev-parse --is-inside-work-tree >/dev/null 2>&1; then
		git -C "$root" ls-files -z --cached --others --exclude-standard --deduplicate
	else
		(cd "$root" && find . -path ./build -prune -o -type f -print0)
	fi
}

copy_tree() {
	mkdir "$source"
	list_tree | tar -C "$root" --null --ignore-failed-read --files-from - -c | tar -C "$source" -x
	cp -r "$source/deploy/debian" "$source/debian"
}

check_version() {
	local tree package
	tree=$(sed -n 's/^project(muster VERSION \([0-9.]*\).*/\1/p' "$root/CMakeLists.txt")
	package=$(dpkg-parsechangelog -l "$source/debian/changelog" -S Version)
	[ "$tree" = "$package" ] ||
		fail "CMakeLists.txt has version $tree, and deploy/debian/changelog $package"
}

build_packages() {
	say "building"
	(cd "$source" && dpkg-buildpackage --build=binary --no-sign) >"$folder/build.log" 2>&1 || {
		tail -n 30 "$folder/build.log" >&2
		fail "the build failed, see $folder/build.log"
	}
	rm -f "$folder"/*.deb "$folder"/*.changes "$folder"/*.buildinfo
	mv "$scratch"/*.deb "$scratch"/*.changes "$scratch"/*.buildinfo "$folder"
	(cd "$folder" && ls -s -h -- *.deb)
}

look_for_errors() {
	say "lintian"
	# The packages are of this tree, and have no maintainer who could be written to.
	lintian --allow-root --fail-on error \
		--suppress-tags bogus-mail-host,bogus-mail-host-in-debian-changelog \
		"$folder"/*.changes || fail "lintian has found errors"
}

inside() {
	chroot "$fresh" "$@"
}

# A fresh Debian with the packages, and with what a program is built with that uses them.
make_fresh() {
	say "installing them in a fresh Debian"
	mkdir "$scratch/try"
	cp "$folder"/*.deb "$root/client/examples/lessons/01_push_pull.c" "$scratch/try"
	cp "$root/deploy/debian/try.sh" "$scratch/try/packages.sh"
	cp "$root/deploy/debian/try.py" "$scratch/try/worker.py"
	cp "$root/deploy/systemd/try.sh" "$scratch/try/unit.sh"
	mmdebstrap --quiet --variant=minbase \
		--include=gcc,libc6-dev,pkg-config,libnss-systemd,systemd-sysv,dbus \
		--customize-hook="mkdir \"\$1/try\"" \
		--customize-hook="sync-in $scratch/try /try" \
		--customize-hook="chroot \"\$1\" sh -c 'apt-get install -qq -y /try/*.deb >/dev/null'" \
		bookworm "$fresh" || fail "a fresh Debian with the packages cannot be made"
}

# Boots the fresh Debian, which ends with the unit's trial.
boot() {
	local flags=(--quiet --private-network --boot)

	[ -d /run/systemd/system ] || flags+=(--register=no --keep-unit)
	cat >"$fresh/etc/systemd/system/try.service" <<-'UNIT'
		[Unit]
		SuccessAction=exit
		FailureAction=exit-force
		[Service]
		Type=oneshot
		ExecStart=/try/unit.sh /try/push_pull
		StandardOutput=append:/try/said
		StandardError=append:/try/said
	UNIT
	systemd-nspawn "${flags[@]}" --directory "$fresh" systemd.unit=try.service \
		>"$scratch/boot" 2>&1 || true # of the end of a container it knows more than one code
	cat "$fresh/try/said" || fail "it does not boot: $(tail -n 20 "$scratch/boot")"
	grep -q "^try: a job ran" "$fresh/try/said" || fail "the unit does not work"
}

try_packages() {
	make_fresh
	say "using them"
	inside /try/packages.sh || fail "the packages do not work"
	say "booting"
	boot
	say "purging them"
	inside apt-get -qq -y -o Dpkg::Use-Pty=0 purge \
		python3-muster muster libmuster-dev libmuster0 >/dev/null ||
		fail "they cannot be purged"
	[ ! -e "$fresh/usr/bin/musterd" ] || fail "musterd was left"
	[ ! -e "$fresh/usr/lib/python3/dist-packages/muster" ] || fail "the Python module was left"
}

case ${1-}:$# in
-h:1 | --help:1)
	usage
	exit 0
	;;
build:[12] | try:[12]) ;;
*)
	usage >&2
	exit 2
	;;
esac

mkdir -p "${2-$root/build/debian}"
folder=$(cd "${2-$root/build/debian}" && pwd)
scratch=$(mktemp -d)
source=$scratch/muster
fresh=$scratch/fresh
trap 'rm -rf --one-file-system "$scratch"' EXIT
if [ "$1" = build ]; then
	need dpkg-buildpackage dh
	copy_tree
	check_version
	build_packages
else
	need lintian mmdebstrap systemd-nspawn
	if [ "$(id -u)" -ne 0 ]; then
		say "skipped: only root can install packages and boot a system in a folder"
		exit 77
	fi
	look_for_errors
	try_packages
fi
