#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What programs inherit: closed standard files, blocked and ignored signals, limits, a filter of
system calls. Nothing of it does harm in silence: it is put right, or named.

usage: inherited.py CASE --musterd MUSTERD --muster MUSTER --worker WORKER
       inherited.py --list
"""
import ctypes
import os
import platform
import re
import resource
import shutil
import signal
import struct
import subprocess
import tempfile

from base import cases, check, main, must, until, worker_environment
from server import SECONDS, Server

COMBINATIONS = range(1, 8)  # of the bits of descriptors 0 to 2
OURS = re.compile(r"socket:|anon_inode:|/memfd:")


class Folder:
    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="muster-test-")
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)


def closing(bits):
    def close():
        for fd in range(3):
            if bits >> fd & 1:
                os.close(fd)
    return close


def limiting(what, soft, hard=None):
    return lambda: resource.setrlimit(what, (soft, soft if hard is None else hard))


def blocking(*signals):
    return lambda: signal.pthread_sigmask(signal.SIG_BLOCK, signals)


def run(command, preexec, **env):
    """Return: the exit status, and what standard error had."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True, timeout=SECONDS, check=False,
                          preexec_fn=preexec, env=dict(os.environ, **env))
    return done.returncode, done.stderr


def job(a, folder, *options, commits=3):
    """A command line of muster run, with a worker that says something first."""
    says = 'set -e; echo said; echo said >&2; exec "$@"'
    return [a.muster, "run", "-n", "1", "--commits", str(commits), *options, "--", "sh", "-c", says,
            "sh", a.worker, folder.path("log"), "64"]


def has_a_sanitizer(a):
    """Which reserves address space, and needs larger stacks."""
    with open(a.worker, "rb") as f:
        program = f.read()
    if b"__asan_init" in program or b"__tsan_init" in program:
        print("a sanitizer takes more than that: not tried")
        return True
    return False


# ---- standard files ----

def a_worker_without_standard_files(a):
    """No connection of a C worker has the number of a standard file that was closed."""
    for bits in COMBINATIONS:
        with Folder() as folder:
            server = Server(a.musterd, "-n", "1")
            log, enough = folder.path("log"), folder.path("enough")
            worker = subprocess.Popen(
                [a.worker, log, "64", f"until={enough}"], preexec_fn=closing(bits),
                env=dict(os.environ, **worker_environment(server.address, 0)))
            must(until(lambda: os.path.exists(f"{log}.0.1")
                       and os.path.getsize(f"{log}.0.1") > 1000, SECONDS), "it does not work")
            taken = {}
            for fd in range(3):
                try:
                    taken[fd] = os.readlink(f"/proc/{worker.pid}/fd/{fd}")
                except FileNotFoundError:
                    pass
            with open(enough, "w", encoding="utf-8"):
                pass
            check(f"{bits:03b} closed: {taken}",
                  worker.wait(SECONDS) == 0 and not any(map(OURS.match, taken.values())))
            server.kill()


def a_run_without_standard_files(a):
    """muster run starts, and so do musterd and a worker that prints."""
    for bits in COMBINATIONS:
        with Folder() as folder:
            status, said = run(job(a, folder), closing(bits))
            check(f"{bits:03b} closed: {status} {said}", status == 0)


# ---- signals ----

def blocked_signals(a):
    """A musterd whose parent has blocked SIGTERM and SIGINT is ended by either."""
    for signo in (signal.SIGTERM, signal.SIGINT):
        server = Server(a.musterd, "-n", "1",
                        preexec_fn=blocking(signal.SIGTERM, signal.SIGINT))
        server.process.send_signal(signo)
        status, said = server.end(SECONDS)
        server.kill()
        check(f"{signo.name}: {status}", status == 128 + signo and "ended by signal" in said)


def masks_of_children(a):
    """What muster run starts has nothing blocked, and of what is ignored only what nohup means."""
    def inherits():
        blocking(*range(1, 30))()
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # as a shell does with `&`
        for signo in (signal.SIGXFSZ, signal.SIGPIPE):
            signal.signal(signo, signal.SIG_DFL)

    # Not a shell, which unblocks signals itself. It joins no job, which therefore fails.
    done = subprocess.run([a.muster, "run", "-n", "1", "--", "grep", "Sig", "/proc/self/status"],
                          preexec_fn=inherits, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=SECONDS, check=False)
    found = {name: int(mask, 16) for name, mask in re.findall(r"(Sig\w{3}):\s+(\w+)\n",
                                                              done.stdout)}
    check(f"{found} {done.stderr}",
          found["SigBlk"] == 0 and found["SigIgn"] == 1 << signal.SIGHUP - 1)


# ---- limits ----

LARGE = str(1 << 20)  # elements: 4 MiB


def a_limit_of_files(a):
    """Memory that is longer than `ulimit -f` allows is refused by the library, with the limit and
    what to do, and the program lives to say it."""
    with Folder() as folder:
        server = Server(a.musterd, "-n", "1")
        status, said = run([a.worker, folder.path("log"), LARGE],
                           limiting(resource.RLIMIT_FSIZE, 1 << 20),
                           **worker_environment(server.address, 0))
        server.kill()
        check(f"{status} {said}", status > 0 and all(w in said for w in (
            "cannot link rank 0", "File too large", "at most 1.0 MiB (RLIMIT_FSIZE)",
            "MiB are needed", "ulimit -f", "LimitFSIZE= of a systemd unit",
            "PropagateResourceLimits")))


