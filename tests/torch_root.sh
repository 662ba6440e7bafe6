#!/bin/sh
# SPDX-License-Identifier: MIT
# Makes a root of another Debian with its PyTorch, for the tests under a second one, and in it
# PROGRAM for `cmake -DMUSTER_TORCH_PYTHON=PROGRAM`: the python3 of that root, which sees this
# tree, its build, /tmp and the devices in their places. Server and library are those of BUILD, with
# the libraries that they need and that the other Debian does not have. Each call has mounts of its
# own, which end with it. As root; it takes about 1.3 GB, and needs mmdebstrap and an archive of
# Debian: MIRROR, or the one that mmdebstrap takes for SUITE.
# usage: torch_root.sh BUILD ROOT [SUITE] [MIRROR]
set -eu
[ $# -ge 2 ] || { sed -n 's/^# usage: /usage: /p' "$0" >&2; exit 2; }
build=$(realpath "$1") root=$(realpath -m "$2") suite=${3:-trixie} mirror=${4-}
tree=$(realpath "$(dirname "$0")/..")

[ -x "$root/usr/bin/python3" ] || mmdebstrap --variant=minbase \
	--include=python3,python3-numpy,python3-torch "$suite" "$root" ${mirror:+"$mirror"}

mkdir -p "$root$tree" "$root$build"
cat > "$root/python" <<END
#!/bin/sh
exec unshare --mount /bin/sh -c '
	for at in /dev /proc /sys /tmp "$tree" "$build"; do
		mount --rbind "\$at" "$root\$at" || exit 1
	done
	exec chroot "$root" /bin/sh -c "cd \"\\\$0\" && exec /usr/bin/python3 \"\\\$@\"" "\$0" "\$@"
' "\$PWD" "\$@"
END
chmod +x "$root/python"

# libconfig, for one, has another number in each Debian.
lacks='import subprocess, sys
for line in subprocess.check_output(["ldd", sys.argv[1]], text=True).splitlines():
    if "not found" in line:
        print(line.split()[0])'
for program in "$build/server/musterd" "$build/client/libmuster.so"; do
	"$root/python" -c "$lacks" "$program" | while read -r name; do
		ldd "$program" | awk -v name="$name" '$1 == name { print $3 }' |
			xargs -I LIBRARY cp -L LIBRARY "$root/usr/local/lib/"
	done
done
chroot "$root" ldconfig

"$root/python" -c 'import numpy, torch
print("PyTorch", torch.__version__, "NumPy", numpy.__version__)'
echo "cmake -B $build -DMUSTER_TORCH_PYTHON=$root/python"
