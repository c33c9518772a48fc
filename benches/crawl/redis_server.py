"""Shared by the scripts that crawl with several processes: redis-server that can be killed, flushed, failed over and cut off.

It is one node, or a cluster of three masters and three replicas. One node can be in a network namespace of its own, which has a link to each
partition: then a partition can be cut off, as by a network that loses what comes back.
"""

import contextlib
import os
import subprocess
import sys
import time

import site_server

NAME = "bench"
NODE_TIMEOUT_SECONDS = 1
# Four addresses for each partition, in the range for benches (RFC 2544). Another run of a script has others.
NETWORK = f"198.18.{os.getpid() % 256}"


class Node:
    """A process of Redis. It listens on loopback, or on all addresses of a namespace."""

    def __init__(self, work, options, namespace):
        self.port, bus_port = site_server.free_port(), site_server.free_port()
        folder = work / f"redis-{self.port}"
        folder.mkdir()
        words = ["--port", self.port, "--bind", "0.0.0.0" if namespace else "127.0.0.1", "--protected-mode", "no", "--dir", folder]
        words += ["--logfile", "log", "--save", "", "--maxmemory-policy", "noeviction", "--cluster-port", bus_port, *options]
        self.address, self.namespace = f"127.0.0.1:{self.port}@{bus_port}", namespace
        self.command = [*namespace, "redis-server", *map(str, words)]

    def start(self):
        self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        wait_until(lambda: self.call("ping") == ["PONG"], "Redis did not start")

    def call(self, *words):
        command = [*self.namespace, "redis-cli", "-p", str(self.port), *words]
        return subprocess.run(command, capture_output=True, text=True).stdout.split()

    @property
    def is_up(self):
        return self.process.poll() is None

    @property
    def is_master(self):
        return self.call("role")[:1] == ["master"]

    @property
    def is_whole(self):
        """Returns whether it is up, and has the data of its master."""
        return self.is_up and (self.is_master or "connected" in self.call("role"))

    def kill(self):
        self.process.kill()
        self.process.wait()


class Redis:
    def __init__(self, work, append_only=True, is_cluster=False, network=None):
        options = ["--appendonly", "yes" if append_only else "no"]
        if is_cluster:
            options += ["--cluster-enabled", "yes", "--cluster-node-timeout", NODE_TIMEOUT_SECONDS * 1000, "--repl-diskless-sync-delay", 0]
        self.is_cluster, self.network = is_cluster, network
        self.nodes = [Node(work, options, network.command if network else []) for _ in range(6 if is_cluster else 1)]

    def __enter__(self):
        with contextlib.ExitStack() as undo:
            for node in self.nodes:
                undo.callback(lambda node=node: hasattr(node, "process") and node.kill())
                node.start()
            if self.is_cluster:
                addresses = [node.address for node in self.nodes]
                self.nodes[0].call("--cluster", "create", *addresses, "--cluster-replicas", "1", "--cluster-yes")
                wait_until(lambda: all("cluster_state:ok" in node.call("cluster", "info") for node in self.nodes), "the cluster did not start")
                wait_until(lambda: self.is_whole, "the cluster has no replicas")
            self.undo = undo.pop_all()
        return self

    def __exit__(self, *_):
        self.undo.close()

    def url(self, partition):
        host = self.network.address(partition) if self.network else "127.0.0.1"
        return f"redis://{','.join(f'{host}:{node.port}' for node in self.nodes)}/{NAME}"

    @property
    def is_whole(self):
        return all(node.is_whole for node in self.nodes) and sum(node.is_master for node in self.nodes) == -(-len(self.nodes) // 2)

    # These three return what they did, or None while a node is away.

    def kill_master(self, draw):
        if self.is_whole:
            node = draw.choice([node for node in self.nodes if node.is_master])
            node.kill()
            return node

    def flush(self):
        return [node.call("flushall") for node in self.nodes if node.is_master] if self.is_whole else None

    def fail_over(self, draw):
        """Makes a replica a master."""
        if self.is_whole:
            return draw.choice([node for node in self.nodes if not node.is_master]).call("cluster", "failover")

    def used(self):
        """Returns processor seconds and bytes sent and received so far."""
        info = dict(line.split(":", 1) for line in self.nodes[0].call("info") if ":" in line)
        sum_of = lambda *names: sum(float(info[name]) for name in names)
        return sum_of("used_cpu_sys", "used_cpu_user"), sum_of("total_net_input_bytes", "total_net_output_bytes")


class Network:
    """A network namespace with a link to each partition. It needs root, and fails with `CalledProcessError` where there are none."""

    def __init__(self, partitions):
        self.name, self.partitions = f"crawler-{os.getpid()}", partitions
        self.command = ["ip", "netns", "exec", self.name]

    def __enter__(self):
        with contextlib.ExitStack() as undo:
            ip("netns", "add", self.name)
            # This also removes the links.
            undo.callback(ip, "netns", "del", self.name)
            self.inside("link", "set", "lo", "up")
            for number in range(self.partitions):
                outer, inner = f"c{os.getpid()}-{number}", f"partition{number}"
                ip("link", "add", outer, "type", "veth", "peer", "name", inner, "netns", self.name)
                ip("addr", "add", f"{NETWORK}.{4 * number + 1}/30", "dev", outer)
                ip("link", "set", outer, "up")
                self.inside("addr", "add", f"{self.address(number)}/30", "dev", inner)
                self.inside("link", "set", inner, "up")
            self.undo = undo.pop_all()
        return self

    def __exit__(self, *_):
        self.undo.close()

    def address(self, number):
        return f"{NETWORK}.{4 * number + 2}"

    def inside(self, *words):
        ip("-n", self.name, *words)

    def cut(self, number):
        """Loses all answers to a partition. What it sends arrives."""
        self.inside("route", "add", "blackhole", f"{NETWORK}.{4 * number + 1}")

    def mend(self, number):
        self.inside("route", "del", "blackhole", f"{NETWORK}.{4 * number + 1}")


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True)


def wait_until(holds, problem):
    for _ in range(200):
        if holds():
            return
        time.sleep(0.05)
    sys.exit(problem)
