"""A network of a benchmark's own: machines on two sides, servers and clients, each one a network namespace, each side at a bridge.
Machines have links of some bandwidth where the kernel has tbf. Between the sides is a line on which packets take a while: by netem
where the kernel has it, else by a program (bench/remote/delayed_line.cc). Where there can be no namespaces, every machine is this
one, on loopback.

The bridges are in a namespace, too, which only this thread and what it starts are in, and a machine's is held by a process that
ends with this one: nothing outlives the run, and the system's own network is as it was.
"""
import contextlib
import ctypes
import dataclasses
import os
import pathlib
import shutil
import subprocess
from collections.abc import Iterator

from .process import end_with_parent

CLONE_NEWNET = 0x40000000
LIBC = ctypes.CDLL(None, use_errno=True)
TOOLS = ("ip", "tc", "nsenter")
LOOPBACK = "127.0.0.1"
SIDES = ("servers", "clients")  # the bridges
LINK = "eth0"  # as a machine sees its own
RATE = "1gbit"
BURST = "256k"  # more than the largest packet that the kernel hands to a link at once
QUEUE_PACKETS = 10_000
QUEUE_LIMIT = "50ms"


class _Unavailable(Exception):
    pass


@dataclasses.dataclass(frozen=True)
class Machine:
    address: str = LOOPBACK
    words: tuple[str, ...] = ()  # before a command that is to run there


@dataclasses.dataclass(frozen=True)
class Network:
    servers: list[Machine]
    clients: list[Machine]
    has_delay: bool
    text: str


def _call(name: str, *arguments: int) -> None:
    if getattr(LIBC, name)(*arguments) != 0:
        raise _Unavailable(f"{name}: {os.strerror(ctypes.get_errno())}")


def _tool(*words: object) -> None:
    done = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        raise _Unavailable(f"{words[0]}: {done.stdout.strip()}")


def _takes(*words: object) -> bool:
    try:
        _tool(*words)
    except _Unavailable:
        return False
    return True


@contextlib.contextmanager
def _own_namespace() -> Iterator[None]:
    before = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        _call("unshare", CLONE_NEWNET)
        try:
            yield
        finally:
            _call("setns", before, CLONE_NEWNET)
    finally:
        os.close(before)


@contextlib.contextmanager
def _held_namespace() -> Iterator[int]:
    """The process that is in it."""
    def begin() -> None:
        end_with_parent()
        if LIBC.unshare(CLONE_NEWNET) != 0:
            os._exit(1)

    # It is in its namespace when it executes something, which is when Popen returns.
    with subprocess.Popen(["sleep", "infinity"], preexec_fn=begin, start_new_session=True) as holder:
        try:
            yield holder.pid
        finally:
            holder.kill()


def _make_machine(side: int, number: int, holder: int) -> tuple[Machine, bool]:
    """The machine, and whether its link has a bandwidth."""
    inside = ("nsenter", f"--net=/proc/{holder}/ns/net")
    address, port = f"10.0.{side}.{number + 1}", f"port{side}.{number}"
    _tool("ip", "link", "add", port, "type", "veth", "peer", "name", LINK, "netns", holder)
    _tool("ip", "link", "set", port, "master", SIDES[side], "up")
    _tool(*inside, "ip", "addr", "add", f"{address}/16", "dev", LINK)
    for device in ("lo", LINK):
        _tool(*inside, "ip", "link", "set", device, "up")
    limit = ("root", "tbf", "rate", RATE, "burst", BURST, "latency", QUEUE_LIMIT)
    has_rate = all(_takes(*where, "tc", "qdisc", "add", "dev", device, *limit) for where, device in ((inside, LINK), ((), port)))
    return Machine(address, inside), has_rate


@contextlib.contextmanager
def _line(delay_us: int, build: pathlib.Path) -> Iterator[str]:
    """Between the sides, so long each way. What delays it; "": nothing does."""
    ends = [f"to_{side}" for side in SIDES]
    with contextlib.ExitStack() as stack:
        _tool("ip", "link", "add", ends[0], "type", "veth", "peer", "name", ends[1])
        by = ""
        if delay_us and all(_takes("tc", "qdisc", "add", "dev", end, "root", "netem", "delay", f"{delay_us}us", "limit", QUEUE_PACKETS) for end in ends):
            by = "netem"
        elif delay_us and os.access("/dev/net/tun", os.R_OK | os.W_OK):
            _tool("ip", "link", "del", ends[0])
            command = [build / "bin" / "delayed_line", *ends, str(delay_us)]
            line = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, text=True, preexec_fn=end_with_parent,
                                                        start_new_session=True))
            stack.callback(line.kill)
            if line.stdout.readline() != "ready\n":
                raise _Unavailable("the delayed line does not start")
            by = "a program, since this kernel has no netem"
        for end, side in zip(ends, reversed(SIDES), strict=True):
            _tool("ip", "link", "set", end, "master", side, "up")
        yield by


@contextlib.contextmanager
def _namespaces(counts: tuple[int, int], round_trip_us: int, build: pathlib.Path) -> Iterator[Network]:
    if missing := [tool for tool in TOOLS if not shutil.which(tool)]:
        raise _Unavailable(f"{', '.join(missing)} is missing")
    with contextlib.ExitStack() as stack:
        stack.enter_context(_own_namespace())
        _tool("ip", "link", "set", "lo", "up")
        for side in SIDES:
            _tool("ip", "link", "add", side, "type", "bridge")
            _tool("ip", "link", "set", side, "up")
        _tool("ip", "addr", "add", "10.0.255.254/16", "dev", SIDES[0])  # this process is near the servers
        delayed_by = stack.enter_context(_line(round_trip_us // 2, build))
        made = [[_make_machine(side, number, stack.enter_context(_held_namespace())) for number in range(count)]
                for side, count in enumerate(counts)]
        links = f"links of {RATE}" if all(has_rate for side in made for _, has_rate in side) else "links as fast as the kernel"
        delay = f", {round_trip_us / 1000:g} ms there and back by {delayed_by}" if delayed_by else ""
        yield Network(*([machine for machine, _ in side] for side in made), bool(delayed_by), f"network namespaces, {links}{delay}")


@contextlib.contextmanager
def network(counts: tuple[int, int], round_trip_us: int, build: pathlib.Path) -> Iterator[Network]:
    """So many servers and clients; with so much delay between the two where has_delay says so. build: where programs are."""
    with contextlib.ExitStack() as stack:
        try:
            made = stack.enter_context(_namespaces(counts, round_trip_us, build))
        except _Unavailable as why:
            made = Network(*([Machine()] * count for count in counts), False, f"loopback, no namespaces ({why})")
        yield made
