#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Fetches what the test machines boot: Debian's kernel, whose modules hold soft-RoCE, and an
# initramfs around init.sh. Done once, then reused: every further call only looks.
# Prints three paths, a line each: the kernel, the initramfs, the folder of the modules.
# Ends with 77 and a reason where the kernel cannot be had.
#
# usage: kernel.sh [DIR]    DIR holds all of it; build/vm in the checkout if not given
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
dir=${1:-$here/../../build/vm}
export PATH=$PATH:/usr/sbin:/sbin

# What init.sh needs, and sch_netem for tc. All else loads itself, out of the host's folder.
modules=(
	virtio_pci 9pnet_virtio 9p overlay virtio_console virtio_net
	dummy crc32_generic ib_uverbs rdma_ucm rdma_rxe sch_netem
)

skip() {
	echo "skipped: $*" >&2
	exit 77
}

check_host() {
	local tool
	[ "$(uname -m)" = x86_64 ] || skip "the test machines are x86_64, this is $(uname -m)"
	for tool in apt-get apt-cache dpkg-deb depmod modprobe cpio flock busybox; do
		command -v "$tool" >/dev/null || skip "$tool is not installed"
	done
	# The guest has no libraries when it starts.
	if LC_ALL=C ldd "$(command -v busybox)" >/dev/null 2>&1; then
		skip "busybox is not static (Debian package busybox-static)"
	fi
}

# The flavour whose name says nothing; the one for clouds has no soft-RoCE.
package_name() {
	apt-cache depends linux-image-amd64 2>/dev/null |
		sed -n 's/^ *Depends: \(linux-image-[0-9.-]*-amd64\)$/\1/p' | head -n 1
}

# An ELF kernel starts 3 s earlier than one that unpacks itself in emulation.
unpack_kernel() {
	/usr/bin/python3 - "$1" "$2" <<-'EOF'
		import lzma, sys
		packed = open(sys.argv[1], "rb").read()
		at = packed.find(b"\xfd7zXZ\0")
		try:
		    kernel = lzma.LZMADecompressor().decompress(packed[at:]) if at >= 0 else b""
		except lzma.LZMAError:
		    kernel = b""
		open(sys.argv[2], "wb").write(kernel if kernel.startswith(b"\x7fELF") else packed)
	EOF
}

# Machines without hardware need few of the drivers, which are most of the 400 MB.
drop_drivers() (
	cd "$1"
	mv drivers all
	mkdir -p drivers/net
	mv all/{char,infiniband,virtio} drivers
	mv all/net/*.ko drivers/net
	rm -rf all sound drivers/infiniband/hw
)

# Makes DIR/kernel, whole or not at all.
fetch_kernel() {
	local name version
	name=$(package_name)
	if [ -z "$name" ] && [ "$(id -u)" -eq 0 ]; then
		apt-get -qq update >&2 || true
		name=$(package_name)
	fi
	[ -n "$name" ] || skip "apt knows no linux-image-amd64 (apt-get update?)"
	version=${name#linux-image-}
	echo "kernel: fetching $name" >&2
	(cd "$work" && apt-get -qq -o APT::Sandbox::User=root download "$name" >&2) ||
		skip "apt-get download $name failed"
	mkdir "$work/kernel"
	dpkg-deb -x "$work"/linux-image-*.deb "$work/tree" || skip "$name does not unpack"
	unpack_kernel "$work/tree/boot/vmlinuz-$version" "$work/kernel/vmlinux"
	mv "$work/tree/lib" "$work/kernel/lib"
	drop_drivers "$work/kernel/lib/modules/$version/kernel"
	depmod -b "$work/kernel" "$version"
	echo "$version" >"$work/kernel/version"
	mv -T "$work/kernel" "$dir/kernel"
}

# Makes $initramfs, whole or not at all.
pack_initramfs() {
	local tree=$work/initramfs version path name
	version=$(cat "$dir/kernel/version")
	mkdir -p "$tree"/{bin,sbin,dev,proc,sys}
	cp "$(command -v busybox)" "$tree/bin/busybox"
	cp "$here/init.sh" "$tree/init"
	chmod 755 "$tree/init"
	for name in sh cat chroot date grep hostname ip ln mkdir mkfifo modprobe mount poweroff \
		sleep; do
		ln -s busybox "$tree/bin/$name"
	done
	ln -s ../bin/busybox "$tree/sbin/modprobe"
	for name in "${modules[@]}"; do
		modprobe -d "$dir/kernel" -S "$version" --show-depends "$name"
	done | sed -n 's/^insmod \([^ ]*\).*/\1/p' | sort -u | while read -r path; do
		install -D -m 644 "$path" "$tree/${path#"$dir/kernel/"}"
	done
	(cd "$dir/kernel" && cp --parents "lib/modules/$version"/modules.{builtin*,order} "$tree")
	depmod -b "$tree" "$version"
	(cd "$tree" && find . | cpio --quiet -o -H newc -R 0:0) >"$work/initramfs.cpio"
	rm -f "$dir"/initramfs-*.cpio
	mv "$work/initramfs.cpio" "$initramfs"
}

check_host
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
initramfs=$dir/initramfs-$(cat "${BASH_SOURCE[0]}" "$here/init.sh" | cksum | cut -d' ' -f1).cpio
if [ ! -d "$dir/kernel" ] || [ ! -f "$initramfs" ]; then
	exec 9>"$dir/lock"
	flock 9
	work=$(mktemp -d "$dir/work.XXXXXX")
	trap 'rm -rf "$work"' EXIT
	[ -d "$dir/kernel" ] || fetch_kernel
	[ -f "$initramfs" ] || pack_initramfs
fi
printf '%s\n' "$dir/kernel/vmlinux" "$initramfs" "$dir/kernel/lib/modules"
