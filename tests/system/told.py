#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Runs a job whose workers tell their history (recorder.c), and proves it.

usage: told.py servers|workers MUSTER run OPTION ... -- PROGRAM ...
"""
import os
import subprocess
import sys
import tempfile

import history
from base import CALM

RULES = {"servers": "sgd:0.1,0.9", "workers": "none"}


def main():
    owner, muster, run, *rest = sys.argv[1:]
    command = [muster, run, *CALM, "--grace", "60s", *rest]
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "log")
        status = subprocess.run(command, env=os.environ | {"MUSTER_HISTORY": log},
                                stdin=subprocess.DEVNULL, check=False).returncode
        if status:
            sys.exit(status)
        try:
            print(history.prove(log, history.Rules(RULES[owner])))
        except history.Broken as e:
            sys.exit(f"told: {e}")


main()
