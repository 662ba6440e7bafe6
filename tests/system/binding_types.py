#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The Python binding: what it takes, and what it finds in the process that has imported it.

usage: binding_types.py CASE --musterd MUSTERD --library LIBMUSTER
       binding_types.py --list
"""
import errno
import os
import shutil
import subprocess
import sys
import tempfile

from base import HANG_S, cases, check, main, must
from binding_case import ELEMS, Job, raises, spawn


def halves(a):
    """Gradients and results in f16 and in bf16, whose views take floats and show them. NumPy has
    bf16 as the upper halves of f32."""
    import numpy
    for type_, one, dtype in (("f16", 1.0, "f2"), ("bf16", 0x3f80, "u2")):
        with Job(a, "--workers", "1", "--result-type", type_, "--optimizer",
                 "sgd:lr=1,momentum=0"):
            import muster
            with muster.Worker(ELEMS, type=type_, result_type=type_) as w:
                w.start(numpy.full(ELEMS, one, dtype))
                gradient = w.gradient()
                gradient[:] = numpy.full(ELEMS, one, dtype)
                gradient[3] = 0
                check(f"{type_} is filled", gradient[2] == 1 and gradient[3] == 0
                      and gradient[2:4] == [1, 0] and gradient.numpy().dtype == dtype
                      and gradient.numpy()[2] == one)
                for one_by_any in (numpy.ones(ELEMS, "f4"), numpy.ones(ELEMS), 1, 1.0,
                                   [1] * ELEMS, numpy.ones(ELEMS, "i8")):
                    gradient[:] = one_by_any
                    must(gradient[:] == [1] * ELEMS and gradient[7] == 1, one_by_any)
                gradient[0], gradient[1], gradient[3] = -0.5, 1 + 3 * 2 ** -8, 0
                check("numbers are converted, and rounded to the nearest", gradient[:4] == [
                    -0.5, 1 + 2 ** -6 if type_ == "bf16" else 1 + 3 * 2 ** -8, 1, 0]
                    and numpy.asarray(gradient, "f4")[0] == -0.5)
                gradient[:] = 1.0
                gradient[3] = 0
                w.push()
                result = w.wait().result
                check("and comes back", numpy.count_nonzero(result.numpy()) == 1
                      and result[3] == 1 and result[2] == 0)


def rounding(a):
    """Every f32 that is written to a view of bf16 becomes what the library makes of it."""
    import ctypes
    import numpy
    with Job(a, "--workers", "1"):
        from muster.view import view_of, Lease
        patterns = (numpy.arange(2 ** 16, dtype="u4") << 16)[:, None] | numpy.array(
            [0, 1, 0x7fff, 0x8000, 0x8001, 0xffff], "u4")
        given = patterns.reshape(-1).view("f4")
        place = (ctypes.c_uint16 * len(given))()
        view = view_of(ctypes.addressof(place), len(given), "bf16", Lease(), True, place)
        view[:] = given
        bits = view.numpy()
        odd = numpy.isnan(given)
        upper = patterns.reshape(-1) >> 16
        rest = patterns.reshape(-1) & 0xffff
        up = (rest > 0x8000) | (rest == 0x8000) & (upper & 1 == 1)
        check("to the nearest, ties to even", (bits[~odd] == (upper + up)[~odd]).all())
        shown = numpy.asarray(view, "f4")
        check("and what is no number stays none", numpy.isnan(shown[odd]).all()
              and not numpy.isnan(shown[~odd]).any())


def types(a):
    """What is of another type is not counted as bytes: TypeError has both types."""
    import array
    import ctypes
    import numpy
    wrong = {
        "f32": {"int32": numpy.ones(ELEMS, "i4"), ">f4": numpy.ones(ELEMS, ">f4"),
                "float64": numpy.ones(ELEMS // 2), "uint8": numpy.ones(4 * ELEMS, "u1"),
                "complex64": numpy.ones(ELEMS // 2, "c8"), "'i'": array.array("i", [1] * ELEMS),
                "'<d'": (ctypes.c_double * (ELEMS // 2))(), "a list": [1.0] * ELEMS},
        "bf16": {"float16": numpy.ones(ELEMS, "f2"), "float32": numpy.ones(ELEMS // 2, "f4"),
                 "int16": numpy.ones(ELEMS, "i2"), ">u2": numpy.ones(ELEMS, ">u2")},
        "f16": {"uint16": numpy.ones(ELEMS, "u2"), "float32": numpy.ones(ELEMS // 2, "f4")}}
    right = {"f32": (numpy.ones(ELEMS, "f4"), bytes(4 * ELEMS), array.array("f", [0] * ELEMS),
                     (ctypes.c_float * ELEMS)(), numpy.ones((10, ELEMS // 10), "f4")),
             "bf16": (numpy.ones(ELEMS, "u2"), bytearray(2 * ELEMS)),
             "f16": (numpy.ones(ELEMS, "f2"), array.array("H", [0] * ELEMS))}
    for kind, by_type in wrong.items():
        with Job(a, "--workers", "1", "--result-type", kind):
            import muster
            with muster.Worker(ELEMS, type=kind, result_type=kind) as w:
                for name, given in by_type.items():
                    said = raises(TypeError, w.start, given)
                    check(f"{kind}: {said}", "own is " in said and name in said and kind in said)
                w.start(right[kind][0])
                for name, given in by_type.items():
                    said = raises(TypeError, w.push_range, 0, ELEMS, given)
                    must("src is " in said and name in said and kind in said, said)
                said = raises(ValueError, w.push_range, 0, 4, right[kind][0])
                check(f"{kind}: {said}", "4 elements" in said and f"has {ELEMS}" in said)
                twice = numpy.ones(8, right[kind][0].dtype)[::2]
                check("not contiguous", "contiguous" in raises(
                    ValueError, w.push_range, 0, 4, twice))
                must("numpy()" in raises(TypeError, w.push_range, 0, ELEMS, w.gradient()), "a view")
                for given in right[kind]:
                    w.push_range(0, ELEMS, given)
                    w.push()
                    must(w.wait().verdict == muster.Verdict.COUNTED, type(given))


def numbers(a):
    """What C cannot hold does not wrap, texts do not end at a NUL, and there is a time without
    end."""
    import numpy
    with Job(a, "--workers", "1"):
        import muster

        def refused(kind, words, **more):
            said = raises(kind, lambda: muster.Worker(**{"elems": ELEMS, "join_timeout": 20,
                                                         **more}))
            check(said, all(w in said for w in words))

        refused(ValueError, ("rank is 1099511627776", "-2147483648 to 2147483647"), rank=2 ** 40)
        refused(ValueError, ("options.rank is -2",), rank=-2)
        refused(ValueError, ("elems is 18446744073709551617",), elems=2 ** 64 + 1)
        refused(ValueError, ("elems is -1",), elems=-1)
        refused(TypeError, ("rank is '0', a str",), rank="0")
        refused(TypeError, ("elems is 1000.0, a float",), elems=1000.0)
        refused(ValueError, ("the length of b is -4",), tensors=[("a", ELEMS + 4), ("b", -4)])
        refused(ValueError, ("the name of a tensor is 'a\\x00b'",), tensors=[("a\0b", ELEMS)])
        refused(ValueError, ("job is 'j\\x00k'",), job="j\0k")
        refused(ValueError, ("server is ", "NUL"), server="127.0.0.1:1\0")
        refused(TypeError, ("job is b'j', a bytes",), job=b"j")
        refused(ValueError, ("join_timeout is nan",), join_timeout=float("nan"))
        refused(ValueError, ("wait_timeout is -1",), wait_timeout=-1)
        refused(TypeError, ("wait_timeout is '60', a str",), wait_timeout="60")
        for_ever = float("inf")
        with muster.Worker(numpy.int64(ELEMS), rank=numpy.int32(0), join_timeout=for_ever,
                           wait_timeout=for_ever) as w:
            w.start(numpy.zeros(ELEMS, "f4"))
            for piece in ((-1, 1), (0, -1), (2 ** 64, 1)):
                raises(ValueError, w.push_range, *piece, numpy.ones(1, "f4"))
            raises(ValueError, w.report, "a\0b", 1)
            raises(TypeError, w.report, "loss", "1")
            raises(ValueError, w.finish, "a\0b")
            w.gradient()[:] = 1
            w.push()
            check("without end, it waits as ever", w.wait().version == 1)


def standard_files(a):
    """Whichever of the descriptors 0 to 2 are closed, they stay so: nothing that the program prints
    goes into a connection of the library, and the job goes on."""
    for closed in range(8):
        with Job(a, "--workers", "1"):
            import muster
            pid = os.fork()
            if pid == 0:
                os.dup2(2, 200)
                for fd in range(3):
                    if closed >> fd & 1:
                        os.close(fd)
                os._exit(prints(muster, closed))
            check(f"{closed:03b} closed", os.waitpid(pid, 0)[1] == 0)


def prints(muster, closed):
    """In a child, which has no other place than 200 to say what is wrong.
    Return: its exit status."""
    import numpy

    def are_closed():
        found = 0
        for fd in range(3):
            try:
                os.fstat(fd)
            except OSError:
                found |= 1 << fd
        return found

    try:
        with muster.Worker(ELEMS) as w:
            w.start(numpy.zeros(ELEMS, "f4"))
            for _ in range(3):
                for fd in range(1, 3):
                    try:
                        os.write(fd, b"printed\n")
                    except OSError as e:
                        must(e.errno == errno.EBADF and closed >> fd & 1, fd, e)
                must(are_closed() == closed, f"{are_closed():03b}")
                w.gradient()[:] = 1
                w.push()
                must(w.wait().verdict == muster.Verdict.COUNTED, "a version")
        return 0
    except BaseException as e:  # pylint: disable=broad-exception-caught
        os.write(200, f"{closed:03b} closed: {e!r}\n".encode())
        return 1


def locales(a):
    """Where a program writes 0,5 the library reads 0.5, and writes it."""
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "source")
        with open(source, "w", encoding="ascii") as f:
            f.write('LC_NUMERIC\ndecimal_point ","\nthousands_sep "."\ngrouping 3;3\n'
                    "END LC_NUMERIC\n")
        if shutil.which("localedef") is None:
            print("skipped: there is no localedef here; Debian has it in libc-bin")
            sys.exit(77)
        # It warns of all categories that are not there, and makes them empty.
        subprocess.run(["localedef", "-c", "-i", source, "-f", "ANSI_X3.4-1968",
                        os.path.join(folder, "comma")], capture_output=True, check=False)
        with Job(a, "--workers", "1", "--optimizer", "sgd:lr=1,momentum=0"):
            script = ("import locale, muster\nlocale.setlocale(locale.LC_NUMERIC, 'comma')\n"
                      "assert locale.localeconv()['decimal_point'] == ','\n"
                      "try:\n    muster.Worker(1000, clip=-0.5)\n"
                      "except ValueError as e:\n    print(e)\n"
                      "w = muster.Worker(1000)\nw.start(bytes(4000))\n"
                      "w.gradient()[:] = 1\nw.push()\nprint(w.wait().result[0])\n")
            child = spawn(script, LOCPATH=folder, MUSTER_CLIP="0.5")
            said, why = child.communicate(timeout=HANG_S)
            check(f"{said}{why}", child.returncode == 0 and "options.clip is -0.5;" in said)
            last = float(said.splitlines()[-1])
            check("the gradient was clipped", abs(-last - 0.5 / 1000 ** 0.5) < 1e-6)


CASES = cases(halves, rounding, types, numbers, standard_files, locales)
main(CASES, "musterd", "library")
