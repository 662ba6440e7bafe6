#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Jobs of real processes whose control connections are TLS, and strangers at their ports.

usage: tls.py CASE --musterd PATIENT_MUSTERD --worker WORKER --muster MUSTER --impostors IMPOSTORS
"""
import contextlib
import errno
import os
import re
import shutil
import signal
import socket
import ssl
import stat
import struct
import subprocess
import tempfile

import base
from base import CALM, HANG_S, Child, cases, check, main, must, until, worker_environment
from searching import keys_stay_out_of_core_dumps, no_keys, places_of
from server import ASK_STATUS, HELLO, PROTOCOL, Server, frame, read_error, read_log

# More than the server keeps of one address (512): so some have to make room.
HALF_OPEN = 1000
# What the server may grow by while they are there: each may cost what a handshake takes.
GROWTH_KIB = 64 << 10
# What it may grow by while a thousand callers come and go: a leak would be 16 KiB of each.
LEFT_KIB = 16 << 10


def options(keys, role):
    return ["--tls-ca", f"{keys}/ca.pem", "--tls-cert", f"{keys}/{role}.pem",
            "--tls-key", f"{keys}/{role}.key"]


def environment(keys, role):
    return {"MUSTER_TLS_CA": f"{keys}/ca.pem", "MUSTER_TLS_CERT": f"{keys}/{role}.pem",
            "MUSTER_TLS_KEY": f"{keys}/{role}.key"}


def make_keys(a, folder):
    subprocess.run([a.muster, "key", "new", folder], check=True, stdout=subprocess.DEVNULL)
    return folder


class Job(base.Job):
    """A job whose server and workers have certificates of an authority of their own."""

    def __init__(self, a, *more, make=make_keys):
        self.keys = make(a, f"/tmp/muster-test-tls-{os.getpid()}-keys")
        super().__init__(a, *more, *options(self.keys, "server"), *CALM)
        self.follower = []

    def __exit__(self, *what):
        super().__exit__(*what)
        shutil.rmtree(self.keys)

    def children(self):
        return [*self.follower, *self.worker]

    def join(self, *more, role="server"):
        self.follower.append(Child([self.a.musterd, "--join", self.address,
                                    *options(self.keys, role), *more]))

    def member(self, rank, *words, cert="worker"):
        return self.work(rank, *words, **environment(self.keys, cert))

    def tool(self, *words, role="operator", keys=None):
        """(exit status, what it said)"""
        wait = [] if words[0] == "key" else ["--timeout", f"{HANG_S}s"]
        done = subprocess.run([self.a.muster, *words, *wait, *options(keys or self.keys, role)],
                              capture_output=True, text=True, timeout=2 * HANG_S, check=False)
        return done.returncode, done.stdout + done.stderr


def two_servers_and_three_workers(a):
    """The result is exact, and nothing that is secret is where others may look."""
    with Job(a, "-n", "3", "--servers", "2", "--log-level", "debug") as job:
        job.elems = 9001  # a part for each server
        job.join()
        for rank in range(3):
            job.member(rank, *job.ended_by(0))
        job.begin()
        status, said = job.tool("status", job.address, role="observer")
        check(f"an observer sees the status: {said.splitlines()[:1]}", status == 0)
        status, rows = job.tool("status", job.address, "--json", "-", role="observer")
        check("also as JSON", status == 0 and rows.startswith("{"))
        seen = said + rows + places_of(job.server, *job.children())
        for server in job.server, *job.follower:
            keys_stay_out_of_core_dumps(job.keys, "server", server.process.pid)
        job.end_job()
        check("all workers end well", job.codes(HANG_S) == [0, 0, 0])
        status, log = job.server.end(HANG_S)
        check(f"so does the server: {log.splitlines()[-1]}", status == 0)
        no_keys(job.keys, seen + log + job.follower[0].end(HANG_S)[1])
        job.proven()


# What a caller of TCP begins with: common/transport/tcp/frame.h.
TCP_HELLO = b"mtcp" + struct.pack("<I", 1) + bytes(56)
TCP_ANSWER = struct.Struct("<4sIii")


def data_port(job):
    """Where the second server lets links in, as the first one says."""
    where = re.compile(r"server 1 serves .* at ([0-9.]+):([0-9]+)")
    until(lambda: where.search(job.server.said()), HANG_S)
    host, port = where.search(job.server.said()).groups()
    return host, int(port)


def prove_at(job, role, where):
    """A connection that has proven the role, for bytes of any kind."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False  # certificates name none
    context.load_verify_locations(f"{job.keys}/ca.pem")
    context.load_cert_chain(f"{job.keys}/{role}.pem", f"{job.keys}/{role}.key")
    return context.wrap_socket(where)


