#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The Python binding alone: what its docstrings promise, in real jobs.

usage: binding.py CASE --musterd MUSTERD --library LIBMUSTER
       binding.py --list
"""
import errno
import gc
import os
import pickle
import re
import select
import signal
import subprocess
import sys
import threading
import time

from base import HANG_S, cases, check, main, must, until
from binding_case import ELEMS, PACKAGE, Job, raises, spawn


def loop(a):
    """A gradient goes out, its version comes back, and views end when the memory changes."""
    import numpy
    with Job(a, "--workers", "1", "--optimizer", "sgd:lr=0.5,momentum=0"):
        import muster
        with muster.Worker(ELEMS, tensors=[("a", 400), ("b", 600)]) as w:
            check("the job is told", (w.job.rank, w.job.workers, w.job.elems) == (0, 1, ELEMS))
            out = w.start(numpy.arange(ELEMS, dtype="f4"))
            first = out.result
            check("the start state comes back",
                  numpy.array_equal(first, numpy.arange(ELEMS)) and first[7] == 7)
            raises((ValueError, TypeError), lambda: first.numpy().__setitem__(0, 1.0))
            gradient = w.gradient()
            gradient[:] = 2.0
            places = {r.address: r for r in w.regions()}
            check("a gradient and a result lie where regions() says", all(
                places[v.numpy().ctypes.data][1:] == (4 * ELEMS, v is gradient)
                for v in (gradient, first)))
            w.push(weight=3)
            check("a result has ended when its memory may change", "this view of a result has ended"
                  in raises(ValueError, lambda: first[0]))
            for use in (lambda: numpy.asarray(first), lambda: len(first), lambda: first.memory):
                must("of a result has ended" in raises(ValueError, use), "not in words")
            for use in (gradient.numpy, lambda: gradient.__setitem__(0, 1.0)):
                must("of a gradient has ended" in raises(ValueError, use), "not in words")
            out = w.wait()
            check("the version has this gradient alone",
                  out.verdict == muster.Verdict.COUNTED and out.set == ((0, 1, 3.0),)
                  and numpy.array_equal(out.result, numpy.arange(ELEMS) - 1))
            array = out.result.numpy()
            said = raises(BufferError, w.pull)
            check(f"an array that was kept is not changed: {said}", array[5] == 4)
            del array
            w.push_ranges([(0, 10, numpy.ones(10, "f4")), (10, 990, numpy.ones(990, "f4"))])
            check("an overlap is refused", "given before" in raises(
                muster.InvalidArgument, w.push_range, 5, 1, numpy.ones(1, "f4")))
            raises(ValueError, w.push_range, 0, 10, numpy.ones(20, "f4"))
            w.push()
            out = w.wait()
            check("so have ranges", out.result[3] == 1.5)
            bad = numpy.ones(ELEMS, "f4")
            bad[450] = numpy.nan
            check("a NaN is named by its tensor",
                  '"b"' in raises(muster.NotFinite, w.push_range, 0, ELEMS, bad))
            w.report("accuracy", 0.5)
            kept = out.result
            w.finish("that is all")
        raises(ValueError, lambda: kept[0])
        raises(muster.SessionLost, w.wait)
        w.close()


def waits(a):
    """Tries with a descriptor, and waits that another thread ends while Python goes on."""
    import numpy
    with Job(a, "--workers", "2"):
        import muster
        w = [None, None]

        def start(r):
            w[r] = muster.Worker(ELEMS, rank=r)
            w[r].start(numpy.zeros(ELEMS, "f4"))

        threads = [threading.Thread(target=start, args=(r,)) for r in (0, 1)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        poll = select.poll()
        poll.register(w[0].fileno(), select.POLLIN)
        w[0].gradient()[:] = 1.0
        w[0].push()
        check("nothing is there before the other's gradient", w[0].try_wait() is None)
        said = []

        def wait():
            try:
                w[0].wait()
            except muster.Interrupted as e:
                said.append(str(e))

        waiter = threading.Thread(target=wait)
        waiter.start()
        while not w[0]._lock.locked():
            pass
        check("one thread at a time", "one thread" in raises(RuntimeError, w[0].wait))
        w[0].wake()
        waiter.join(HANG_S)
        check(f"a wait is ended from outside: {said}", len(said) == 1)
        must(w[0].try_wait() is None, "nothing yet")
        w[1].gradient()[:] = 1.0
        w[1].push()
        out = w[0].try_wait()
        while out is None:
            must(poll.poll(HANG_S * 1000), "the descriptor is not readable")
            out = w[0].try_wait()
        check("a try brings the version", out.version == 1 and w[1].wait().version == 1)


def joined_soon(muster, seconds):
    """A worker whose start() waits no longer than that, or on a busy host a little longer: joining
    takes its part of the time."""
    while True:
        try:
            return muster.Worker(ELEMS, rank=0, join_timeout=seconds)
        except muster.Timeout:
            seconds *= 2
        except muster.Error as e:  # the server still clears away the session before
            if e.errno not in (errno.EEXIST, errno.EBUSY):
                raise


def after_mistakes(a):
    """A call that has failed leaves nothing behind for the next one; and calls after the end."""
    import numpy
    with Job(a, "--workers", "2"):
        import muster
        w = joined_soon(muster, 0.1)
        said = raises(muster.Timeout, w.start, numpy.zeros(ELEMS, "f4"))
        check(f"alone: {said}", "not all 2 workers" in said)
        check("wait() before start() is told of", "muster_start()" in raises(
            muster.InvalidArgument, w.wait) and "muster_start()" in raises(
            muster.InvalidArgument, w.try_wait))
        raises(muster.Timeout, w.start)
        w.close()
    with Job(a, "--workers", "1"):
        w = muster.Worker(ELEMS)
        w.start(numpy.zeros(ELEMS, "f4"))
        for version in (1, 2):
            raises(muster.InvalidArgument, w.start, numpy.zeros(ELEMS, "f4"))
            w.gradient()[:] = 1
            w.push()
            check("waits go on after a second start()", w.wait().version == version)
        raises(muster.InvalidArgument, w.start)
        w.gradient()[:] = 1
        w.push()
        out = w.try_wait()
        check("tries, too", (out or w.wait()).version == 3)
        w.finish("that is all")
        w.gradient()[:] = 1
        w.push()
        while not w.wait().finished:
            pass
        check("no buffer after the end", "the job has ended" in raises(muster.Busy, w.gradient))
        w.close()


def errors(a):
    """Are the same after pickling, and keep their text where they are made again of that alone, as
    a DataLoader does."""
    with Job(a, "--workers", "1"):
        import muster
        for number, kind in ((errno.ECHILD, muster.Forked), (errno.EDOM, muster.NotFinite),
                             (errno.EINVAL, muster.InvalidArgument), (errno.EIO, muster.Error)):
            e = kind(number, "rank 0: a sentence")
            same = pickle.loads(pickle.dumps(e))
            must(type(same) is kind and same.errno == number and str(same) == "rank 0: a sentence",
                 repr(same))
            again = kind("Caught in a worker")
            must(str(again) == "Caught in a worker" and str(kind()) == "", repr(again))
            must(str(pickle.loads(pickle.dumps(again))) == "Caught in a worker", repr(again))
        check("four kinds of errors", True)


# A shell that starts tests in the background leaves SIGINT ignored.
CATCH = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
SCRIPT = CATCH + """
import os, sys, muster, numpy
w = muster.Worker(1000, rank=int(sys.argv[1]))
print("joined", flush=True)
w.start(numpy.zeros(1000, "f4"))
w.gradient()[:] = 1
w.push()
print("pushed", flush=True)
w.wait()
"""


def ctrl_c(a):
    """While it waits for a server, for the start, and for a version; and what the others see."""
    with Job(a, "--workers", "2", "--patience", "60s"):
        lost = spawn(SCRIPT.replace("w = muster", "print('on', flush=True)\nw = muster"), "0",
                     MUSTER_SERVER="127.0.0.1:9")
        must(lost.stdout.readline() == "on\n", "no child")
        child = spawn(SCRIPT, "0")
        must(child.stdout.readline() == "joined\n", "it does not join")
        for process in (lost, child):
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=HANG_S)
            check("KeyboardInterrupt ends it", "KeyboardInterrupt" in said)
    with Job(a, "--workers", "2"):
        both = [spawn(SCRIPT, "0"), spawn(SCRIPT.replace("w.push()", "signal.pause()"), "1")]
        for line in ("joined\n", "pushed\n"):
            must(both[0].stdout.readline() == line, "it does not come so far")
        both[0].send_signal(signal.SIGINT)
        _, said = both[0].communicate(timeout=HANG_S)
        check("so it does in wait()", "KeyboardInterrupt" in said)
        both[1].kill()
        both[1].communicate()


def ends(a):
    """Fork, exit without close(), the collector, no server, another library."""
    import numpy
    with Job(a, "--workers", "1") as job:
        import muster
        w = muster.Worker(ELEMS)
        w.start(numpy.zeros(ELEMS, "f4"))
        pid = os.fork()
        if pid == 0:
            said = raises(muster.Forked, w.pull) + raises(muster.Forked, w.gradient)
            w.close()
            os._exit(0 if "forked" in said else 1)
        check("a child is told so", os.waitpid(pid, 0)[1] == 0)
        w.gradient()[:] = 1
        w.push()
        check("and the parent goes on", w.wait().version == 1)
        said = raises(muster.Timeout, lambda: muster.Worker(ELEMS, server="127.0.0.1:9",
                                                            join_timeout=0.1))
        check(f"no server: {said}", "no server answered at 127.0.0.1:9" in said)
        check("a wrong type", "f64" in raises(ValueError, lambda: muster.Worker(9, type="f64")))
        del w
        gc.collect()
        check("the collector leaves the job, which ends", job.server.end(HANG_S)[0] is not None)
    with Job(a, "--workers", "1"):
        done = subprocess.run([sys.executable, "-c", "import muster\nw = muster.Worker(1000)\n"
                               "w.start(bytes(4000))\n"], timeout=HANG_S, text=True,
                              stderr=subprocess.PIPE)
        check(f"an exit without close() is fine: {done.stderr}", done.returncode == 0)
    for library, word in (("libm.so.6", "no libmuster"), ("/nowhere", "cannot be loaded")):
        done = subprocess.run([sys.executable, "-c", "import muster"], text=True,
                              stderr=subprocess.PIPE, env=dict(os.environ, MUSTER_LIBRARY=library))
        check(f"the library {library} is refused", word in done.stderr and done.returncode != 0)
    done = subprocess.run([sys.executable, "-c", "import importlib.abc, sys, muster._library as m\n"
                           "m.VERSION = '7.0.0'\nm.load()"], text=True, stderr=subprocess.PIPE)
    check("one of another release, too", "this package is 7.0.0" in done.stderr)


def once_in_a_call(w, signo):
    """Another thread sends the process a signal when the main thread is in a call of the worker."""
    def send():
        while not w._lock.locked():
            time.sleep(0.001)
        os.kill(os.getpid(), signo)

    sender = threading.Thread(target=send)
    sender.start()
    return sender


def signals(a):
    """In start(), before others have started; in the instant in which it succeeds; and a handler
    that calls wake()."""
    import numpy
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with Job(a, "--workers", "2", "--owner", "workers"):
        import muster
        w = muster.Worker(ELEMS, rank=0, owner="workers")
        signal.signal(signal.SIGUSR1, lambda *_: w.wake())
        own = numpy.ones(ELEMS, "f4")
        for signo, kind in ((signal.SIGINT, KeyboardInterrupt),
                            (signal.SIGUSR1, muster.Interrupted)):
            sender = once_in_a_call(w, signo)
            raises(kind, w.start, own)
            sender.join()
        joined = []

        def join():
            joined.append(muster.Worker(ELEMS, rank=1, owner="workers"))
            joined[0].start(own)

        other = threading.Thread(target=join)
        other.start()
        told, w._told = w._told, lambda *_: signal.raise_signal(signal.SIGINT)
        raises(KeyboardInterrupt, w.start, own)
        w._told = told
        check("what it has brought waits", "make it again" in raises(RuntimeError, w.push))
        check("and comes", w.start(own).result[0] == 1)
        other.join()
        signal.signal(signal.SIGUSR1, lambda *_: w.wake())
        w.gradient()[:] = 1
        ticket = w.push()
        check("a ticket stays to be read", w.ticket == ticket == 1)
        signal.signal(signal.SIGALRM, lambda *_: w.wake())
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        raises(muster.Interrupted, w.wait)
        gradient = w.gradient().numpy()
        raises(BufferError, w.push)
        del gradient
        check("a push that was refused has not taken place", w.ticket == 1)
        w.push()
        check("the next one has", w.ticket == 2)


def states(a):
    """A worker that joins a running job takes the state of another, whatever Ctrl-C comes."""
    import numpy
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with Job(a, "--workers", "2", "--owner", "workers", "--history", "2", "--min-workers", "1",
             "--catch-up", "4096", "--patience", "60s"):
        import muster
        gives, gone_on, done = threading.Event(), threading.Event(), threading.Event()
        said = []

        def donor():
            with muster.Worker(ELEMS, rank=0, owner="workers", comes_back=True) as w:
                out = w.start(numpy.zeros(ELEMS, "f4"))
                said.append(raises(muster.InvalidArgument, w.give_state, b"1"))
                while not done.is_set():
                    time.sleep(0.01)  # --catch-up is to last for a while
                    w.gradient()[:] = 1
                    w.push()
                    out = w.wait()
                    if out.version == 5:
                        gone_on.set()
                    if gives.is_set() and w.state_wanted():
                        w.give_state(out.version.to_bytes(8, "little") + b"state" * 100000)

        donating = threading.Thread(target=donor)
        donating.start()
        with muster.Worker(ELEMS, rank=1, owner="workers") as w:
            w.start()
        must(gone_on.wait(HANG_S), "the job does not go on")
        w = muster.Worker(ELEMS, rank=1, owner="workers", comes_back=True)
        check("it is behind", "muster_take_state" in raises(muster.Stale, w.start))
        sender = once_in_a_call(w, signal.SIGINT)
        raises(KeyboardInterrupt, w.take_state)
        sender.join()
        gives.set()
        version, state = w.take_state()
        check(f"the state is of version {version}",
              state == version.to_bytes(8, "little") + b"state" * 100000)
        w.gradient()[:] = 3
        w.push()
        check("the next version comes", w.wait().version == version + 1)
        said.append(raises(muster.InvalidArgument, w.take_state))
        done.set()
        w.close()
        donating.join(HANG_S)
        check("nobody wants, nobody is behind", "nobody wants" in said[0] and "no state" in said[1])


def models(a):
    """Ranks with different models: which tensor, by name, in every sentence. The job goes on."""
    import numpy
    with Job(a, "--workers", "2") as job:
        import muster
        mine = [("conv1.weight", 128), ("conv1.bias", 8), ("\u00e9" * 127, 4)]
        with muster.Worker(140, rank=0, tensors=mine) as w:
            for table, words in (
                    ([("conv1.weight", 64), *mine[1:]],
                     '0 is "conv1.weight" of 64 elements at rank 1 (127.0.0.1'),
                    ([mine[0], ("conv1.beta", 8), mine[2]],
                     'and "conv1.bias" of 8 elements at rank 0 (127.0.0.1'),
                    (mine[:2], "tensor number 2 is not there at rank 1"),
                    ([*mine[:2], ("x", 4)], '"x" of 4 elements'),
                    ([*mine, *((f"more{i}", 1) for i in range(5000))],
                     'tensor number 3 is "more0" of 1 elements')):
                said = raises(muster.InvalidArgument, lambda: muster.Worker(
                    sum(count for _, count in table), rank=1, tensors=table))
                check(said, words in said and len(said.encode()) < 512
                      and until(lambda: said in job.server.said(), HANG_S))
            other = muster.Worker(140, rank=1, tensors=mine)
            starting = threading.Thread(target=other.start)
            starting.start()
            check("the same model joins", w.start(numpy.zeros(140, "f4")).version == 0)
            starting.join()
            other.close()


def launchers(a):
    """Without arguments a worker has its rank and server from the environment of its launcher."""
    say = "import muster\nwith muster.Worker(1000) as w: print(w.job.rank)"
    with Job(a, "--workers", "5", "--join-timeout", "never"):
        for rank, variables in enumerate((
                {"SLURM_PROCID": "0", "SLURM_NTASKS": "5"},
                {"RANK": "1", "WORLD_SIZE": "5", "SLURM_PROCID": "0"},
                {"OMPI_COMM_WORLD_RANK": "2", "SLURM_PROCID": "0"},
                {"PMI_RANK": "3"},
                {"MUSTER_RANK": "4", "RANK": "0", "WORLD_SIZE": "5"})):
            child = spawn(say, **variables)
            said, why = child.communicate(timeout=HANG_S)
            check(f"{variables}: rank {said.strip()} {why}", said == f"{rank}\n")
        child = spawn(say, RANK="one", WORLD_SIZE="5")
        _, why = child.communicate(timeout=HANG_S)
        check("a variable that is no rank is named", 'RANK is "one"' in why)


def example(a):
    """regression_numpy.py: it learns, while a slow rank's gradients are late."""
    script = os.path.join(PACKAGE, "examples", "regression_numpy.py")
    with Job(a, "--workers", "3", "--policy", "backup:2", "--optimizer", "adam:lr=0.01",
             "--commits", "400") as job:
        ranks = [subprocess.Popen([sys.executable, script, "--slow", "2"], stdout=subprocess.PIPE,
                                  text=True, env=dict(os.environ, MUSTER_RANK=str(rank)))
                 for rank in range(3)]
        for rank, process in enumerate(ranks):
            said, _ = process.communicate(timeout=HANG_S)
            found = re.fullmatch(rf"rank {rank}: version 400, mean squared error (\S+)\n", said)
            check(f"{said.strip()}", process.returncode == 0 and found
                  and float(found.group(1)) < 0.3)
        check("it ends well", job.server.end(HANG_S)[0] == 0)


