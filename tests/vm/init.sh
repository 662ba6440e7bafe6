#!/bin/busybox sh
# SPDX-License-Identifier: MIT
# shellcheck shell=dash
# The first process of a test machine: the host's file system as root, the network, soft-RoCE,
# then the agent. It ends only in trouble, and with it the machine.
set -eu
export PATH=/bin

mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
modprobe -a virtio_pci 9pnet_virtio 9p overlay virtio_console

mkdir -p /host /lab /rw /root
nine="trans=virtio,version=9p2000.L,msize=262144"
mount -t 9p -o "ro,$nine,cache=loose" host /host
mount -t 9p -o "$nine,cache=none" lab /lab
mount -t tmpfs -o mode=755 rw /rw

# NODE COUNT MTU NOW AGENT MODULES and SHOWN: folders to show even below /tmp.
# shellcheck source=/dev/null
. /lab/config
hostname "node$NODE"
date -s "@$NOW" >/dev/null

# overlay NUMBER FOLDER: the host's folder at its own place below /root, writes kept in memory.
overlay() {
	mkdir -p "/rw/$1/upper" "/rw/$1/work" "/root$2"
	mount -t overlay -o "lowerdir=/host$2,upperdir=/rw/$1/upper,workdir=/rw/$1/work" o "/root$2"
}

fill_root() {
	overlay 0 /
	mount -t proc proc /root/proc
	mount -t sysfs sys /root/sys
	mount -t devtmpfs dev /root/dev
	mkdir -p /root/dev/shm /root/dev/pts /root/lab
	mount -t tmpfs -o mode=1777 shm /root/dev/shm
	mount -t devpts -o mode=620,ptmxmode=666 pts /root/dev/pts
	mount -t tmpfs -o mode=1777 tmp /root/tmp
	mount -t tmpfs -o mode=755 run /root/run
	ln -sf /proc/self/fd /root/dev/fd
	mount --bind /lab /root/lab
	mkdir -p /root/lib/modules
	mount --bind "/host$MODULES" /root/lib/modules
	mount --bind "/host$MODULES" /lib/modules # the kernel asks /sbin/modprobe of this root
	number=1
	for folder in $SHOWN; do
		[ -d "/root$folder" ] || overlay "$number" "$folder"
		number=$((number + 1))
	done
}

name_hosts() {
	echo "127.0.0.1 localhost"
	echo "::1 localhost"
	other=0
	while [ "$other" -lt "$COUNT" ]; do
		echo "10.77.0.$((other + 1)) node$other"
		echo "10.78.0.$((other + 1)) node$other-control"
		other=$((other + 1))
	done
}

# The addresses of the cards say which network they are on.
name_cards() {
	for card in /sys/class/net/eth*; do
		case $(cat "$card/address") in
		52:54:00:77:*) ip link set "${card##*/}" name data ;;
		52:54:00:78:*) ip link set "${card##*/}" name control ;;
		esac
	done
}

# wait_file FILE TEXT: until it holds the text, at most some 10 s.
wait_file() {
	tries=500
	until grep -q "$2" "$1"; do
		tries=$((tries - 1))
		[ "$tries" -gt 0 ] || return 1
		sleep 0.02
	done
}

raise_network() {
	for setting in /proc/sys/net/ipv6/conf/*/accept_dad; do
		echo 0 >"$setting" # else a new address waits a second for who else might have it
	done
	ip link set lo up
	if [ "$COUNT" -gt 1 ]; then
		name_cards
		ip addr add "10.78.0.$((NODE + 1))/24" dev control
		ip link set control up
	else
		ip link add data type dummy
	fi
	ip addr add "10.77.0.$((NODE + 1))/24" dev data
	ip link set data mtu "$MTU" up
	ip addr add "fd77::$((NODE + 1))/64" dev data
	chroot /root /usr/bin/env PATH=/usr/sbin:/usr/bin:/sbin:/bin \
		rdma link add rxe0 type rxe netdev data
	wait_file /sys/class/infiniband/rxe0/ports/1/state ACTIVE
	[ "$COUNT" -eq 1 ] || wait_file /sys/class/net/control/operstate up
}

# The modules come out of the initramfs: fill_root hides it behind slower files. crc32_generic is
# there first, so that rxe takes it: in emulation crc32_pclmul costs a fifth of all throughput.
modprobe dummy numdummies=0
modprobe -a virtio_net crc32_generic ib_uverbs rdma_ucm rdma_rxe sch_netem
fill_root
name_hosts >/root/etc/hosts
ulimit -l unlimited
ulimit -c 0
mkfifo /root/run/ready
(raise_network && echo ready >/root/run/ready || echo "no network" >/root/run/ready) &
chroot /root /usr/bin/python3 -I -S "$AGENT"
poweroff -f
