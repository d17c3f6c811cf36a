"""A network namespace for a replica, whose link to the store can fail without an answer.

A process that dies closes its connections, and a proxy that is cut does too. A cable does not: packets vanish, and each
side waits for the other until a time limit of its own. It takes root and `ip` (iproute2), and no firewall:

- `link down` takes the link down: packets vanish, and after some seconds new connections fail;
- `silence` gives each side a wrong hardware address of the other, so that everything vanishes for as long as it lasts;
- `lost answers` does this on the side of the store alone: requests arrive and are done, and their answers vanish.
"""

from __future__ import annotations

import subprocess

from proxy import StoreProxy

MAX_NAMESPACES = 250
WRONG_ADDRESS = "02:00:00:00:00:01"


class NamespaceLink:
    """A namespace with one link to the clients, which stays, and one to the store.

    The store listens on its own address only, so the host's side of the link forwards to it.
    """

    cut_modes = ("link down", "silence", "lost answers")

    def __init__(self, target: int):
        self.number = reserve_number()
        self.name = f"lookalike{self.number}"
        self.client_link, self.store_link = f"lkc{self.number}", f"lks{self.number}"
        self.replica_host = f"10.213.{self.number}.2"
        self.store_net = f"10.213.{self.number}.4/30"
        self.store_side, self.replica_side = f"10.213.{self.number}.5", f"10.213.{self.number}.6"
        try:
            self._connect(self.client_link, "clients", f"10.213.{self.number}.1", self.replica_host)
            self._connect(self.store_link, "store", self.store_side, self.replica_side)
            # While the link is down, nothing for the replica takes another way.
            run_ip("route", "add", "blackhole", self.store_net, "metric", "4096")
            run_ip("-n", self.name, "link", "set", "lo", "up")
            self.proxy = StoreProxy(target, self.store_side)
        except BaseException:
            self._remove()
            raise
        self.endpoint = self.proxy.endpoint
        self.command_prefix = ["ip", "netns", "exec", self.name]

    def _connect(self, outside: str, inside: str, host: str, replica: str) -> None:
        run_ip("link", "add", outside, "type", "veth", "peer", "name", inside, "netns", self.name)
        run_ip("address", "add", f"{host}/30", "dev", outside)
        run_ip("link", "set", outside, "up")
        run_ip("-n", self.name, "address", "add", f"{replica}/30", "dev", inside)
        run_ip("-n", self.name, "link", "set", inside, "up")

    def cut(self, mode: str) -> None:
        if mode == "link down":
            run_ip("link", "set", self.store_link, "down")
            return
        mislead((), self.replica_side, self.store_link)
        if mode == "silence":
            mislead(("-n", self.name), self.store_side, "store")

    def mend(self) -> None:
        run_ip("link", "set", self.store_link, "up")
        # A cut of another mode has left nothing to remove.
        run_ip("neighbour", "delete", self.replica_side, "dev", self.store_link, is_checked=False)
        run_ip("-n", self.name, "neighbour", "delete", self.store_side, "dev", "store", is_checked=False)

    def close(self) -> None:
        self.proxy.close()
        self._remove()

    def _remove(self) -> None:
        """Removes the namespace with its links, as far as they exist."""
        for link in (self.client_link, self.store_link):
            run_ip("link", "delete", link, is_checked=False)
        run_ip("route", "delete", "blackhole", self.store_net, is_checked=False)
        run_ip("netns", "delete", self.name, is_checked=False)


def reserve_number() -> int:
    """Creates a namespace under the first free number and returns it, so that several runs do not take the same one."""
    reason = ""
    for number in range(1, MAX_NAMESPACES):
        created = run_ip("netns", "add", f"lookalike{number}", is_checked=False)
        if created.returncode == 0:
            return number
        reason = created.stderr.strip()
        if "File exists" not in reason:
            break
    raise RuntimeError(f"no network namespace can be created: {reason}; this takes root")


def mislead(arguments: tuple[str, ...], address: str, link: str) -> None:
    """Lets one side send the packets for an address to a machine that does not exist."""
    run_ip(*arguments, "neighbour", "replace", address, "lladdr", WRONG_ADDRESS, "dev", link, "nud", "permanent")


def run_ip(*arguments: str, is_checked: bool = True) -> subprocess.CompletedProcess:
    finished = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    if is_checked and finished.returncode != 0:
        raise RuntimeError(f"ip {' '.join(arguments)}: {finished.stderr.strip()}")
    return finished