def closed(a):
    """After close(), whatever was under way: calls say so, and nothing reads what is freed."""
    import numpy
    with Job(a, "--workers", "1"):
        import muster
        w = muster.Worker(ELEMS)
        first = w.start(numpy.ones(ELEMS, "f4"))
        gradient = w.gradient()
        gradient[:] = 1
        pid = os.fork()
        if pid == 0:
            said = raises(muster.Forked, w.wait) + raises(muster.Forked, w.push)
            must("forked" in said and w.check() == muster.Hint.GIVE_UP, said)
            w.wake()
            w.close()
            raises(muster.SessionLost, w.wait)
            os._exit(0)
        check("a child is told so, and closes its copy", os.waitpid(pid, 0)[1] == 0)
        w.push()
        told, w._told = w._told, lambda *_: signal.raise_signal(signal.SIGINT)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        raises(KeyboardInterrupt, w.wait)  # has succeeded, and nobody has what it brought
        w._told = told
        w.close()
        check("an outcome that nobody has had is gone with it", w._answer is None)
        for call in (w.wait, w.try_wait, w.push, w.gradient, w.abandon, w.pull, w.fileno,
                     w.state_wanted, w.take_state, w.start, lambda: w.give_state(b"1"),
                     lambda: w.report("loss", 1), lambda: w.finish("over"),
                     lambda: w.push_ranges([(0, 1, numpy.ones(1, "f4"))])):
            must("has been closed" in raises(muster.SessionLost, call), call)
        for view in (first.result, gradient):
            raises(ValueError, lambda v=view: v[0])
            raises(ValueError, view.numpy)
        check("the rest may be read", w.check() == muster.Hint.GIVE_UP and w.ticket == 1
              and "closed" in repr(w) and w.job.elems == ELEMS and first.version == 0)
        w.wake()
        w.close()
    with Job(a, "--workers", "1"):
        script = ("import muster, sys\nw = muster.Worker(1000)\nout = w.start(bytes(4000))\n"
                  "kept = out.result.numpy(), w.gradient().numpy()\nsys.exit(7)\n")
        done = subprocess.run([sys.executable, "-c", script], timeout=HANG_S, text=True,
                              stderr=subprocess.PIPE)
        check(f"an exit while arrays are kept is fine: {done.stderr}",
              (done.returncode, done.stderr) == (7, ""))