HALF_OPEN_AT_DATA = 40  # of the 64 that there is room for


@contextlib.contextmanager
def half_open_at_the_data_port(job):
    """Callers that stop within the handshake, each after some bytes, and stay."""
    half = [socket.create_connection(data_port(job), timeout=HANG_S)
            for _ in range(HALF_OPEN_AT_DATA)]
    for i, s in enumerate(half):
        s.sendall(b"\x16\x03\x01\x02\x00\x01"[:i % 7])
    yield
    for s in half:
        s.close()


def unproven_at_the_data_port(a, job):
    """A caller that proves nothing is named with its address, and why. These lines and those of
    strangers_at_the_data_port() are as many as a data port has in ten seconds."""
    follower, port = job.follower[0], ":".join(map(str, data_port(job)))
    other = make_keys(a, job.path("other"))
    for name, words, reason in (
            ("without a certificate", [], "shows no certificate"),
            ("with one that has expired", forge(job, job.path("old"), 9), "has expired"),
            ("with one of another authority",
             ["-cert", f"{other}/worker.pem", "-key", f"{other}/worker.key"],
             "is not from the authority")):
        openssl("s_client", "-connect", port, "-CAfile", f"{job.keys}/ca.pem", *words, text="Q\n")
        line = re.compile(rf"warn musterd: 127\.0\.0\.1:\d+ .*{reason}")
        check(f"one {name} is not let in: {reason}",
              until(lambda r=line: r.search(follower.said()), HANG_S))
    with contextlib.suppress(OSError), \
            prove_at(job, "worker", socket.create_connection(data_port(job), HANG_S)) as s:
        s.sendall(b"GET / HTTP/1.0\r\n\r\n")
        read_all(s)
    line = re.compile(r"127\.0\.0\.1:\d+ sent something else than a hello to the data port tcp:")
    check("one that proves itself and says nonsense is sent away",
          until(lambda: line.search(follower.said()), HANG_S))


def strangers_at_the_data_port(job):
    """One that sends plain bytes is told why it is not let in, and so is a certificate that may
    only look on."""
    follower = job.follower[0]
    with socket.create_connection(data_port(job), timeout=HANG_S) as s:
        s.sendall(TCP_HELLO)
        magic, _, error, _ = TCP_ANSWER.unpack(s.recv(TCP_ANSWER.size, socket.MSG_WAITALL))
        check("a plain caller is told to speak TLS",
              magic == b"mtcp" and error == -errno.EKEYREJECTED)
    check("the log says it, too", until(
        lambda: "does not speak TLS at the data port" in follower.said(), HANG_S))
    with contextlib.suppress(ssl.SSLError), \
            prove_at(job, "observer", socket.create_connection(data_port(job), HANG_S)) as s:
        s.recv(1)
    check("one that may only look on is not let in", until(
        lambda: "which has observer and may send no gradients" in follower.said(), HANG_S))


