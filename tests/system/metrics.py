#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What workers report by muster_report(): status, summary and log have it; bad ones are refused.

usage: metrics.py CASE --muster MUSTER --musterd MUSTERD --reporter REPORTER
       metrics.py --list
"""
import json
import os
import re
import socket
import struct
import subprocess
import tempfile

from base import CALM, cases, main, must, until
from server import ERROR, REPORT, SECONDS, Server, each, error, fields, frame, hello, text


def run(a, folder, *words, options=(), samples="60"):
    """muster run with two workers. Return: the figures, and what was logged."""
    figures = os.path.join(folder, "figures")
    done = subprocess.run(
        [a.muster, "run", "-n", "2", "--samples", samples, "--listen", "127.0.0.1:0", "--grace",
         f"{SECONDS}s", *CALM, "--json", figures, *options, "--", a.reporter, *words], text=True,
        stdin=subprocess.DEVNULL, capture_output=True, timeout=100,
        env=os.environ | {"MUSTER_MUSTERD": a.musterd})
    must(done.returncode == 0, "the run failed:", done.stderr)
    with open(figures) as f:
        return json.load(f), done.stderr


def kept(a):
    """The summary and its JSON have the last values, also those of after the end of the job."""
    with tempfile.TemporaryDirectory() as folder:
        figures, log = run(a, folder, "progress=1", "late_ms=300", "metric=hold out")
    metrics, last = figures["metrics"], figures["commits"]
    must(metrics["hold out"] == {"value": 1, "version": last, "rank": 0, "reports": 1}, metrics)
    must(metrics["progress"] == {"value": last, "version": last, "rank": 0, "reports": last},
         metrics, last)
    must(re.search(rf"\nhold out +1 +{last} +0 +1\n", log), log)
    must(len(re.findall('info musterd: rank 0 reports "progress" for the first time', log)) == 1,
         log)
    must("debug" not in log, log)


def logged(a):
    """At debug every report is logged."""
    with tempfile.TemporaryDirectory() as folder:
        figures, log = run(a, folder, "progress=1", options=("--log-level", "debug"), samples="10")
    lines = re.findall(r'debug musterd: rank 0 reports "progress": (\d+) at version (\d+)', log)
    must(lines == [(str(v), str(v)) for v in range(1, figures["commits"] + 1)], log)


def shown(a):
    """muster status shows them of a job that runs."""
    server = Server(a.musterd, "-n", "1", "--samples", "1000000")
    worker = subprocess.Popen([a.reporter, "progress=1", "sleep_ms=5"],
                              env=os.environ | {"MUSTER_SERVER": server.address})

    def status(*words):
        return subprocess.run([a.muster, "status", "--timeout", f"{SECONDS}s", *words,
                               server.address], text=True, capture_output=True, timeout=100).stdout

    def told():
        figures = json.loads(status("--json", "-"))
        metric = figures["metrics"].get("progress", {"version": 0})
        return metric["version"] > 3 and metric["value"] == metric["version"]

    must(until(told, SECONDS), "never shown:", status())
    must(re.search(r"\nmetric +value +version +rank +reports\nprogress +\d+ +\d+ +0 +\d+\n",
                   status()), status())
    worker.kill()
    worker.wait()
    server.stop()


def followed(a):
    """A policy that follows a reported value changes with it: as it rises, K falls."""
    server = Server(a.musterd, "-n", "3", "--samples", "1000000", "--policy",
                    "adasync:kasync,2,1,loss=progress")
    workers = [subprocess.Popen([a.reporter, "progress=1", "sleep_ms=5"],
                                env=os.environ | {"MUSTER_SERVER": server.address})
               for _ in range(3)]

    def figures():
        done = subprocess.run([a.muster, "status", "--timeout", f"{SECONDS}s", "--json", "-",
                               server.address], text=True, capture_output=True, timeout=100)
        return json.loads(done.stdout) if done.returncode == 0 else {}

    must(until(lambda: figures().get("policy_now") == "kasync:1", SECONDS), figures())
    why = figures()["policy_why"]
    must(re.fullmatch(r"progress \S+ -> \S+, 3 live workers", why), why)
    for worker in workers:
        worker.kill()
        worker.wait()
    server.stop()


def messages(s):
    """(kind, body) of all that comes until the server closes."""
    data = b""
    while more := s.recv(65536):
        data += more
    while data:
        _, _, kind, length = struct.unpack_from("<IHHI", data)
        yield kind, data[12:12 + length]
        data = data[12 + length:]


def refused(a):
    """A value that is not finite, or a name that is empty, ends the session with a sentence."""
    server = Server(a.musterd, "-n", "2")
    for name, value, sentence in (("loss", float("nan"), "a metric that is infinite or NaN"),
                                  ("loss", float("-inf"), "a metric that is infinite or NaN"),
                                  ("", 1.0, "a metric without a name")):
        with server.connect() as s:
            s.settimeout(SECONDS)
            s.sendall(hello())
            s.recv(1, socket.MSG_PEEK)  # it is welcome
            s.sendall(frame(REPORT, fields(text(name), *each("dQ", value, 0))))
            errors = [error(body)[1] for kind, body in messages(s) if kind == ERROR]
        must(len(errors) == 1 and sentence in errors[0], sentence, errors)
    server.stop()


main(cases(kept, logged, shown, followed, refused), "muster", "musterd", "reporter",
     clock=("refused",))  # a caller has five seconds for its hello