def a_limit_of_files_of_a_server(a):
    """So it is by musterd, and its workers are told."""
    with Folder() as folder:
        server = Server(a.musterd, "-n", "1",
                        preexec_fn=limiting(resource.RLIMIT_FSIZE, 1 << 20))
        status, said = run([a.worker, folder.path("log"), LARGE], None,
                           **worker_environment(server.address, 0))
        words = ("cannot set up job", "File too large", "at most 1.0 MiB (RLIMIT_FSIZE)")
        check(f"{status} {said}", status > 0 and all(w in said for w in words))
        check("it lives, and logs the same", until(
            lambda: all(w in server.said() for w in words), SECONDS)
            and server.process.poll() is None)
        server.kill()


def a_limit_of_files_of_a_tool(a):
    """A tool says which limit has cut its table."""
    with Folder() as folder:
        command = [a.muster, "sim", "-n", "4", "--policy", "bsp", "--delay", "exp:20", "--commits",
                   "100", "--csv", folder.path("table")]
        must(run(command, None)[0] == 0, "it does not work at all")
        status, said = run(command, limiting(resource.RLIMIT_FSIZE, 16))
        check(f"{status} {said}", status > 0 and "File too large" in said
              and "RLIMIT_FSIZE" in said and "ulimit -f" in said)


def a_limit_of_address_space(a):
    """Memory that `ulimit -v` does not allow is refused with that limit."""
    if has_a_sanitizer(a):
        return
    with Folder() as folder:
        server = Server(a.musterd, "-n", "1")
        status, said = run([a.worker, folder.path("log"), str(8 << 20)],  # 32 MiB
                           limiting(resource.RLIMIT_AS, 96 << 20),
                           **worker_environment(server.address, 0))
        server.kill()
        check(f"{status} {said}", status > 0 and all(w in said for w in (
            "Cannot allocate memory", "at most 96.0 MiB (RLIMIT_AS), has ", "ulimit -v",
            "LimitAS= of a systemd unit")))


def a_small_stack(a):
    """`ulimit -s 64` ends no program by SIGSEGV: muster run and what it starts go on where the
    limit may be raised; else that is what is said. A worker needs no more than that."""
    if has_a_sanitizer(a):
        return
    refuses = limiting(resource.RLIMIT_STACK, 65536)
    with Folder() as folder:
        server = Server(a.musterd, "-n", "1", "--commits", "3")
        status, said = run([a.worker, folder.path("of"), "64"], refuses,
                           **worker_environment(server.address, 0))
        server.kill()
        check(f"a worker: {status} {said}", status == 0)
        status, said = run(job(a, folder), limiting(resource.RLIMIT_STACK, 65536,
                                                    resource.getrlimit(resource.RLIMIT_STACK)[1]))
        check(f"{status} {said}", status == 0)
    for program in ([a.muster, "--help"], [a.musterd, "--help"]):
        command = ["setpriv", "--bounding-set=-sys_resource", "--inh-caps=-sys_resource", *program]
        status, said = run(command if os.geteuid() == 0 else program, refuses)
        if "setpriv" in said:
            print(f"not tried, for there is no setpriv: {said.strip()}")
            return
        check(f"{status} {said}", status == 1 and all(w in said for w in (
            "a stack of at most 64.0 KiB (RLIMIT_STACK)", "1.0 MiB are needed", "ulimit -s",
            "LimitSTACK= of a systemd unit")))


# ---- a filter of system calls ----

MEMFD_CREATE = {"x86_64": 319, "aarch64": 279}
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2


def refusing(number, error):
    """A filter that lets all calls pass but one: of 4 instructions of BPF."""
    code = b"".join(struct.pack("<HBBI", *row) for row in (
        (0x20, 0, 0, 0),                 # load the number of the call
        (0x15, 0, 1, number),            # is it that one?
        (0x06, 0, 0, 0x50000 | error),   # SECCOMP_RET_ERRNO
        (0x06, 0, 0, 0x7fff0000)))       # SECCOMP_RET_ALLOW
    held = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("<HxxxxxxQ", 4, ctypes.addressof(held))
    libc = ctypes.CDLL(None, use_errno=True)

    def refuse(keep=held):
        del keep
        if (libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
                or libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program, 0, 0) != 0):
            os._exit(77)
    return refuse


def a_refused_system_call(a):
    """What a filter such as a container's refuses is named."""
    number = MEMFD_CREATE.get(platform.machine())
    if number is None:
        print(f"not tried: the number of memfd_create on {platform.machine()} is not known here")
        return
    for error, text in ((1, "Operation not permitted"), (38, "Function not implemented")):
        with Folder() as folder:
            server = Server(a.musterd, "-n", "1")
            status, said = run([a.worker, folder.path("log"), "64"], refusing(number, error),
                               **worker_environment(server.address, 0))
            server.kill()
            if status == 77:
                print("not tried: this host lets no process have a filter")
                return
            check(f"{status} {said}", status > 0 and f"memfd_create: {text}" in said
                  and "seccomp" in said)


CASES = cases(a_worker_without_standard_files, a_run_without_standard_files, blocked_signals,
              masks_of_children, a_limit_of_files, a_limit_of_files_of_a_server,
              a_limit_of_files_of_a_tool, a_limit_of_address_space, a_small_stack,
              a_refused_system_call)
main(CASES, "musterd", "muster", "worker")
