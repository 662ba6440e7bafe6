#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The one list of Debian packages. Installs what is missing of a set, and nothing else.
# usage: packages.sh build|test|cross|bench|package
set -euo pipefail

build_packages=(
	gcc libc6-dev cmake ninja-build pkg-config
	libconfig-dev libjansson-dev zlib1g-dev libssl-dev
	libibverbs-dev librdmacm-dev ibverbs-providers
	libopenblas-serial-dev # the example digits multiplies with it; nothing that is installed does
	jq # quickstart.sh reads the runs' figures with it
)
test_packages=(
	"${build_packages[@]}"
	libcunit1-dev
	clang libclang-rt-14-dev g++ # thread sanitizer; the header as C++
	lld # links the programs with sanitizers in half the time
	spin # the protocol in every order, server/core/model
	binutils clang-format-14 shellcheck python3 python3-numpy python3-torch
	python3-venv python3-pip python3-setuptools python3-wheel # pip installs client/python
	mypy # the types of the Python package
	openssl # a stranger that speaks TLS
	qemu-system-x86 busybox-static cpio kmod # machines with soft-RoCE, tests/vm
	iproute2 rdma-core ibverbs-utils rdmacm-utils perftest procps
	systemd # systemd-analyze judges the unit
)
# The kernels for another processor, tests/neon: for tests/run.sh --all.
cross_packages=(
	"${test_packages[@]}"
	gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user
)
# What muster is measured beside, tests/bench/compare.sh; nothing is built or tested with it.
bench_packages=(
	"${build_packages[@]}"
	libcunit1-dev # the drivers are built with the tests
	openmpi-bin libopenmpi-dev python3 python3-torch
)
# Debian packages out of the tree, tried in a fresh Debian: debian.sh.
package_packages=(
	"${build_packages[@]}"
	dh-python
	dpkg-dev debhelper fakeroot lintian mmdebstrap systemd-container
)

fail() {
	echo "packages: $*" >&2
	exit 1
}

is_installed() {
	[ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

# Runs apt-get as root, or through sudo.
apt() {
	if [ "$(id -u)" -eq 0 ]; then
		env DEBIAN_FRONTEND=noninteractive apt-get -qq "$@"
	else
		sudo env DEBIAN_FRONTEND=noninteractive apt-get -qq "$@"
	fi
}

case ${1-} in
build) wanted=("${build_packages[@]}") ;;
test) wanted=("${test_packages[@]}") ;;
cross) wanted=("${cross_packages[@]}") ;;
bench) wanted=("${bench_packages[@]}") ;;
package) wanted=("${package_packages[@]}") ;;
*)
	echo "packages: usage: packages.sh build|test|cross|bench|package" >&2
	exit 2
	;;
esac
command -v dpkg-query >/dev/null ||
	fail "this is no Debian; install what these packages hold by other means: ${wanted[*]}"

missing=()
for package in "${wanted[@]}"; do
	is_installed "$package" || missing+=("$package")
done
if [ "${#missing[@]}" -eq 0 ]; then
	echo "packages: all ${#wanted[@]} of the $1 set are installed"
	exit 0
fi

if [ "$(id -u)" -ne 0 ] && ! command -v sudo >/dev/null; then
	fail "not root and no sudo; as root run: apt-get install ${missing[*]}"
fi
echo "packages: installing ${missing[*]}"
apt update || fail "apt-get update failed; is there a way to a Debian mirror?"
apt install -y --no-install-recommends "${missing[@]}" >/dev/null ||
	fail "apt-get could not install ${missing[*]}"