def job_over_tcp(a, privacy, *more):
    """The result of two servers and three workers is exact, and their logs say @privacy."""
    with Job(a, "-n", "3", "--servers", "2", "--transport", "tcp", *more) as job:
        job.elems = 9001
        job.join("--transport", "tcp")
        job.member(0, *job.ended_by(0))
        with contextlib.ExitStack() as meanwhile:
            if privacy != "not encrypted":
                meanwhile.enter_context(half_open_at_the_data_port(job))
                unproven_at_the_data_port(a, job)
                strangers_at_the_data_port(job)
            for rank in (1, 2):
                job.member(rank, *job.ended_by(0))
            job.begin()
        for server in job.server, job.follower[0]:
            check(f"each server says that its data are {privacy}", until(
                lambda s=server: f"travel over TCP, {privacy}\n" in s.said(), HANG_S))
        job.end_job()
        check("all workers end well", job.codes(HANG_S) == [0, 0, 0])
        check("so does the server", job.server.end(HANG_S)[0] == 0)
        job.proven()


def gradients_over_tcp(a):
    """They are encrypted, and who has no certificate for them comes to nothing, and keeps nobody
    out."""
    job_over_tcp(a, "encrypted (TLS 1.3)")


def gradients_over_tcp_in_the_clear(a):
    """For who trusts the network of the data, and not that of the control port."""
    job_over_tcp(a, "not encrypted", "--data-tls", "off")


def memory_kib(process):
    with open(f"/proc/{process.pid}/status") as f:
        return int(re.search(r"VmRSS:\s+(\d+)", f.read()).group(1))


def is_sanitized(program, *sanitizers):
    with open(program, "rb") as f:
        text = f.read()
    return any(name in text for name in sanitizers)


def growth_kib(musterd):
    """The thread sanitizer keeps up to four words for each that is used."""
    return (8 if is_sanitized(musterd, b"__tsan_init") else 1) * GROWTH_KIB


def a_thousand_half_open(a):
    """They are there when an honest worker joins, and do not cost the server much."""
    with Job(a, "-n", "2", "--join-timeout", "never") as job:
        job.member(0, *job.ended_by(0))
        check("the first joins", until(lambda: "rank 0 joined" in job.server.said(), HANG_S))
        before = memory_kib(job.server.process)
        half = []
        for i in range(HALF_OPEN):
            half.append(job.server.connect())
            # The beginning of a record of a handshake, so that the server expects the rest.
            half[-1].send(b"\x16\x03\x01\x02\x00\x01"[:i % 7])
        job.member(1, *job.ended_by(0))
        check("the second joins while they are there",
              until(lambda: "rank 1 joined" in job.server.said(), HANG_S))
        grown = memory_kib(job.server.process) - before
        job.begin()
        job.end_job()
        for s in half:
            s.close()
        ends = job.ends(HANG_S)
        must([status for status, _ in ends] == [0, 0], ends, job.server.said()[-2000:])
        check(f"the server has grown by {grown} KiB", grown < growth_kib(a.musterd))
        check("and ends well", job.server.end(HANG_S)[0] == 0)


class Impostors:
    """Callers with certificates of another authority, a thousand a second if the server keeps up,
    until this is left."""

    def __init__(self, a, job, keys):
        host, port = job.address.split(":")
        self.log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            [a.impostors, host, port, f"{keys}/worker.pem", f"{keys}/worker.key", "1000", "100000"],
            stdin=subprocess.PIPE, stdout=self.log, stderr=self.log)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def came(self, count):
        check(f"{count} impostors have come and were sent away",
              until(lambda: f"\n{count} were sent away\n" in f"\n{read_log(self.log)}", 5 * HANG_S))

    def end(self):
        self.process.stdin.close()
        status = self.process.wait(HANG_S)
        check(f"none was believed: {read_log(self.log).splitlines()[-1]}", status == 0)


