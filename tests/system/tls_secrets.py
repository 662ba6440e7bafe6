#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What is secret on control connections is nowhere where others may look: the tokens by which links
for data are let in, and the keys of tools.

usage: tls_secrets.py CASE --musterd MUSTERD --worker WORKER --muster MUSTER
"""
import re
import signal
import struct

from access import WELCOME
from base import Child, HANG_S, cases, check, main, must, until
from hostile_servers import APPOINT, serve
from searching import keys_stay_out_of_core_dumps, must_lack, no_keys, places_of
from server import hello
from tls import Job, options, prove

# A token is told after the address of the listener that it is for, and after its tag and length.
TOLD = re.compile(rb"\.sock..\x10\0\0\0(.{16})", re.S)


def hear_tokens(s, message, kind):
    """Says the message, and returns the tokens of the first answer of that kind."""
    s.settimeout(HANG_S)
    s.sendall(message)
    heard, body = None, b""
    with s.makefile("rb") as answers:
        while heard != kind:
            _, _, heard, length = struct.unpack("<IHHI", answers.read(12))
            body = answers.read(length)
    tokens = TOLD.findall(body)
    must(tokens and all(any(token) for token in tokens), f"tokens in {body}")
    return tokens


def no_tokens(tokens, text):
    for token in tokens:
        must_lack(text, token, "a token")
    found = re.search(r"\b[0-9a-fA-F]{32}\b", text)
    check(f"nor is another that looks like one: {found}", not found)


def ask(job, seen, role, *words):
    """Runs a tool of this role, and looks at its process while the server lets it wait."""
    job.server.process.send_signal(signal.SIGSTOP)
    try:
        tool = Child([job.a.muster, *words, job.address, *options(job.keys, role)])
        check(f"muster {words[0]} has asked", until(lambda: job.server.unread() > 0, HANG_S))
        seen.append(places_of(tool))
        keys_stay_out_of_core_dumps(job.keys, role, tool.process.pid)
    finally:
        job.server.process.send_signal(signal.SIGCONT)
    status, said = tool.end(HANG_S)
    seen.append(said)
    check(f"it is answered: {status}", status is not None)
    return said


def a_worker_s_tokens_and_keys_of_tools(a):
    """A worker by hand is told its tokens, and leaves; then the job runs, and tools ask it."""
    with Job(a, "-n", "2", "--servers", "2", "--log-level", "debug") as job:
        job.elems, seen = 9001, []
        job.join()
        with prove(job, "worker") as s:
            tokens = hear_tokens(s, hello(rank=1, elems=job.elems), WELCOME)
            check(f"it is told {len(tokens)} tokens", len(tokens) == 2)
            # While they are good.
            seen.append(ask(job, seen, "observer", "status", "--timeout", f"{HANG_S}s"))
        job.lost(1)
        for rank in range(2):
            job.member(rank, *job.ended_by(0))
        job.begin(ranks=[0])
        seen.append(places_of(job.server, *job.children()))
        wait = ["--timeout", f"{HANG_S}s"]
        ask(job, seen, "observer", "status", "--json", "-", *wait)
        ask(job, seen, "operator", "evict", *wait, "9")
        said = ask(job, seen, "operator", "finish", *wait)
        check(f"an operator ends the job: {said.strip()}", "is finished" in said)
        check("all workers end well", job.codes(HANG_S)[-2:] == [0, 0])
        for server in job.server, *job.follower:
            status, said = server.end(HANG_S)
            check("so does a server", status == 0)
            seen.append(said)
        seen += [worker.said() for worker in job.worker]
        no_tokens(tokens, "\n".join(seen))
        no_keys(job.keys, "\n".join(seen))


def a_follower_s_token(a):
    """A follower by hand is told its token, and goes: the job ends, in words without the token."""
    with Job(a, "-n", "1", "--servers", "2", "--log-level", "debug") as job:
        job.elems, seen = 9001, []
        with prove(job, "server") as s:
            worker = job.member(0)
            tokens = hear_tokens(s, serve(), APPOINT)
            seen.append(ask(job, seen, "observer", "status", "--timeout", f"{HANG_S}s"))
            seen.append(places_of(job.server, worker))
        for status, said in job.server.end(HANG_S), worker.end(HANG_S):
            check(f"the job ends: {said.strip()[-120:]}", status == 1)
            seen.append(said)
        no_tokens(tokens, "\n".join(seen))


if __name__ == "__main__":
    main(cases(a_worker_s_tokens_and_keys_of_tools, a_follower_s_token),
         "musterd", "worker", "muster")
