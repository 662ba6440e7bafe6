# SPDX-License-Identifier: MIT
"""A control group of a test's own, of either version, with a limit of memory, or of processes and
threads: an outer group that is limited, and one in it, without a limit, that processes are put
into. Only root can have one, and only where the hierarchy is mounted writable."""
import itertools
import os
import re
import time

LIMITS = {"memory": (("memory.max", "memory.current"),
                     ("memory.limit_in_bytes", "memory.usage_in_bytes")),
          "pids": (("pids.max", "pids.current"),)}


NUMBERS = itertools.count()


class Unavailable(Exception):
    """Why there is none."""


def hierarchies(controller):
    """Folders of this process's groups: [mount, group below it], of version 1 and 2."""
    with open("/proc/self/cgroup", encoding="utf-8") as f:
        groups = [line.rstrip("\n").split(":", 2) for line in f]
    with open("/proc/self/mountinfo", encoding="utf-8") as f:
        mounts = [line.split() for line in f]
    for fields in mounts:
        kind, _, options = fields[fields.index("-") + 1:][:3]
        for _, controllers, path in groups:
            v1 = kind == "cgroup" and controller in options.split(",") and \
                controller in controllers.split(",")
            v2 = kind == "cgroup2" and controllers == ""
            if v1 or v2:
                root = fields[3].rstrip("/")
                yield fields[4], path[len(root):] if path.startswith(root) else ""


class Group:
    def __init__(self, limit, controller="memory"):
        self.outer = self.file = self.used = None
        self.pairs = LIMITS[controller]
        name = f"muster-test-{os.getpid()}-{next(NUMBERS)}"
        tried = []
        for mount, group in hierarchies(controller):
            at = mount + group.rstrip("/")
            while self.outer is None and at.startswith(mount):
                tried.append(at)
                self.attempt(os.path.join(at, name), limit)
                at = os.path.dirname(at)
        if self.outer is None:
            raise Unavailable(f"no control group with a limit of {controller} can be made below "
                              f"{', '.join(tried) or 'any mount'}")
        self.inner = os.path.join(self.outer, "inner")
        os.mkdir(self.inner)

    def attempt(self, folder, limit):
        try:
            os.mkdir(folder)
        except OSError:
            return
        for self.file, self.used in self.pairs:
            try:
                self.outer = folder
                self.limit(limit)
                return
            except OSError:
                self.outer = None
        os.rmdir(folder)

    def limit(self, size):
        with open(os.path.join(self.outer, self.file), "w", encoding="utf-8") as f:
            f.write(str(size))

    def usage(self):
        with open(os.path.join(self.outer, self.used), encoding="utf-8") as f:
            return int(f.read())

    def name(self):
        """As the kernel has it, below the mount."""
        return re.escape("/" + os.path.basename(self.outer))

    def enter(self):
        """In a child, before it becomes a program."""
        with open(os.path.join(self.inner, "cgroup.procs"), "w", encoding="utf-8") as f:
            f.write(str(os.getpid()))

    def remove(self):
        """Once its processes have ended; the kernel may take a moment to notice."""
        for folder in (self.inner, self.outer):
            for _ in range(100):
                try:
                    os.rmdir(folder)
                    break
                except OSError:
                    time.sleep(0.1)