def a_thousand_impostors(a):
    """A worker joins and a job runs while they come, and they leave nothing behind."""
    # A sanitizer keeps memory that was freed. There a fifth of the impostors is enough, for all
    # of them come by the same code.
    sanitized = is_sanitized(a.musterd, b"__asan_init", b"__tsan_init")
    with Job(a, "-n", "2", "--join-timeout", "never") as job:
        job.member(0, "sleep_us=2000", *job.ended_by(0))
        check("the first joins", until(lambda: "rank 0 joined" in job.server.said(), HANG_S))
        with Impostors(a, job, make_keys(a, job.path("other"))) as impostors:
            impostors.came(20 if sanitized else 100)
            before = memory_kib(job.server.process)
            job.member(1, "sleep_us=2000", *job.ended_by(0))
            job.begin()
            impostors.came(100 if sanitized else 500)
            impostors.end()
            grown = memory_kib(job.server.process) - before
            job.end_job()
            check("the workers end well", job.codes(HANG_S) == [0, 0])
        status, log = job.server.end(HANG_S)
        check("and so does the server", status == 0)
        check("which says what they show", "which is not from the authority" in log)
        check(f"hundreds more have cost {grown} KiB", grown < LEFT_KIB or sanitized)
        job.proven()


def openssl(*words, text=""):
    done = subprocess.run(["openssl", *words], input=text, capture_output=True, text=True,
                          timeout=HANG_S, check=False)
    return done.returncode, done.stdout + done.stderr


