#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Runs a command in a virtual machine with soft-RoCE (rxe0), on this very build.

The machine sees the host's files at the host's paths; what it writes there is lost with it.
Ends with the command's status, 128+n after signal n, 124 when time is up, 125 when the machine
failed, 77 where none can be had.
"""
import argparse
import os
import select
import shutil
import sys
import termios
import time
import tty

import lab

EXAMPLES = """examples:
  vm.py -- ibv_devinfo
  vm.py --nodes 2 --start 1:'ib_write_bw -d rxe0' -- 'sleep 2; ib_write_bw -d rxe0 node1'
  vm.py --shell
"""
END_OF_INPUT = b"\x04"  # as a terminal has it


def parse():
    parser = argparse.ArgumentParser(description=__doc__, epilog=EXAMPLES,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--nodes", type=int, default=1, help="machines, 1 to 3 (default 1)")
    add("--node", type=int, default=0, metavar="K", help="where the command runs (default 0)")
    add("--start", type=numbered, action="append", default=[], metavar="K:COMMAND",
        help="run this on node K meanwhile; its output comes at the end")
    add("--netem", type=numbered, action="append", default=[], metavar="K:RULE",
        help="disturb what node K sends to others, as in 1:'loss 0.5%%'")
    add("--mtu", type=figures, default=[4200], metavar="MTU[,MTU]",
        help="of the card under rxe0: for all, or one per node (default 4200)")
    add("--memory", type=int, default=1536, metavar="MB", help="per machine (default 1536)")
    add("--cpus", type=int, help="per machine (default 2 for one, 1 each for several)")
    add("--timeout", type=float, default=600, metavar="S", help="for the command (default 600)")
    add("--second-try", action="store_true",
        help="if a machine does not boot, or stands still and the command fails, take another")
    add("--shell", action="store_true", help="a shell to type at, in place of a command")
    add("command", nargs="*", metavar="COMMAND ARGS", help="one word alone is a line for bash")
    options = parser.parse_args()
    if bool(options.command) == options.shell:
        parser.error("give a command or --shell")
    for node in (options.node, *(node for node, _ in options.start + options.netem)):
        if not 0 <= node < options.nodes <= lab.NODES_MAX:
            parser.error(f"no node {node} among {options.nodes}")
    if len(options.mtu) == 1:
        options.mtu *= options.nodes
    if len(options.mtu) != options.nodes:
        parser.error(f"{len(options.mtu)} MTUs for {options.nodes} nodes")
    return options


def numbered(text):
    """(1, "text") for "1:text"."""
    number, _, rest = text.partition(":")
    return int(number), rest


def figures(text):
    return [int(word) for word in text.split(",")]


def copy_output(process, end):
    """Passes on what a process writes until it ends or time is up."""
    while not process.output_path.exists() and process.is_running():
        time.sleep(0.02)
    with open(process.output_path, "rb") as output:
        running = True
        while running and time.monotonic() < end:
            running = not process.ended.wait(0.05)
            sys.stdout.buffer.write(output.read())
            sys.stdout.flush()


def run_command(laboratory, options):
    for index, rule in options.netem:
        laboratory[index].netem(rule)
    others = [laboratory[index].start(command) for index, command in options.start]
    words = options.command
    process = laboratory[options.node].start(words[0] if len(words) == 1 else words)
    end = time.monotonic() + options.timeout
    copy_output(process, end)
    for other in others:
        print(f"--- {other.node.name}: {other.command}\n{other.output}", end="")
    if process.is_running():
        print(f"vm: time is up after {options.timeout:g} s\n{process.node.describe()}",
              file=sys.stderr)
        return 124
    status = process.wait()
    return status if status >= 0 else 128 - status


def pass_on(terminal, shell):
    """Ties this terminal to the machine's until the shell ends."""
    sources = [sys.stdin, terminal]
    quiet = False
    while shell.is_running() or not quiet:
        ready = select.select(sources, [], [], 0.2)[0]
        quiet = not ready
        if terminal in ready:
            shown = terminal.recv(65536)
            if not shown:
                return
            os.write(sys.stdout.fileno(), shown)
        if sys.stdin in ready:
            typed = os.read(sys.stdin.fileno(), 65536)
            if not typed:
                sources.remove(sys.stdin)
            terminal.sendall(typed or END_OF_INPUT)


def run_shell(laboratory, options):
    node = laboratory[options.node]
    columns, rows = shutil.get_terminal_size()
    shell = node.start("exec </dev/hvc0 >/dev/hvc0 2>&1; "  # its controlling terminal from now on
                       f"stty cols {columns} rows {rows}; "
                       r"exec env PS1='\h:\w# ' bash --norc -i")
    before = termios.tcgetattr(sys.stdin) if sys.stdin.isatty() else None
    try:
        if before:
            tty.setraw(sys.stdin)
        pass_on(node.terminal, shell)
    finally:
        if before:
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
    status = shell.wait()
    return status if status >= 0 else 128 - status


def attempt(options):
    """Return: exit status, and why another machine may be tried, or None."""
    act = run_shell if options.shell else run_command
    try:
        with lab.Lab(options.nodes, options.mtu, options.memory, options.cpus,
                     terminal=options.node if options.shell else None) as laboratory:
            status = act(laboratory, options)
    except lab.LabSkip as e:
        print(f"skipped: {e}")
        return 77, None
    except lab.LabError as e:
        print(f"vm: {e}", file=sys.stderr)
        return 125, lab.excuse(e)
    except KeyboardInterrupt:
        return 130, None
    return status, lab.excuse(None) if status else None


def main():
    options = parse()
    status, reason = attempt(options)
    if options.second_try and reason is not None:
        print(f"vm: status {status}", file=sys.stderr)
        lab.second_try(reason)
        status, _ = attempt(options)
    return status


if __name__ == "__main__":
    sys.exit(main())
