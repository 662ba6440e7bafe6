#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Mistakes that people make at the command line: each is answered with one sentence that names what
was typed and what is right, and with exit status 2 (wrong usage) or 1 (it could not be done).

usage: mistakes.py MUSTERD MUSTER DIGITS PLAIN     PLAIN: DIGITS built without OpenBLAS
"""
import os
import socket
import subprocess
import sys
import tempfile

FILES = {
    "lease.conf": 'workers = 4;\nlease = "5";\n',
    "key.conf": "worker = 4;\n",
    "text.conf": 'workers = "four";\n',
    "syntax.conf": 'workers = 4\nlease "5s";\n',
    "negative.conf": "workers = -4;\n",
    "flag.conf": "help = true;\n",
    "twice.conf": "workers = 4;\nworkers = 5;\n",
    "group.conf": "run = { workers = 4; };\n",
    "policy.conf": 'workers = 4;\npolicy = "bps";\n',
    "optimizer.conf": 'workers = 4;\noptimizer = "sgd:wd=1";\n',
    "empty.conf": "",
    "cut.conf": '# All options of musterd; the last line is "# end of options".\nworkers = 4;\n',
}

# What is typed; exit status; what the answer must hold. TAKEN: an address that is listened on.
MUSTERD = [
    ("", 2, "--workers is missing", "--workers 4"),
    ("--workes 4", 2, "--workes", "did you mean --workers?"),
    ("--workers", 2, "--workers needs a value", "from 1 to 4096"),
    ("--workers four", 2, '"four"', "from 1 to 4096"),
    ("--workers -4", 2, '"-4"', "from 1 to 4096"),
    ("--workers 0", 2, '"0"', "from 1 to 4096"),
    ("--workers 4.5", 2, '"4.5"', "a whole number"),
    ("--workers 1e2", 2, '"1e2"', "a whole number"),
    ("--workers=", 2, '""', "a whole number"),
    ("--workers 99999999999", 2, '"99999999999"', "from 1 to 4096"),
    ("-n", 2, "-n needs a value", "from 1 to 4096"),
    ("-n4x", 2, '"4x"', "from 1 to 4096"),
    ("-x", 2, "unknown option -x"),
    ("-workers 4", 2, "-workers", "did you mean --workers?"),
    ("workers=4", 2, '"workers=4"', "options only"),
    ("4", 2, '"4"', "options only"),
    ("--commits --workers 4", 2, "--commits needs a value", "--workers follows"),
    ("-n 4 --help=yes", 2, "--help takes no value"),
    ("-n 4 --force=yes", 2, "--force takes no value"),
    ("-n 4 --force yes", 2, '"yes"', "options only"),
    ("-n 4 --policy", 2, "--policy needs a value"),
    ("-n 4 --policy bps", 2, "--policy", '"bps"', "did you mean bsp?"),
    ("-n 4 --policy BSP", 2, "--policy", '"BSP"', "did you mean bsp?"),
    ("-n 4 --policy backup", 2, "--policy", "backup needs a number", "backup:4"),
    ("-n 4 --policy backup:", 2, "--policy", "backup needs a number", "backup:4"),
    ("-n 4 --policy backup:x", 2, '"backup:x"', "backup:4"),
    ("-n 4 --policy backup:0", 2, '"backup:0"', "backup:4"),
    ("-n 4 --policy backup:9", 2, "--policy backup:9", "4 workers"),
    ("-n 4 --policy backup:-9", 2, "--policy backup:-9", "leaves nobody"),
    ("-n 4 --policy backup:1", 2, "--policy backup:1", "--force"),
    ("-n 4 --policy bakcup:3", 2, '"bakcup:3"', "did you mean backup:N?"),
    ("-n 4 --policy backup=3", 2, '"backup=3"', "did you mean backup:N?"),
    ("-n 4 --policy bsp:3", 2, '"bsp:3"', "takes no number"),
    ("-n 4 --policy async:2", 2, '"async:2"', "takes no number"),
    ("-n 4 --policy softsinc:2", 2, '"softsinc:2"', "did you mean softsync:C?"),
    ("-n 4 --policy ssp:-1", 2, '"ssp:-1"', "ssp:4"),
    ("-n 4 --policy ksync:5", 2, "ksync:5", "4 workers"),
    ("-n 4 --policy easgd:1", 2, '"easgd:1"', "above 0, at most 1", "as in easgd:10,0.1"),
    ("-n 4 --policy adasinc:ksync", 2, '"adasinc:ksync"',
     "did you mean adasync:P[,K[,N]][,loss=NAME]?"),
    ("-n 4 --policy adasync", 2, '"adasync:"', "as in adasync:ksync,1,100"),
    ("-n 4 --policy adasync:ksync,5", 2, "K starts at 5", "is 4"),
    ("-n 4 --policy adasync:kbatchsync --slots 1", 2, "2 slots", "there is 1"),
    ("-n 4 --policy dbw", 2, "plain step", "--optimizer sgd:lr=LR,momentum=0"),
    ("-n 4 --policy dbw:x --optimizer sgd:lr=0.1,momentum=0", 2, '"dbw:x"', "as in dbw:1"),
    ("-n 4 --policy dbw:1 --optimizer sgd:lr=0.1,momentum=0", 2, "1 of 4", "--force"),
    ("-n 4 --policy syncswitch:0.1", 2, "syncswitch:0.1", "say --samples N"),
    ("-n 4 --policy syncswitch:2 --samples 9", 2, '"syncswitch:2"', "as in syncswitch:0.1"),
    ("-n 4 --policy syncswitch:0.1 --samples 9 --owner workers", 2, "--owner servers"),
    ("-n 4 --policy nonblocking:0", 2, '"nonblocking:0"', "as in nonblocking:5"),
    ("-n 4 --policy deadline:5", 2, '"deadline:5"', "as in deadline:50,4"),
    ("-n 4 --policy local:0", 2, '"local:0"', "as in local:10,4"),
    ("-n 4 --policy downpour:1,", 2, '"downpour:1,"', "as in downpour:5,5"),
    ("-n 4 --policy nonblocking:x", 2, '"nonblocking:x"', "milliseconds of grace"),
    ("-n 4 --policy nonbloking", 2, '"nonbloking"', "did you mean nonblocking[:MS]?"),
    ("-n 4 --policy anytime", 2, '"anytime"', "as in anytime:50"),
    ("-n 4 --policy anytime:-5", 2, '"anytime:-5"', "as in anytime:50"),
    ("-n 4 --policy anytime:300000", 2, "a deadline of 300000 ms", "the patience of 300 s",
     "--patience"),
    ("-n 4 --policy nonblocking:9000 --patience 9s", 2, "a grace of 9000 ms",
     "the patience of 9 s"),
    ("-n 4 --policy deadline:5,9", 2, "deadline:5,9", "4 workers"),
    ("-n 4 --policy local:4,9", 2, "local:4,9", "4 workers"),
    ("-n 4 --policy local:4 --optimizer sgd:lr=0.1", 2, "local:4", "say --optimizer add"),
    ("-n 4 --policy local:4 --owner workers", 2, "local:4", "--owner servers"),
    ("-n 4 --policy easgdsync:2,2", 2, '"easgdsync:2,2"', "as in easgdsync:10,0.1"),
    ("-n 4 --policy downpour:0,5", 2, '"downpour:0,5"', "as in downpour:5,5"),
    ("-n 4 --late soon", 2, "--late", "auto|drop|reject"),
    ("-n 4 --policy async --late drop", 2, "--late drop does nothing", "async", "bounded:S"),
    ("-n 4 --compensate", 2, "--compensate does nothing", "bsp", "kasync:K"),
    ("-n 4 --late-start soon", 2, "--late-start", "auto|now|commit"),
    ("-n 4 --policy=", 2, '""', "there are bsp backup"),
    ("-n 4 --policy async --owner workers", 2, "--policy async", "--owner servers"),
    ("-n 4 --policy kbatchsync:3 --slots 1", 2, "--policy kbatchsync:3", "--slots 2"),
    ("-n 4 --optimizer lion", 2, '"lion"', "sgd:lr=0.1,momentum=0.9", "add"),
    ("-n 4 --optimizer SGD", 2, '"SGD"', "did you mean sgd?"),
    ("-n 4 --optimizer sgd,lr=0.1", 2, '"sgd,lr=0.1"', "sgd:lr=0.1"),
    ("-n 4 --optimizer sgd:lr=0.1,wd=0.1", 2, '"wd"', "nesterov, decay and clip"),
    ("-n 4 --optimizer sgd:momentun=0.9", 2, '"momentun"', "did you mean momentum?"),
    ("-n 4 --optimizer sgd:lr=x", 2, '"sgd:lr=x"', "lr needs a number"),
    ("-n 4 --optimizer sgd:lr", 2, '"sgd:lr"', "lr needs a number"),
    ("-n 4 --optimizer sgd:lr=0.1,", 2, '"sgd:lr=0.1,"', "nesterov, decay and clip"),
    ("-n 4 --optimizer sgd:lr=0.1,lr=0.2", 2, "--optimizer", "lr twice"),
    ("-n 4 --optimizer sgd:lr=0", 2, "lr 0", "above 0"),
    ("-n 4 --optimizer sgd:lr=-1", 2, "lr -1", "above 0"),
    ("-n 4 --optimizer sgd:momentum=1", 2, "momentum 1", "below 1"),
    ("-n 4 --optimizer add:lr=0.1", 2, '"add:lr=0.1"', "takes no figures"),
    ("-n 4 --optimizer=", 2, '""', "sgd"),
    ("-n 4 --optimizer add --owner workers", 2, "--optimizer add", "--owner workers"),
    ("-n 4 --owner worker", 2, '"worker"', "did you mean workers?"),
    ("-n 4 --lr-scale lin", 2, '"lin"', "none"),
    ("-n 4 --lr-schedule cosin:5", 2, "--lr-schedule", "did you mean cosine?"),
    ("-n 4 --lr-schedule linear:5000", 2, "0 from 5000 samples", "--samples 5000"),
    ("-n 4 --user nobody-has-this", 2, 'no user "nobody-has-this"', "getent passwd"),
    ("-n 4 --user root", 2, '"root"', "all rights of root", "name another"),
    ("-n 4 --transport rdma", 2, '"rdma"', "auto|shm|verbs"),
    ("-n 4 --on-loss ignore", 2, '"ignore"', "shrink|fail"),
    ("-n 4 --lease 5", 2, '"5"', "5s", "from 10ms to 1h"),
    ("-n 4 --lease 5sec", 2, '"5sec"', "5s"),
    ("-n 4 --lease -5s", 2, '"-5s"', "from 10ms to 1h"),
    ("-n 4 --lease 1.5s", 2, '"1.5s"', "20ms"),
    ("-n 4 --lease 1ms", 2, '"1ms"', "from 10ms"),
    ("-n 4 --patience 0", 2, "--patience", '"0"', "from 1ms"),
    ("-n 4 --join-timeout 0", 2, '"0"', "or never"),
    ("-n 4 --join_timeout 5s", 2, "--join_timeout", "did you mean --join-timeout?"),
    ("-n 4 --chunk 128k", 2, '"128k"', "128K"),
    ("-n 4 --chunk 5000", 2, "5000", "multiple of 4K"),
    ("-n 4 --memory 4GB", 2, '"4GB"', "2G", "or auto"),
    ("-n 4 --retries 7", 2, '"7"', "from 0 to 6"),
    ("-n 4 --min-workers 5", 2, "--min-workers 5", "the job has 4"),
    ("-n 4 --slots 9", 2, '"9"', "from 1 to 4"),
    ("-n 4 --commits -1", 2, '"-1"', "a whole number"),
    ("-n 4 --commits 1e3", 2, '"1e3"', "a whole number"),
    ("-n 4 --samples -5", 2, '"-5"', "at least 0"),
    ("-n 4 --samples nan", 2, '"nan"', "a number"),
    ("-n 4 --listen", 2, "--listen needs a value", "HOST:PORT"),
    ("-n 4 --listen 17077", 2, '"17077"', "HOST:PORT"),
    ("-n 4 --listen :17077", 2, '":17077"', "HOST:PORT"),
    ("-n 4 --listen localhost", 2, '"localhost"', "HOST:PORT"),
    ("-n 4 --listen 127.0.0.1:99999", 2, "127.0.0.1:99999", "65535"),
    ("-n 4 --listen TAKEN", 1, "another process does", "another port"),
    ("-n 4 --insecure --listen 192.0.2.1:0", 1, "192.0.2.1:0", "no interface of this host"),
    ("-n 4 --listen 10.1.0.1:17077", 2, "--listen 10.1.0.1:17077 is beyond loopback",
     "muster key new DIR", "--insecure"),
    ("--join 10.1.0.1:17077", 2, "--join 10.1.0.1:17077 is beyond loopback", "--insecure"),
    ("--join 127.0.0.1:1 --finish operator", 2, "--finish is for the leader"),
    ("-n 4 --finish anybody", 2, '"anybody"', "worker", "operator"),
    ("-n 4 --listen no.such.host.invalid:0", 1, "no.such.host.invalid:0", "no host of this name"),
    ("--join", 2, "--join needs a value", "HOST:PORT"),
    ("--join 127.0.0.1", 2, '"127.0.0.1"', "HOST:PORT"),
    ("--join 127.0.0.1:1 --join-timeout 100ms", 1, "127.0.0.1:1", "no leader answered"),
    ("--join 127.0.0.1:1 --servers 2", 2, "--join", "--servers"),
    ("--join 127.0.0.1:1 --record x", 2, "--join", "--record"),
    ("-n 4 --record -", 2, "--record", "/dev/stdout"),
    ("-n 4 --listen 127.0.0.1:0 --record /", 2, "option --record: / is a directory", "a file"),
    ("-n 4 --listen 127.0.0.1:0 --record /nowhere/x", 2, "option --record: /nowhere/x",
     "/nowhere is not there", "create"),
    ("-n 4 --listen 127.0.0.1:0 --record /nowhere/x/", 2, "/nowhere is not there"),
    ("-n 4 --listen 127.0.0.1:0 --record empty.conf/x", 2, "empty.conf is not a directory"),
    ("-n 4 --listen 127.0.0.1:0 --state nowhere/run1", 2, "option --state: nowhere/run1",
     "nowhere is not there", "create"),
    ("-n 4 --listen 127.0.0.1:0 --state empty.conf", 2, "empty.conf is not a directory"),
    ("-n 4 --listen 127.0.0.1:0 --state empty.conf/x", 2, "empty.conf is not a directory"),
    ("-n 4 --listen 127.0.0.1:0 --resume nowhere", 2, "no directory nowhere", "--or-begin"),
    ("-n 4 --listen 127.0.0.1:0 --resume empty.conf --or-begin", 2, "is not a directory"),
    ("--join 127.0.0.1:1 --state /nowhere/x/y", 2, "option --state", "/nowhere/x is not there"),
    ("-n 4 --servers 0", 2, '"0"', "from 1 to 16"),
    ("-n 4 --servers 2 --partition 1", 2, '"1"', "2 servers"),
    ("-n 4 --servers 2 --partition 1,x", 2, '"1,x"', "such as 2,1,1"),
    ("-n 4 --job=", 2, "--job", '""', "1 to 63 characters"),
    ("-n 4 --log-level verbose", 2, '"verbose"', "error, warn, info or debug"),
    ("-n 4 --cpus x", 2, '"x"', "such as 0-3,8"),
    ("-n 4 --gid-index x", 2, '"x"', "0 to 255"),
    ("-n 4 --pkey zz", 2, '"zz"', "0x0001"),
    ("-n 4 --budget 5", 2, "--budget", "5 bytes"),
    ("-c", 2, "-c needs a value", "FILE"),
    ("-c nosuch.conf", 2, "nosuch.conf", "No such file"),
    ("-c .", 2, "cannot read .", "directory"),
    ("-c lease.conf", 2, "lease.conf:2", '"5"', "5s"),
    ("-c key.conf", 2, "key.conf:1", "did you mean workers?"),
    ("-c text.conf", 2, "text.conf:1", '"four"'),
    ("-c syntax.conf", 2, "syntax.conf:2", "syntax error"),
    ("-c negative.conf", 2, "negative.conf:1", '"-4"'),
    ("-c flag.conf", 2, "flag.conf:1", "not a key of a file"),
    ("-c twice.conf", 2, "twice.conf:2", "duplicate"),
    ("-c group.conf", 2, "group.conf:1", "unknown option run"),
    ("-c policy.conf", 2, '"bps"', "did you mean bsp?"),
    ("-c optimizer.conf", 2, '"wd"', "nesterov, decay and clip"),
    ("-c empty.conf", 2, "empty.conf: is empty"),
    ("-c cut.conf", 2, "cut.conf: is cut off", '"# end of options" is missing'),
]

MUSTER = [
    ("", 2, "usage: muster COMMAND", "muster run"),
    ("rnu", 2, "rnu", "did you mean run?"),
    ("benchmark", 2, "benchmark", "did you mean bench?"),
    ("train", 2, "train", "muster --help"),
    ("-v", 2, "-v", "--version"),
    ("--timeout 1s status", 2, "--timeout", "muster status --timeout"),
    ("run", 2, "-n W"),
    ("run -n 2", 2, "no program", "-- PROGRAM"),
    ("run -n 2 --", 2, "no program", "-- PROGRAM"),
    ("run -- true", 2, "-n W"),
    ("run -n x -- true", 2, '"x"', "from 1 to 4096"),
    ("run -n 2 --polcy bsp -- true", 2, "--polcy", "did you mean --policy?"),
    ("run -n 2 --policy bps -- true", 2, '"bps"', "did you mean bsp?"),
    ("run -n 2 --optimizer sgd:wd=1 -- true", 2, '"wd"', "nesterov, decay and clip"),
    ("run -n 2 --join 127.0.0.1:1 -- true", 2, "--join"),
    ("run -n 2 --json -- true", 2, "--json needs a value", "FILE"),
    ("run -n 2 --json /no/dir/x -- true", 2, "/no/dir/x", "No such file"),
    ("run -n 2 --listen 1.2.3.4 -- true", 2, '"1.2.3.4"', "HOST:PORT"),
    ("run -n 2 --grace 5 -- true", 2, '"5"', "5s"),
    ("run -n 2 -c nosuch.conf -- true", 2, "nosuch.conf"),
    ("run -n 2 -c key.conf -- true", 2, "key.conf:1", "did you mean workers?"),
    ("run -n 1 --listen TAKEN -- true", 1, "another process does", "exited with status 1"),
    ("run -n 1 --listen 127.0.0.1:0 -- /no/such/program", 1, "/no/such/program", "No such file"),
    ("run -n 1 --listen 127.0.0.1:0 -- ./empty.conf", 1, "./empty.conf", "Permission denied"),
    ("run -n 1 --listen 127.0.0.1:0 -- true", 1, "rank 0", "muster_open()"),
    ("bench --sizes", 2, "--sizes needs a value"),
    ("bench --sizes 4K,x", 2, '"x"', "64K"),
    ("bench --sizes 4k", 2, '"4k"', "64K"),
    ("bench --workers 0", 2, "--workers", "from 1 to 4096"),
    ("bench --workers a,b", 2, '"a"', "number"),
    ("bench --transport tcp", 2, '"tcp"', "auto|shm|verbs"),
    ("bench --buffers both", 2, '"both"', "slot|own"),
    ("bench --samples -1", 2, '"-1"', "or auto"),
    ("bench --iters 5", 2, "--iters"),
    ("bench 4K", 2, '"4K"', "options only"),
    ("bench --policy backup:5 --workers 2", 2, "backup:5", "2 workers"),
    ("status --timeout", 2, "--timeout needs a value", "5s"),
    ("status --timeout 5", 2, '"5"', "5s"),
    ("status --timeout 0s", 2, '"0s"', "from 1ms"),
    ("status 127.0.0.1:1 --timeout", 2, "--timeout needs a value"),
    ("status 127.0.0.1:1 --timout 1s", 2, "--timout", "did you mean --timeout?"),
    ("status 127.0.0.1:1 --timeout 1s", 1, "127.0.0.1:1", "nobody listens"),
    ("status --timeout 1s 127.0.0.1:1", 1, "127.0.0.1:1", "nobody listens"),
    ("status 127.0.0.1:1 127.0.0.1:2", 2, "127.0.0.1:1", "127.0.0.1:2", "one address"),
    ("status 17077", 2, '"17077"', "HOST:PORT"),
    ("status :17077", 2, '":17077"', "HOST:PORT"),
    ("status 127.0.0.1:99999", 1, "127.0.0.1:99999", "HOST:PORT"),
    ("status no.such.host.invalid:1", 1, "no.such.host.invalid:1", "no host of the name"),
    ("status --jsn x", 2, "--jsn", "did you mean --json?"),
    ("status --server 127.0.0.1:1", 2, "--server"),
    ("policy", 2, "the policy is missing", "muster policy 127.0.0.1:17077 backup:4"),
    ("policy 17077 bsp", 2, '"17077"', "HOST:PORT"),
    ("policy 127.0.0.1:1 bsp x", 2, '"x"', "one argument too many"),
    ("policy 127.0.0.1:1 bsp", 1, "127.0.0.1:1", "nobody listens"),
    ("policy --forse bsp", 2, "--forse", "did you mean --force?"),
    ("policy " + 64 * "b", 2, "is no policy", "backup:4"),
    ("rest", 2, "the rank is missing", "muster rest 3"),
    ("rest x", 2, '"x" is no rank', "0 to 4095"),
    ("rest -1", 2, "-1"),
    ("rest 4096", 2, '"4096" is no rank', "0 to 4095"),
    ("evict", 2, "the rank is missing", "muster evict 3"),
    ("evict x", 2, '"x" is no rank', "0 to 4095"),
    ("evict 1 17077", 2, '"17077"', "HOST:PORT"),
    ("policy bsp", 2, "which job?", "muster policy 127.0.0.1:17077 backup:4"),
    ("rest 1", 2, "which job?", "muster rest 3 127.0.0.1:17077"),
    ("evict 1", 2, "which job?", "MUSTER_SERVER"),
    ("finish", 2, "which job?", "muster finish 127.0.0.1:17077"),
    ("finish 17077", 2, '"17077"', "HOST:PORT"),
    ("finish 127.0.0.1:1 2", 2, '"2"', "one address at a time"),
    ("finish --whi x", 2, "--whi", "did you mean --why?"),
    ("rest 1 17077", 2, '"17077"', "HOST:PORT"),
    ("rest 1 127.0.0.1:1 2", 2, '"2"', "one argument too many"),
    ("rest 1 127.0.0.1:1 --retrun", 2, "--retrun", "did you mean --return?"),
    ("doctor x", 2, '"x"', "options only"),
    ("doctor --lisen", 2, "--lisen", "did you mean --listen?"),
    ("doctor --peer", 2, "--peer needs a value"),
    ("doctor --peer x --listen", 2, "--listen", "--peer"),
    ("doctor --peer 999.1.1.1", 2, "999.1.1.1", "muster doctor --listen"),
    ("doctor --timeout 5", 2, '"5"', "5s"),
    ("run -n 2 --record /nowhere/x -- true", 2, "/nowhere/x", "is not there"),
    ("run -n 2 --state /nowhere/x -- true", 2, "/nowhere/x", "is not there"),
    ("run -n 2 --resume /nowhere/x -- true", 2, "/nowhere/x", "--or-begin"),
    ("tune syncswitch -n 2 --record /nowhere/x -- true", 2, "--record"),
    ("plan", 2, "--trace FILE"),
    ("plan --trace", 2, "--trace needs a value", "FILE"),
    ("plan trace.csv", 2, '"trace.csv"', "--trace"),
    ("plan --trace nosuch.csv", 1, "nosuch.csv", "No such file"),
    ("plan --trace .", 1, ".: cannot read it", "Is a directory"),
    ("plan --trace empty.conf", 1, "the file is empty", "step,worker,ready_us"),
    ("plan --trace key.conf", 1, "key.conf: line 1", "no column step"),
    ("plan --trace key.conf --from 5 --to 4", 2, "--from", "--to"),
    ("plan --trace key.conf --pair x", 2, '"x"', "version|order"),
    ("plan --trace key.conf --json - --csv -", 2, "--csv", "--json"),
]

DIGITS = [
    ("--hiden 4", 2, "--hiden", "did you mean --hidden?"),
    ("--hidden 0", 2, '"0"', "from 1"),
    ("--batch -1", 2, '"-1"', "a whole number"),
    ("--owner worker", 2, '"worker"', "did you mean workers?"),
    ("--product blass", 2, '"blass"', "did you mean blas?"),
    ("--product 1", 2, '"1"', "auto|blas|plain"),
    ("--data /nosuch", 1, "/nosuch"),
    ("--delay x", 2, '"x"'),
    ("--delay const:-5", 2, "const:-5"),
    ("--delay 9:const", 2, "9:const"),
    ("extra", 2, "extra", "--help"),
]

PLAIN = [
    ("--product blas", 2, "without OpenBLAS", "install libopenblas-serial-dev", "--product plain"),
]

# In the environment of a worker.
ENVIRONMENT = [
    ("MUSTER_SERVER=x", 1, '"x"', "HOST:PORT"),
    ("MUSTER_SERVER=127.0.0.1:99999", 1, "127.0.0.1:99999", "HOST:PORT"),
    ("MUSTER_SERVER=no.such.host.invalid:1", 1, "no.such.host.invalid:1", "MUSTER_SERVER"),
    ("MUSTER_RANK=x", 1, 'MUSTER_RANK is "x"', "0 or more"),
    ("MUSTER_RANK=-2", 1, 'MUSTER_RANK is "-2"', "0 or more"),
    ("MUSTER_RANK=99999999999", 1, "MUSTER_RANK", "0 or more"),
    ("MUSTER_LOG=loud", 1, 'MUSTER_LOG is "loud"', "error, warn, info or debug"),
    ("MUSTER_TRANSPORT=tcp", 1, 'MUSTER_TRANSPORT is "tcp"', "auto, shm and verbs"),
    ("MUSTER_GID_INDEX=x", 1, 'MUSTER_GID_INDEX: "x"', "or auto"),
    ("MUSTER_JOB=" + 80 * "x", 1, "80 characters", "63"),
]


def answer(argv, where, more=()):
    env = {k: v for k, v in os.environ.items() if not k.startswith("MUSTER_")}
    env.update(dict(more))
    return subprocess.run(argv, cwd=where, env=env, stdin=subprocess.DEVNULL, timeout=100,
                          capture_output=True, text=True)


def judge(what, done, status, pieces):
    """Return: what is wrong with the answer, or None."""
    missing = [p for p in pieces if p not in done.stderr]
    if done.returncode == status and not missing:
        return None
    return f"{what}\n  exit status {done.returncode}, not {status}" * (
        done.returncode != status) + f"\n  {what}: lacks {missing}: {done.stderr.strip()}"


def main():
    musterd, muster, digits, plain = map(os.path.abspath, sys.argv[1:5])
    wrong, count = [], 0
    with tempfile.TemporaryDirectory() as where, socket.create_server(("127.0.0.1", 0)) as other:
        taken = f"127.0.0.1:{other.getsockname()[1]}"
        for name, text in FILES.items():
            with open(os.path.join(where, name), "w", encoding="utf-8") as f:
                f.write(text)
        rows = [(musterd, typed.split(), (), *rest) for typed, *rest in MUSTERD]
        rows += [(muster, typed.split(), (), *rest) for typed, *rest in MUSTER]
        rows += [(digits, typed.split(), (), *rest) for typed, *rest in DIGITS]
        rows += [(plain, typed.split(), (), *rest) for typed, *rest in PLAIN]
        rows += [(digits, [], [said.split("=", 1)], *rest) for said, *rest in ENVIRONMENT]
        for program, typed, env, status, *pieces in rows:
            count += 1
            what = " ".join([*("=".join(e) for e in env), os.path.basename(program), *typed])
            words = [taken if word == "TAKEN" else word for word in typed]
            try:
                found = judge(what, answer([program, *words], where, env), status, pieces)
            except subprocess.TimeoutExpired:
                found = f"{what}: is not answered at all"
            if found:
                wrong.append(found)
    print("\n".join(wrong) or f"{count} mistakes are answered")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