def forge(job, folder, days_ago, role="worker"):
    """A certificate of the job's authority that began so long ago and was valid for a day."""
    os.makedirs(folder, exist_ok=True)
    key, request, ca = f"{folder}/x.key", f"{folder}/x.csr", f"{folder}/ca"
    os.makedirs(ca, exist_ok=True)
    with open(f"{ca}/index", "w"), open(f"{ca}/extensions", "w") as f:
        f.write(f"subjectAltName=URI:muster:{role}\n" if role else "subjectKeyIdentifier=hash\n")
    with open(f"{ca}/config", "w") as f:
        f.write(f"[ca]\ndefault_ca=c\n[c]\ndatabase={ca}/index\nnew_certs_dir={ca}\n"
                "default_md=sha256\nrand_serial=yes\npolicy=p\n[p]\ncommonName=supplied\n")
    must(openssl("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                 "-subj", "/CN=forged", "-keyout", key, "-out", request)[0] == 0, "a request")
    begin, end = (subprocess.check_output(["date", "-u", "-d", f"{days_ago - n} days ago",
                                           "+%y%m%d%H%M%SZ"], text=True).strip() for n in (0, 1))
    status, said = openssl("ca", "-batch", "-notext", "-config", f"{ca}/config",
                           "-cert", f"{job.keys}/ca.pem", "-keyfile", f"{job.keys}/ca.key",
                           "-in", request, "-out", f"{folder}/x.pem", "-startdate", begin,
                           "-enddate", end, "-extfile", f"{ca}/extensions")
    must(status == 0, said)
    return ["-cert", f"{folder}/x.pem", "-key", key]


AUTHORITY = "basicConstraints=critical,CA:TRUE"
EC = ("ec", "-pkeyopt", "ec_paramgen_curve:P-256")
RSA = ("rsa:2048",)


END = "-----END CERTIFICATE-----\n"


def issue(folder, subject, extension, issuer=None, key=EC):
    """NAME.pem and NAME.key of a subject that begins with CN=NAME. Without an issuer it signs
    itself. The certificate of an issuer other than the root is appended to NAME.pem."""
    name = re.match("/CN=([a-z]+)", subject).group(1)
    cert = f"{folder}/{name}.pem"
    with open(f"{folder}/config", "w") as f:
        f.write("[req]\ndistinguished_name=d\nx509_extensions=x\n[d]\n"
                f"[x]\nsubjectKeyIdentifier=hash\n{extension}\n")
    by = ["-CA", f"{folder}/{issuer}.pem", "-CAkey", f"{folder}/{issuer}.key"] if issuer else []
    status, said = openssl("req", "-x509", "-config", f"{folder}/config", "-newkey", *key, "-nodes",
                           "-subj", subject, "-days", "1", "-keyout", f"{folder}/{name}.key",
                           "-out", cert, *by)
    must(status == 0, said)
    if key == RSA:  # in PKCS #1, the default of cert-manager
        status, said = openssl("pkey", "-in", f"{folder}/{name}.key", "-traditional",
                               "-out", f"{folder}/rsa")
        must(status == 0, said)
        os.replace(f"{folder}/rsa", f"{folder}/{name}.key")
    if issuer not in (None, "ca"):
        with open(cert, "a") as out, open(f"{folder}/{issuer}.pem") as f:
            out.write(f.read())


def make_site(_, folder):
    """What other authorities make: a key on RSA, a role as an organizational unit, an authority
    between the root and the certificates, which for the server's is in ca.pem alone."""
    os.mkdir(folder, 0o700)
    uri = "subjectAltName=URI:muster:"
    issue(folder, "/CN=ca", AUTHORITY, key=RSA)
    issue(folder, "/CN=between", AUTHORITY, "ca")
    issue(folder, "/CN=server", uri + "server", "between", RSA)
    issue(folder, "/CN=unit/O=site/OU=all/OU=muster:worker", "", "ca")
    issue(folder, "/CN=under", uri + "worker", "between")
    issue(folder, "/CN=large", uri + "worker", "ca", RSA)
    issue(folder, "/CN=observer/OU=muster:observer", "", "between", RSA)
    with open(f"{folder}/server.pem") as f:
        own, between = (piece + END for piece in f.read().split(END)[:2])
    shutil.copy(f"{folder}/ca.pem", f"{folder}/root.pem")
    with open(f"{folder}/server.pem", "w") as out, open(f"{folder}/ca.pem", "a") as ca:
        out.write(own)
        ca.write(between)
    return folder


def certificates_of_a_site(a):
    """Each of them joins, with its own role and no other."""
    kinds = ["unit", "under", "large"]
    with Job(a, "-n", str(len(kinds)), make=make_site) as job:
        said = openssl("s_client", "-connect", job.address, "-CAfile", f"{job.keys}/root.pem",
                       text="Q\n")[1]
        check("the server shows what is between, also where its authority's file has that",
              "Verification: OK" in said)
        shown = subprocess.run([a.muster, "key", "show", f"{job.keys}/ca.pem"], text=True,
                               capture_output=True, check=True).stdout.splitlines()
        check("muster key show tells of each certificate of a file", len(shown) == 2
              and '"ca", an authority' in shown[0] and '"between", an authority' in shown[1])
        for role in [*kinds, "observer"]:
            status, said = job.tool("status", job.address, role=role)
            check(f"{role} sees the status", status == 0)
            status, said = job.tool("evict", "0", job.address, role=role)
            gives = "observer" if role == "observer" else "worker"
            check(f"{role} is no operator: {said.strip()}",
                  status == 2 and f"certificate gives the role {gives}, and" in said)
        for rank, kind in enumerate(kinds):
            job.member(rank, "rounds=3", cert=kind)
        check("all workers end well", job.codes(HANG_S) == [0] * len(kinds))
        check("and so does the server", job.server.end(HANG_S)[0] == 0)


def strangers(a):
    """A caller that proves nothing gets a refusal, the log says why, and an honest worker joins
    after it."""
    with Job(a, "-n", "1") as job:
        call = ["s_client", "-connect", job.address, "-CAfile", f"{job.keys}/ca.pem"]
        worker = ["-cert", f"{job.keys}/worker.pem", "-key", f"{job.keys}/worker.key"]
        table = [
            ("no certificate", [], "shows no certificate"),
            ("an older TLS", [*worker, "-tls1_2"], "older TLS than 1.3"),
            ("an expired one", forge(job, job.path("old"), 9), "has expired"),
            ("one of tomorrow", forge(job, job.path("new"), -2), "not valid yet"),
            ("one without a role", forge(job, job.path("none"), 0, ""), "has no role"),
        ]
        for name, words, reason in table:
            openssl(*call, *words, text="Q\n")
            check(f"{name}: the log says: {reason}",
                  until(lambda r=reason: r in job.server.said(), HANG_S))
        check("costly key exchanges are refused", "handshake failure" in
              openssl(*call, *worker, "-groups", "ffdhe8192", text="Q\n")[1])
        many = job.path("many.pem")
        with open(f"{job.keys}/ca.pem", encoding="ascii") as ca, \
                open(many, "w", encoding="ascii") as f:
            f.write(ca.read() * 40)
        check("a worker that shows 16 KiB of certificates is refused: 12 are read", "alert" in
              openssl(*call, *worker, "-cert_chain", many, "-ign_eof")[1])
        check("it speaks TLS 1.3 with a worker and gives no ticket",
              "New, TLSv1.3" in (said := openssl(*call, *worker, text="Q\n")[1])
              and "BEGIN SSL SESSION" not in said)
        check("and shows its own certificate alone: the authority's is there already",
              openssl(*call, *worker, "-showcerts", text="Q\n")[1].count("BEGIN CERT") == 1)
        with job.server.connect() as s:
            s.settimeout(HANG_S)
            s.sendall(b"GET / HTTP/1.0\r\n\r\n")
            check("plain text is answered in plain words", b"MUSTER_TLS_CA" in read_all(s))
        status, said = job.tool("status", job.address, keys=make_keys(a, job.path("other")))
        check(f"another job's operator is refused: {said.strip()}",
              status == 2 and "authority" in said and "operator.pem" in said)
        plain = subprocess.run([a.muster, "status", "--timeout", f"{HANG_S}s", job.address],
                               capture_output=True, text=True, timeout=2 * HANG_S, check=False)
        check(f"a plain tool is told: {plain.stderr.strip()}",
              plain.returncode == 2 and "--tls-ca" in plain.stderr)
        for command in (["finish"], ["evict", "0"], ["rest", "0"], ["policy"]):
            words = [*command, job.address, *(["async"] if command == ["policy"] else [])]
            status, said = job.tool(*words, role="observer")
            check(f"an observer may not {command[0]}: {said.strip()}",
                  status == 2 and "observer" in said and "observer.pem" in said)
        check("nobody has joined", "joined" not in job.server.said())
        job.member(0, "rounds=3")
        check("the honest worker ends well", job.codes(HANG_S) == [0])
        check("and so does the server", job.server.end(HANG_S)[0] == 0)


def a_follower_that_is_not_let_in(a):
    """Which end does not believe the other makes no difference: it exits with 2 and names its file.
    The leader goes on, and takes the one that shows the right file."""
    with Job(a, "-n", "1", "--servers", "2") as job:
        other = make_keys(a, job.path("other"))
        both = job.path("both.pem")
        with open(both, "w") as out:
            for keys in (job.keys, other):
                with open(f"{keys}/ca.pem") as f:
                    out.write(f.read())
        own = options(other, "server")
        table = [
            ("another authority", own, job.address, f"{other}/server.pem"),
            ("a certificate of another authority", ["--tls-ca", both, *own[2:]], job.address,
             f"{other}/server.pem"),
            ("plain text to TLS", [], job.address, "--tls-cert"),
        ]
        plain = Server(a.musterd, "-n", "1", "--servers", "2", *CALM)
        try:
            table.append(("TLS to plain text", own, plain.address, f"{other}/server.pem"))
            for name, words, address, file in table:
                status, said = Child([a.musterd, "--join", address, *words]).end(HANG_S)
                check(f"{name}: {status}, {said.splitlines()[-2:]}", status == 2 and file in said
                      and "takes no part in job" in said and "has failed" not in said)
        finally:
            plain.kill()
        job.join()
        job.elems = 9001
        job.member(0, "rounds=3")
        check("the worker ends well", job.codes(HANG_S) == [0])
        check("and so does the leader", job.server.end(HANG_S)[0] == 0)
        check("and its follower", job.follower[0].end(HANG_S)[0] == 0)


def a_worker_that_poses_as_a_server(a):
    """Its certificate has no extended key usage, so only the missing role can tell."""
    with Job(a, "-n", "1") as job:
        words = forge(job, job.path("poser"), 0)
        poser = Child(["openssl", "s_server", "-accept", "127.0.0.1:0", "-CAfile",
                       f"{job.keys}/ca.pem", "-Verify", "4", "-www", *words])
        try:
            found = re.compile(r"ACCEPT \S*?:(\d+)\n")
            check("it listens", until(lambda: found.search(poser.said()), HANG_S))
            address = "127.0.0.1:" + found.search(poser.said()).group(1)
            status, said = job.tool("status", address)
            check(f"a tool does not believe it: {said.strip()}",
                  status == 2 and "is no server's" in said)
            refusals = re.compile("SSL alert number")
            check("which says so", until(lambda: refusals.search(poser.said()), HANG_S))
            told = len(refusals.findall(poser.said()))
            status, said = Child([a.worker, job.log, "100"], **worker_environment(address, 0),
                                 **environment(job.keys, "worker")).end(HANG_S)
            check(f"nor does a worker: {said.strip()}", status == 1 and "is no server's" in said)
            check("which ends the handshake, and so gives it nothing",
                  until(lambda: len(refusals.findall(poser.said())) > told, HANG_S))
        finally:
            poser.kill()


def read_all(s):
    data = b""
    while more := s.recv(4096):
        data += more
    return data


def prove(job, role):
    return prove_at(job, role, job.server.connect())


def answer(job, role, message):
    """What the server answers to the message, or None: a test that stands still for five seconds
    is hung up on."""
    with contextlib.suppress(OSError), prove(job, role) as s:
        s.settimeout(HANG_S)
        s.sendall(message)
        return read_error(s)
    return None


def until_heard(ask):
    """The first answer that is not None."""
    said = []
    until(lambda: said.append(ask()) or said[-1] is not None, HANG_S)
    return said[-1]


def peers_of_an_older_protocol(a):
    """A peer that proves itself is told both numbers, and the log names it; one without TLS is
    refused before its bytes are looked at. Neither keeps an honest worker out."""
    old = PROTOCOL - 1
    with Job(a, "-n", "1") as job:
        for role, kind in ("worker", HELLO), ("observer", ASK_STATUS):
            said = until_heard(lambda r=role, k=kind: answer(job, r, frame(k, protocol=old)))
            check(f"an older {role} is told both numbers: {said}",
                  said and f"speaks protocol {old}, this server speaks {PROTOCOL}" in said[1])
        check("the log says it of both", until(lambda: job.server.said().count(
            f"speaks protocol {old}, this server speaks {PROTOCOL}") >= 2, HANG_S))
        said = job.server.say(frame(HELLO, protocol=old), HANG_S)
        check(f"in plain text it is told to prove itself: {said}",
              said and said[0] == -errno.EACCES and "MUSTER_TLS_CA" in said[1])
        job.member(0, "rounds=3")
        check("an honest worker ends well", job.codes(HANG_S) == [0])
        check("and so does the server", job.server.end(HANG_S)[0] == 0)


def bad_files(a):
    """A sentence that names the file and the fix, and exit status 2."""
    with Job(a, "-n", "1") as job:
        worker = options(job.keys, "worker")
        os.chmod(f"{job.keys}/observer.key", 0o644)
        os.chmod(job.keys, 0o755)
        mixed = [*worker[:4], "--tls-key", f"{job.keys}/operator.key"]
        table = [
            ([a.musterd, "-n", "1", *worker], "needs one whose URI or OU is muster:server"),
            ([a.musterd, "-n", "1", *worker[:4]], "--tls-key is missing"),
            ([a.muster, "status", job.address, *mixed], "does not belong to the certificate"),
            ([a.muster, "status", job.address, *options(job.keys, "observer")], "chmod 600"),
            ([a.muster, "key", "new", job.keys], "is not empty"),
            ([a.muster, "key", "show", f"{job.keys}/ca.key"], "holds no certificate"),
        ]
        for command, words in table:
            done = subprocess.run(command, capture_output=True, text=True, timeout=HANG_S,
                                  check=False)
            check(f"{done.stderr.splitlines()[:1]}",
                  done.returncode == 2 and words in done.stderr)
        again = job.path("again")
        done = subprocess.run(["sh", "-c", "trap '' XFSZ; ulimit -f 0; exec \"$0\" key new \"$1\"",
                               a.muster, again], capture_output=True, text=True, timeout=HANG_S,
                              check=False)
        check(f"on a full disk no half of a set stays: {done.stderr.strip()}",
              done.returncode == 1 and os.listdir(again) == [])
        make_keys(a, again)
        for role, words in ("worker", "are in order: worker"), ("server", "not the role server"):
            said = subprocess.run([a.muster, "doctor", "--role", role, *worker], text=True,
                                  capture_output=True, timeout=HANG_S, check=False).stdout
            check(f"the doctor looks at the files of a {role}", words in said)
        said = subprocess.run([a.muster, "doctor", *options(job.keys, "observer")], text=True,
                              capture_output=True, timeout=HANG_S, check=False).stdout
        check("the doctor says what is wrong with files, and the fix",
              "FAIL     identity" in said and "chmod 600" in said and "muster key new" in said)
        check("a directory that is refused keeps its mode",
              stat.S_IMODE(os.stat(job.keys).st_mode) == 0o755)
        lone = job.work(0)
        job.worker.clear()
        status, said = lone.end(HANG_S)
        check(f"a worker without certificates is told: {said.strip()[-300:]}",
              status == 1 and "MUSTER_TLS_CERT" in said)


def keys_of_a_run_that_is_killed(a):
    """Certificates that muster run has made for itself go with the next run of the same user, where
    it was killed by SIGKILL; those of a run that lives stay."""
    with tempfile.TemporaryDirectory() as place, tempfile.TemporaryDirectory() as folder:
        def run(name, *more):
            return Child([a.muster, "run", "-n", "1", "--transport", "tcp", "--data-tls", "on",
                          "--listen", "127.0.0.1:0", *CALM, *more, "--", a.worker,
                          os.path.join(folder, name), "1000", "sleep_us=1000", "rounds=1000000"],
                         TMPDIR=place, KEYS_MARK=folder)

        def have_begun(*names):
            return until(lambda: all(os.path.exists(os.path.join(folder, f"{name}.0.1"))
                                     for name in names), HANG_S)

        with contextlib.ExitStack() as stack:
            runs = [run("first"), run("second")]
            for one in runs:
                stack.callback(one.kill)
            check("two runs have keys of their own", have_begun("first", "second") and
                  len(os.listdir(place)) == 2)
            runs[0].kill()
            left = set(os.listdir(place))
            check(f"the keys of one that was killed stay: {left}", len(left) == 2)
            status, said = run("third", "--commits", "5").end(HANG_S)
            check(f"another one ends well: {said.strip().splitlines()[-1]}", status == 0)
            kept = set(os.listdir(place))
            check(f"and has removed them, and its own: {kept}", len(kept) == 1 and kept < left)
            runs[1].signal(signal.SIGINT)
            runs[1].end(HANG_S)
            check("the last takes its own with it", os.listdir(place) == [])
            check("no process is left", until(lambda: not base.tagged(folder), HANG_S))


CASES = cases(two_servers_and_three_workers, gradients_over_tcp, gradients_over_tcp_in_the_clear,
              a_thousand_half_open, a_thousand_impostors, strangers, a_follower_that_is_not_let_in,
              a_worker_that_poses_as_a_server, certificates_of_a_site, peers_of_an_older_protocol,
              bad_files, keys_of_a_run_that_is_killed)
if __name__ == "__main__":
    # A caller in plain text has five seconds for its first words.
    main(CASES, "musterd", "worker", "muster", "impostors",
         clock=("strangers", "peers_of_an_older_protocol"))
