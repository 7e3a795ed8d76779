"""Several hosts on one machine: network namespaces, each with a name and an address."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import ExitStack, suppress
from pathlib import Path

#: The network that the hosts share; nothing else on the machine is in it.
NETWORK = "10.77.0"
_NUMBERS = itertools.count()


class Hosts:
    """Hosts that reach each other, and nothing else; `NETWORK`.1 is the first.

    Parameters
    ----------
    count : int
    folder : Path
        Where to put the program that stands in for ssh.
    """

    def __init__(self, count, folder):
        # The kernel takes its time to remove a network: names are used once.
        self._name = f"ac{os.getpid()}x{next(_NUMBERS)}"
        self.addresses = [f"{NETWORK}.{i}" for i in range(1, count + 1)]
        self.ssh = folder / "on-host"  # of a program called ssh, mpirun would expect its options
        self.ssh.write_text(
            "#!/bin/sh\n"
            "host=$1; shift\n"
            f'exec ip netns exec "{self._name}-${{host##*.}}" '
            'unshare --uts sh -c "hostname host-${host##*.}; $*"\n'
        )
        self.ssh.chmod(0o700)
        self._cleaning = ExitStack()

    def __enter__(self):
        with ExitStack() as stack:
            switch = f"{self._name}s"
            self._ip("link", "add", switch, "type", "bridge", undo=(stack, "link", "del", switch))
            self._ip("link", "set", switch, "up")
            for i, address in enumerate(self.addresses, start=1):
                host, plug = f"{self._name}-{i}", f"{self._name}p{i}"
                self._ip("netns", "add", host, undo=(stack, "netns", "del", host))
                stack.callback(end_all, host)
                self._ip(*f"link add {plug} type veth peer name eth0 netns {host}".split())
                self._ip("link", "set", plug, "master", switch, "up")
                self._ip("-n", host, "addr", "add", f"{address}/24", "dev", "eth0")
                for device in ("lo", "eth0"):
                    self._ip("-n", host, "link", "set", device, "up")
            self._cleaning = stack.pop_all()
        return self

    def __exit__(self, *error):
        self._cleaning.close()

    def _ip(self, *words, undo=None):
        subprocess.run(["ip", *words], check=True, capture_output=True, text=True)
        if undo is not None:
            stack, *back = undo
            stack.callback(subprocess.run, ["ip", *back], check=False)

    def run(self, host, command, **options):
        """Run a command line on a host, by number from 0, to its end."""
        words = [self.ssh, self.addresses[host], command]
        return subprocess.run(words, capture_output=True, text=True, check=False, **options)

    def start(self, host, command, log, **options):
        """Start a command line on a host; it ends when the hosts go."""
        with Path(log).open("w") as output:
            words = [self.ssh, self.addresses[host], command]
            subprocess.Popen(words, stdout=output, stderr=output, **options)


def end_all(host):
    """End all processes on a host, which are all of our own."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        listed = subprocess.run(["ip", "netns", "pids", host], capture_output=True, text=True)
        for process in map(int, listed.stdout.split()):
            with suppress(ProcessLookupError):
                os.kill(process, number)
        time.sleep(0.5 if listed.stdout else 0.0)


def why_not():
    """Why hosts cannot be made here; None if they can."""
    missing = [tool for tool in ("ip", "unshare", "hostname") if shutil.which(tool) is None]
    if missing:
        return f"hosts are made by {', '.join(missing)}, which is not installed"
    with tempfile.TemporaryDirectory() as folder:
        try:
            with Hosts(1, Path(folder)) as hosts:
                done = hosts.run(0, "hostname")
        except subprocess.CalledProcessError as error:
            return f"network namespaces may not be made here: {error.stderr.strip()}"
    return None if done.stdout == "host-1\n" else f"a host does not run: {done.stderr.strip()}"