def averages(a):
    """The average of the parameters is a copy, and says its version."""
    import numpy
    with Job(a, "--workers", "1", "--optimizer", "sgd:lr=0.5,momentum=0", "--average", "0.5"):
        import muster
        with muster.Worker(ELEMS) as w:
            w.start(numpy.full(ELEMS, 1, "f4"))
            version, first = w.average()
            check("it begins as the start state",
                  version == 0 and numpy.array_equal(first, numpy.full(ELEMS, 1)))
            w.gradient()[:] = 8.0
            w.push()
            w.wait()
            version, later = w.average()
            left = 2 / 11  # of a young average
            check("it moves with the parameters", version == 1 and numpy.allclose(
                later, left * 1 + (1 - left) * -3))
            check("what was got before stays", first[5] == 1 and len(first) == ELEMS)
            w.finish("that is all")
    with Job(a, "--workers", "1"), muster.Worker(ELEMS) as w:
        w.start(numpy.zeros(ELEMS, "f4"))
        check("none is kept", "start musterd with --average" in raises(muster.Error, w.average))


def goal(a):
    """The job ends with the least that anybody has given; the answer says which that is."""
    import numpy
    with Job(a, "--workers", "1", "--commits", "4", "--optimizer", "sgd:lr=0.5") as job:
        import muster
        with muster.Worker(ELEMS) as w:
            out = w.start(numpy.zeros(ELEMS, "f4"))
            for wrong in (0, -1, 1 << 64):
                must("cannot end with version" in raises(muster.InvalidArgument, w.goal, wrong),
                     wrong)
            raises(TypeError, w.goal, 2.0)
            check("it is told what ends the job", (w.goal(9), w.goal(3), w.goal(4)) == (4, 3, 3))
            check("the result stays", out.result[0] == 0)
            while not out.finished:
                w.gradient()[:] = 1.0
                w.push()
                out = w.wait()
            check("the job ends with it", (out.version, out.newest, w.goal(1)) == (3, 3, 3))
            check("generations are not counted", out.generation == 0)
        said = job.server.said()
        for words in ("rank 0 wants the job to end with version 9, and it ends with 4 (--commits)",
                      "rank 0 has the job end with version 3, and no more with 4 (--commits)",
                      "rank 0 wants the job to end with version 4, and it ends with 3 (rank 0)",
                      "finished at version 3: version 3 is made, which is the last that rank 0"):
            must(words in said, f"\"{words}\" is not in:", said)


CASES = cases(loop, waits, after_mistakes, errors, ctrl_c, ends, signals, states, models,
              launchers, example, closed, averages, goal)
# A worker has 0.1 s to come to its server, and then no other comes.
main(CASES, "musterd", "library",
     clock=("after_mistakes",))
