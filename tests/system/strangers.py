#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What comes where the next servers of a job are waited for, and is not what was lost: a server
with other options, that of another job, ranks that are all new, or nobody (--server-patience,
workers own). There is a sentence, and nothing is lost.

usage: strangers.py CASE --musterd MUSTERD --worker GOES_ON
       strangers.py --list
"""
import re
import signal

from base import cases, check, main, must, until
from generations import SMALL, WORKERS, Line, exact, undisturbed
from server import SECONDS

COMMITS, MANY = 30, 500


def set_options(line, **options):
    """The servers from the next one on have these in place of theirs, or besides."""
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        if flag in line.options:
            line.options[line.options.index(flag) + 1] = value
        else:
            line.options += [flag, value]


def told(line, workers):
    """What these workers say last; all of them end with an error."""
    words = []
    for worker in workers:
        status, said = worker.end(SECONDS)
        must(status == 3, f"a worker ends with {status}: {said} {line.said()}")
    for rank in range(WORKERS):
        words.append(" ".join(sum(line.lines(rank, "error", process=1)[-1:], [])))
    return words


def other_memory(a):
    """Slots, versions in memory and threads are no part of what workers bring."""
    digest = undisturbed(a, MANY, *SMALL)
    with Line(a, "--commits", str(MANY), "--slots", "2") as line:
        line.join_all(*SMALL)
        for version, options in ((5, {"slots": "3"}), (15, {"slots": "1", "buffers": "9"}),
                                 (25, {"buffers": "4", "history": "32", "shards": "1"})):
            line.reaches(version)
            line.server.kill()
            set_options(line, **options)
            line.lead()
        exact(line, MANY, digest)


def job_of_another_name(a):
    """It goes on, whoever comes to it. The workers try on until their own job is there again."""
    with Line(a, "--commits", str(COMMITS)) as line:
        line.join_all("elems=1000", "pace_us=20000")
        line.reaches(3)
        line.server.kill()
        set_options(line, job="other")
        line.lead()
        words = 'no other lets it come back yet: there is no job "default" here, this server ' \
                'runs "other"'
        must(until(lambda: all(words in worker.said() for worker in line.worker), SECONDS),
             line.said())
        check("the other job waits for its own workers", line.server.process.poll() is None)
        line.server.kill()
        set_options(line, job="default")
        line.lead()
        exact(line, COMMITS, undisturbed(a, COMMITS, *SMALL))


def job_of_another_name_that_stays(a):
    """When patience is over, the workers end, and say what they have met."""
    with Line(a, "--commits", "100000", patience="2s") as line:
        line.join_all(*SMALL)
        line.reaches(5)
        line.server.kill()
        set_options(line, job="other")
        line.lead()
        for words in told(line, line.worker):
            check(words, words.startswith("error -107 ") and "--server-patience 2 s" in words and
                  'there is no job "default" here, this server runs "other"' in words)
        check("the other job waits for its own workers", line.server.process.poll() is None)


def run_of_others(a):
    """A job of the same name has begun at the address. Workers that come back there are told so,
    and it goes on."""
    with Line(a, "--commits", str(MANY), patience="1s") as line:
        line.join_all(*SMALL)
        line.reaches(5)
        for worker in line.worker:
            worker.signal(signal.SIGSTOP)
        line.kill_server()
        first, line.worker = line.worker, []
        try:
            line.join_all("elems=1000", "pace_us=20000")
            must(until(lambda: all(line.lines(rank, "version", process=2)
                                   for rank in range(WORKERS)), SECONDS), line.said())
            for worker in first:
                worker.signal(signal.SIGCONT)
            for words in told(line, first):
                check(words, re.search(
                    r"comes back with version \d+ of run \w{16}, and this server of job "
                    r'"default" is of run \w{16}: end the workers that are left', words))
            ends = [worker.end(SECONDS)[0] for worker in line.worker]
            last = [line.lines(rank, "end", process=2)[0][1:] for rank in range(WORKERS)]
            check(f"the other run has lost nothing: {last}", ends == [0] * WORKERS and all(
                words[:5] == [str(MANY), last[0][1], "pushed", str(MANY), "counted"]
                for words in last))
        finally:
            for worker in first:
                worker.kill()


def everybody_is_new(a):
    """Nobody has anything of the run that was: another one begins, and says so."""
    digest = undisturbed(a, COMMITS, *SMALL)
    with Line(a, "--commits", str(COMMITS)) as line:
        line.join_all("elems=1000", "pace_us=20000")
        line.reaches(3)
        for worker in line.worker:
            worker.kill()
        runs = re.findall(r"begins: run (\w{16})", line.server.said())
        line.kill_server()
        line.worker = []
        line.join_all(*SMALL)
        must([w.end(SECONDS)[0] for w in line.worker] == [0] * WORKERS, line.said())
        line.is_over()
        for rank in range(WORKERS):
            end = line.lines(rank, "end", process=2)
            check(f"all begins anew: {end}", end and end[0][1:3] == [str(COMMITS), digest])
        runs += re.findall(r"begins: run (\w{16})", line.server.said())
        check(f"that is another run: {runs}", len(set(runs)) == 2)


def everybody_is_gone(a):
    """The server does not wait for ever, and says for whom it has waited."""
    with Line(a, "--commits", "100000") as line:
        line.join_all(*SMALL)
        line.reaches(5)
        for worker in line.worker:
            worker.kill()
        line.server.kill()
        set_options(line, join_timeout="1s")
        line.lead()
        status, log = line.server.end(SECONDS)
        check(f"it ends with {status}: {log[-300:]}", status == 1 and re.search(
            "has failed: .*--join-timeout", log))


def nobody_gives(a):
    """A new rank takes states, and the others have none to give: it is told so, and they go on."""
    with Line(a, "--commits", str(MANY)) as line:
        line.join_all(*SMALL)
        line.reaches(5)
        line.worker[1].kill()
        line.kill_server()
        line.join(1, *SMALL, "comes_back=1")
        ends = line.ended((0, 2))
        check(f"the others go on: {ends}", {end[1] for end in ends} == {str(MANY)})
        words = " ".join(sum(line.lines(1, "error", process=2)[-1:], []))
        check(words, "no other worker has given its state" in words)
        check("and the server has said so", words[-60:] in line.server.said())
        line.is_over()


CASES = cases(other_memory, job_of_another_name, job_of_another_name_that_stays, run_of_others,
              everybody_is_new, everybody_is_gone, nobody_gives)
if __name__ == "__main__":
    main(CASES, "musterd", "worker", paths=("other_memory", "nobody_gives"))
