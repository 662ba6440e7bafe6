#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Soft-RoCE: an RDMA device out of an ordinary network interface, for trying muster's verbs
# transport where no RDMA card is. Correct, not fast. It is gone after a reboot.
#
# usage: soft-roce.sh up IFACE [NAME]   loads modules, makes device NAME (rxe0) over IFACE, checks
#        soft-roce.sh check [NAME]      is it there, active, and does a write through it arrive?
#        soft-roce.sh down [NAME]       takes it away; the modules stay
# MUSTER=FILE is the muster that tries the write; else the newest of this checkout, or the installed.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
kernel=$(uname -r)
export PATH=$PATH:/usr/sbin:/sbin
mtu_good=4200 # of the interface: packets of 4096 bytes and their headers

say() {
	echo "soft-roce: $*"
}

warn() {
	say "warning: $*" >&2
}

fail() {
	local line
	for line in "$@"; do
		say "$line" >&2
	done
	exit 1
}

usage() {
	sed -n '6,9s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
}

need_root() {
	[ "$(id -u)" -eq 0 ] || fail "only root may do this: sudo $0 $*"
}

need_tools() {
	local tool
	for tool in rdma ip; do
		command -v "$tool" >/dev/null ||
			fail "there is no $tool here; Debian: apt-get install iproute2"
	done
}

# The interface under a soft-RoCE device; nothing if NAME is no such device.
netdev_of() {
	cat "/sys/class/infiniband/$1/parent" 2>/dev/null || true
}

# The same in words, of any device.
what_carries() {
	local iface
	iface=$(netdev_of "$1")
	echo "${iface:-a card}"
}

# The soft-RoCE device over an interface; nothing if there is none.
device_over() {
	local device
	for device in /sys/class/infiniband/*; do
		if [ "$(netdev_of "${device##*/}")" = "$1" ]; then
			echo "${device##*/}"
		fi
	done
}

check_interface() {
	local iface=$1
	[ -d "/sys/class/net/$iface" ] ||
		fail "there is no network interface $iface; there are: $(ls -x -w 0 /sys/class/net)"
	if grep -q '^DEVTYPE=vlan$' "/sys/class/net/$iface/uevent"; then
		fail "$iface is a VLAN, which soft-RoCE does not take: name the interface below it"
	fi
	if [ "$iface" = lo ]; then
		fail "over lo no connection is made: loopback addresses stand for no device" \
			"where there is no other interface, make one:" \
			"  ip link add roce type dummy; ip addr add 10.77.0.1/24 dev roce" \
			"  ip link set roce mtu $mtu_good up; $0 up roce"
	fi
}

# Why a module does not load, and what to do.
explain_module() {
	local module=$1
	if [ ! -d "/lib/modules/$kernel" ]; then
		fail "cannot load $module: /lib/modules/$kernel is not here" \
			"in a container: run this on the host" \
			"after an upgrade of the kernel: reboot"
	fi
	if ! modinfo -k "$kernel" "$module" >/dev/null 2>&1; then
		case $kernel in
		*cloud*) say "Debian's kernels for clouds leave it out" >&2 ;;
		esac
		fail "kernel $kernel has no $module" \
			"Debian: apt-get install linux-image-amd64 (or -arm64), reboot into it"
	fi
	fail "modprobe $module failed; dmesg | tail may say why"
}

load_modules() {
	local module
	# rdma_rxe asks for a checksum by name, and in a chroot or container nobody answers it.
	# Newer kernels have these built in, under other names.
	for module in crc32_generic crc32_pclmul; do
		modprobe -q "$module" || true
	done
	for module in ib_uverbs rdma_ucm rdma_rxe; do
		# Where it is loaded nobody needs its file, which a container may not have.
		[ -d "/sys/module/$module" ] || modprobe -q "$module" || explain_module "$module"
	done
}

# What makes it slow, or keeps connections away.
warn_of_interface() {
	local iface=$1 mtu
	mtu=$(cat "/sys/class/net/$iface/mtu")
	if [ "$mtu" -lt "$mtu_good" ]; then
		warn "$iface has MTU $mtu, so packets are small; if all hosts and switches" \
			"take it: ip link set $iface mtu $mtu_good"
	fi
	if [ -z "$(ip -o addr show dev "$iface" scope global)" ]; then
		warn "$iface has no address to connect to: ip addr add ADDRESS/24 dev $iface"
	fi
}

# Return: is NAME over IFACE there already? Ends where either is taken otherwise.
is_up() {
	local iface=$1 name=$2 over
	over=$(device_over "$iface")
	if [ "$over" = "$name" ]; then
		return 0
	fi
	[ -z "$over" ] || fail "$iface has a soft-RoCE device already, $over: $0 check $over"
	[ ! -e "/sys/class/infiniband/$name" ] ||
		fail "there is a device $name already, over $(what_carries "$name")" \
			"another name: $0 up $iface NAME"
	return 1
}

up() {
	local iface=$1 name=${2:-rxe0}
	need_root up "$@"
	need_tools
	check_interface "$iface"
	if is_up "$iface" "$name"; then
		say "$name is there already, over $iface"
	else
		load_modules
		rdma link add "$name" type rxe netdev "$iface" ||
			fail "rdma link add failed (see above); dmesg | tail may say more"
		say "made $name over $iface"
	fi
	warn_of_interface "$iface"
	check "$name"
}

# The one asked for, this checkout's newest build, or what is installed.
find_muster() {
	local newest
	if [ -n "${MUSTER-}" ]; then
		echo "$MUSTER"
		return
	fi
	newest=$(find "$root/build" -path '*/tools/muster' -type f -executable \
		-printf '%T@ %p\n' 2>/dev/null | sort -n | tail -n 1) || true
	if [ -n "$newest" ]; then
		echo "${newest#* }"
	else
		command -v muster || true
	fi
}

check_memlock() {
	local limit
	limit=$(ulimit -l)
	if [ "$limit" != unlimited ] && [ "$(id -u)" -ne 0 ]; then
		warn "this shell's processes may lock $limit KiB only: ulimit -l unlimited"
	fi
}

check() {
	local name=${1:-rxe0} state muster
	need_tools
	[ -e "/sys/class/infiniband/$name" ] ||
		fail "there is no RDMA device $name: $0 up IFACE $name"
	state=$(cat "/sys/class/infiniband/$name/ports/1/state")
	case $state in
	*ACTIVE*) say "$name is active, over $(what_carries "$name")" ;;
	*) fail "$name is ${state#*: }: ip link set $(netdev_of "$name") up" ;;
	esac
	check_memlock
	if command -v ibv_devices >/dev/null && ! ibv_devices | grep -w "$name" >/dev/null; then
		fail "libibverbs does not see $name: apt-get install ibverbs-providers"
	fi
	muster=$(find_muster)
	if [ -z "$muster" ]; then
		say "muster is not built: no write was tried (muster doctor --device $name)"
		return
	fi
	"$muster" doctor --device "$name"
}

down() {
	local name=${1:-rxe0}
	need_root down "$@"
	need_tools
	[ -e "/sys/class/infiniband/$name" ] || fail "there is no RDMA device $name"
	[ -n "$(netdev_of "$name")" ] || fail "$name is a card, not soft-RoCE: left alone"
	rdma link delete "$name" || fail "rdma link delete failed (see above)"
	say "$name is gone; the modules stay (modprobe -r rdma_rxe)"
}

case ${1-}:$# in
up:2 | up:3 | check:1 | check:2 | down:1 | down:2) "$@" ;;
-h:1 | --help:1) usage ;;
*)
	usage >&2
	exit 2
	;;
esac
