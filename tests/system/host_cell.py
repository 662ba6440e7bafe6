# SPDX-License-Identifier: MIT
"""The scene of a cell of the kill matrix whose processes have hosts of their own, over TCP."""
import queue

import violence
from hosts import SWITCH, Network


class Places:
    """Hosts for so many scenes at a time, as a context."""

    def __init__(self, scenes, each):
        self.network, self.each, self.scenes = Network(scenes * each), each, scenes
        self.free = queue.SimpleQueue()

    def __enter__(self):
        self.network.__enter__()
        for i in range(self.scenes):
            self.free.put(self.network.hosts[i * self.each:(i + 1) * self.each])
        return self

    def __exit__(self, *what):
        self.network.__exit__(*what)


class Scene(violence.Scene):
    """The server is at the first of its hosts, and rank r at host r + 1."""

    server_options = ("--transport", "tcp", "--insecure")
    worker_holdings = (2, 0)  # its control connection and its link

    def __init__(self, tools):
        super().__init__(tools)
        self.places = tools.places
        self.hosts, self.rank_of = self.places.free.get(), {}
        self.address = self.hosts[0].address

    def not_looking(self, rank, at):
        """What a server has put leaves it, in part, only when it looks."""
        return (f"before arrive header {rank} {at}",)

    def relay(self):
        self.relays.append(violence.Relay((self.address, self.port), SWITCH))
        return self.relays[-1]

    def start_worker(self, rank, *options, name=None, relay=None, **env):
        self.rank_of[name or f"rank{rank}"] = rank
        return super().start_worker(rank, *options, name=name, relay=relay, **env)

    def host_of(self, name):
        return self.hosts[0 if name == "server" else 1 + self.rank_of[name]]

    def enter(self, name):
        self.host_of(name).enter()
        super().enter(name)

    def darken(self, name):
        """Nothing comes to that process's host or from it."""
        self.host_of(name).cut()

    def close(self):
        for host in self.hosts:
            host.fix()
        try:
            return super().close()
        finally:
            self.places.free.put(self.hosts)
