"""A database in the memory of several servers, and clients that read it (UMap's Figure 7). `./dev bench remote`, or see --help.

  nbd        one to four clients, each a process with a cap, read random pages of a database that is striped over three NBD servers,
             beside one; and each time beside as many fio processes with its nbd engine and as many reads under way
  rbd        the same of one image of a Ceph cluster of three OSDs, beside fio's rbd engine
  store      the rbd store without a cache above it beside fio's rbd engine: the same image, as many reads under way

All servers and clients are on this machine, in network namespaces of their own where it has them. So that they do not wait for its
processors, but for the network, as they would on machines of their own, packets between clients and servers are delayed; where there
are no namespaces, reads are, by nbdkit, and rbd has no such rows. The rows without delay say what the processors can do. A read is of
4 KiB and comes from a server; what a client finds in its memory does not count. Every figure is the median of some turns, the numbers
of clients in another order in each, and a ratio the median of the turns' ratios.
"""
import contextlib
import dataclasses
import json
import os
import pathlib
import random
import statistics
import subprocess
from collections.abc import Callable, Iterator

from harness import command, fio, servers, zram
from harness.machine import processor_s_below
from harness.network import Machine, network
from harness.process import end_with_parent
from harness.programs import Programs
from harness.report import Report, Row

MIB = 1 << 20
PAGE_BYTES = 4096
SERVERS, CLIENTS, THREADS = 3, (1, 2, 3, 4), 3
MEMORY_COPIES = 4  # of the database: a cluster has three, and more while one is written
CAP = 64 * MIB
SCALING_MIN, STORE_MIN = 3.5, 0.9
TURNS, STORE_TURNS = 3, 5
RAMP_S, SECONDS, LIMIT_S = 1, 3, 120
# The rbd store beside fio: order, block, reads under way.
STORE_READS = (("random", 4096, 32), ("sequential", 256 << 10, 8))
FIO_ORDERS = {"random": "randread", "sequential": "read"}
FIO_OPTIONS = ("--thread", "--time_based", "--norandommap", "--randrepeat=0", "--group_reporting", "--output-format=json", "--readonly")
IMAGE = "database"
FIO_RBD = ("--ioengine=rbd", "--clientname=admin", f"--pool={servers.POOL}", f"--rbdname={IMAGE}")


class Failed(Exception):
    pass


class Skipped(Exception):
    pass


@dataclasses.dataclass
class Bench(Report):
    programs: Programs = None
    scale: int = 1

    @property
    def clients(self) -> tuple[int, ...]:
        return CLIENTS if self.scale == 1 else (CLIENTS[0], CLIENTS[-1])

    @property
    def times_s(self) -> tuple[float, float]:
        """Ramp, and what is measured, of programs that run for a time."""
        return (RAMP_S, SECONDS) if self.scale == 1 else (0, 1)

    def turns(self, usual: int) -> int:
        return usual if self.scale == 1 else 1


@dataclasses.dataclass(frozen=True)
class Plan:
    """Of the database and its clients. delay_ms: enough that four clients leave the processors idle most of the time."""

    bytes: int
    delay_ms: int
    reads: int  # of each thread, where answers are delayed
    reads_at_once: int


PLANS = {"nbd": Plan(768 * MIB, 2, 1300, 8000), "rbd": Plan(384 * MIB, 4, 700, 4000)}


@dataclasses.dataclass(frozen=True)
class Service:
    """A database that is served: its name for a client of ours, and fio's words and environment for it."""

    store: str
    bytes: int
    fio: tuple[str, ...]
    fio_jobs: int
    environment: dict[str, str] = dataclasses.field(default_factory=dict)


Serve = Callable[[Bench, list[Machine], int], contextlib.AbstractContextManager[Service]]

# --- clients ----------------------------------------------------------------------------------------------------------

@contextlib.contextmanager
def _started(commands: list[list], **options) -> Iterator[list[subprocess.Popen]]:
    with contextlib.ExitStack() as stack:
        runs = []
        for words in commands:
            run = subprocess.Popen([str(word) for word in words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True, preexec_fn=end_with_parent, start_new_session=True, **options)
            stack.enter_context(run)
            stack.callback(run.kill)
            runs.append(run)
        yield runs


def _outputs(runs: list[subprocess.Popen], send: str = "") -> list[str]:
    for run in runs:  # all of them, before any is waited for
        with contextlib.suppress(BrokenPipeError):  # its exit status says more
            run.stdin.write(send)
            run.stdin.flush()
    found = []
    for run in runs:
        output, errors = run.communicate(timeout=LIMIT_S)
        if run.returncode != 0:
            raise Failed(f"{' '.join(run.args[:4])} ...: exit status {run.returncode}: {' / '.join(errors.strip().splitlines()[-5:])}")
        found.append(output)
    return found


def _client(bench: Bench, machine: Machine, *words: object, options: tuple = ()) -> list:
    build = bench.programs.build / "bin"
    return [*machine.words, build / "spillway", "run", "--engine", "mapped", "--memory", CAP, "--store", bench.programs.store, *options,
            "--", build / "remote_reads", *words]


def _ours(bench: Bench, service: Service, machines: list[Machine], reads: int, busy: list[float]) -> float:
    """Pages a second that come from the servers to all clients, which begin at one moment, till the last one has read its own. The
    share of the processors that they and the servers had meanwhile goes to `busy`."""
    reports_of = [bench.programs.store / f"client{number}.json" for number in range(len(machines))]
    commands = [_client(bench, machine, "read", service.store, service.bytes, THREADS, reads, number, options=(f"--stats={report}",))
                for number, (machine, report) in enumerate(zip(machines, reports_of, strict=True))]
    with _started(commands) as runs:
        for run in runs:
            if run.stdout.readline() != "ready\n":
                _outputs([run])
                raise Failed("a client is not ready")
        before_s = processor_s_below()
        said = [json.loads(output) for output in _outputs(runs, "\n")]
        worked_s = processor_s_below() - before_s
    if any(each["sum"] != each["expected_sum"] for each in said):
        raise Failed(f"a client read what is not in the database: {said}")
    filled = sum(json.loads(report.read_text())["counters"]["fills"] for report in reports_of)
    took_ns = max(each["ended_ns"] for each in said) - min(each["began_ns"] for each in said)
    busy.append(worked_s / (took_ns / 1e9 * os.cpu_count()))
    return filled / took_ns * 1e9


def _fio(bench: Bench, service: Service, machines: list[Machine], how: tuple[str, int, int]) -> float:
    """Reads a second of a fio process on each machine. `how`: as STORE_READS has it."""
    (order, block_bytes, depth), (ramp_s, measured_s) = how, bench.times_s
    words = ["fio", *FIO_OPTIONS, f"--ramp_time={ramp_s}", f"--runtime={measured_s}", f"--rw={FIO_ORDERS[order]}", f"--bs={block_bytes}",
             f"--iodepth={depth // service.fio_jobs}", *service.fio]
    with _started([[*machine.words, *words] for machine in machines], env=os.environ | service.environment) as runs:
        return sum(_reads_per_s(output) for output in _outputs(runs))


def _reads_per_s(fio_output: str) -> float:
    return sum(job["read"]["iops"] for job in json.loads(fio_output[fio_output.index("{"):])["jobs"])


def _fill(bench: Bench, store: str, size_bytes: int) -> None:
    with _started([_client(bench, Machine(), "make", store, size_bytes)]) as runs:
        _outputs(runs)


# --- servers ----------------------------------------------------------------------------------------------------------

@contextlib.contextmanager
def _nbd(bench: Bench, machines: list[Machine], delay_ms: int) -> Iterator[Service]:
    size_bytes = PLANS["nbd"].bytes // bench.scale
    with contextlib.ExitStack() as stack:
        uris = [stack.enter_context(servers.nbd(machine, size_bytes // SERVERS, delay_ms)) for machine in machines]
        striped = f"striped:{','.join(uris)}"
        _fill(bench, striped, size_bytes)
        jobs = [word for number, uri in enumerate(uris) for word in (f"--name=server{number}", "--ioengine=nbd", f"--uri={uri}")]
        yield Service(striped, size_bytes, tuple(jobs), SERVERS)


@contextlib.contextmanager
def _rbd(bench: Bench, machines: list[Machine], delay_ms: int = 0) -> Iterator[Service]:
    if delay_ms:
        raise Skipped("nothing delays answers here")
    size_bytes = PLANS["rbd"].bytes // bench.scale
    with servers.ceph(machines, 2 * size_bytes) as cluster:
        cluster.make_image(IMAGE, size_bytes)
        _fill(bench, f"rbd:{servers.POOL}/{IMAGE}?conf={cluster.conf}", size_bytes)
        yield Service(f"rbd:{servers.POOL}/{IMAGE}?conf={cluster.conf}&mode=read", size_bytes, ("--name=image", *FIO_RBD), 1,
                      {"CEPH_CONF": str(cluster.conf)})


# --- sections ---------------------------------------------------------------------------------------------------------

def _ratio(ours: list[float], peer: list[float]) -> float:
    return statistics.median(one / other for one, other in zip(ours, peer, strict=True))


def _row(bench: Bench, section: str, name: str, ours: list[float], peer: list[float], target: float = 0, note: str = "") -> None:
    bench.add(Row(section, name, statistics.median(ours), statistics.median(peer), "reads/s", _ratio(ours, peer), False, target, note=note,
                  details={"ours": ours, "peer": peer}))


def _measure(bench: Bench, section: str, service: Service, clients: list[Machine], delayed: bool) -> dict[str, dict[int, list[float]]]:
    """Rates by who reads and by how many there are; `busy` as _ours() has it."""
    reads = (PLANS[section].reads if delayed else PLANS[section].reads_at_once) // bench.scale
    busy = {count: [] for count in bench.clients}
    kinds = {"ours": lambda count: _ours(bench, service, clients[:count], reads, busy[count])}
    if reason := fio.why_no_engine(section):
        bench.skip(f"{section}: fio", reason)
    else:
        kinds["fio"] = lambda count: _fio(bench, service, clients[:count], ("random", PAGE_BYTES, THREADS))
    found = {kind: {count: [] for count in bench.clients} for kind in kinds}
    for turn in range(bench.turns(TURNS)):
        for count in random.Random(turn).sample(bench.clients, len(bench.clients)):
            for kind, rate in kinds.items():
                found[kind][count].append(rate(count))
    return found | {"busy": busy}


def _compare(bench: Bench, section: str, serve: Serve, delay_ms: int) -> None:
    with network((SERVERS, max(CLIENTS)), delay_ms * 1000, bench.programs.build) as net:
        served_late_ms = 0 if net.has_delay else delay_ms
        with serve(bench, net.servers, served_late_ms) as service:
            found = _measure(bench, section, service, net.clients, delay_ms > 0)
    how = f"{delay_ms} ms" if delay_ms else "no delay"
    note = net.text + (f", {delay_ms} ms by the servers" if served_late_ms else "")
    ours = found["ours"]
    for count in bench.clients[1:]:
        _row(bench, section, f"{how}: {count} clients beside one", ours[count], ours[1], SCALING_MIN if delay_ms and count == max(CLIENTS) else 0,
             f"{100 * statistics.median(found['busy'][count]):.0f} % of the processors; {note}")
    for count, rates in found.get("fio", {}).items():
        _row(bench, section, f"{how}: {count} client{'s' if count > 1 else ''} beside fio", ours[count], rates)


def _why_no_memory(section: str, scale: int) -> str | None:
    needed = PLANS[section].bytes // scale * MEMORY_COPIES
    free = zram.parse_available_bytes(pathlib.Path("/proc/meminfo").read_text())
    return None if needed <= free else f"the servers' memory is {needed // MIB} MiB; {free // MIB} MiB are available"


def _scaling(bench: Bench, section: str, serve: Serve, why_not: str | None) -> None:
    if reason := why_not or _why_no_memory(section, bench.scale):
        bench.skip(section, reason)
        return
    for delay_ms in (PLANS[section].delay_ms, 0):
        try:
            _compare(bench, section, serve, delay_ms)
        except Skipped as why:
            bench.skip(f"{section}: a delay of {delay_ms} ms", str(why))
        except (Failed, servers.Failed, subprocess.TimeoutExpired) as why:
            bench.failure(section, f"a delay of {delay_ms} ms", str(why))


def nbd(bench: Bench) -> None:
    _scaling(bench, "nbd", _nbd, servers.why_no_nbd())


def rbd(bench: Bench) -> None:
    _scaling(bench, "rbd", _rbd, servers.why_no_ceph())


def _of_store(bench: Bench, service: Service, how: tuple[str, int, int]) -> float:
    order, block_bytes, depth = how
    words = [bench.programs.build / "bin" / "store_reads", service.store, block_bytes, depth, order, *bench.times_s]
    with _started([words]) as runs:
        return json.loads(_outputs(runs)[0])["reads_per_s"]


def store(bench: Bench) -> None:
    if reason := servers.why_no_ceph() or fio.why_no_engine("rbd") or _why_no_memory("rbd", bench.scale):
        bench.skip("store", reason)
        return
    machine = Machine()
    try:
        with _rbd(bench, [machine] * SERVERS) as service:
            for how in STORE_READS:
                found = {"ours": [], "fio": []}
                for turn in range(bench.turns(STORE_TURNS)):
                    for kind in sorted(found, reverse=turn % 2 == 0):
                        found[kind].append(_of_store(bench, service, how) if kind == "ours" else _fio(bench, service, [machine], how))
                order, block_bytes, depth = how
                _row(bench, "store", f"{order} reads of {block_bytes >> 10} KiB, {depth} under way: fio's rbd engine", found["ours"], found["fio"],
                     STORE_MIN)
    except (Failed, servers.Failed, subprocess.TimeoutExpired) as why:
        bench.failure("store", "the rbd store beside fio", str(why))


SECTIONS = {"nbd": nbd, "rbd": rbd, "store": store}


def main(arguments: list[str]) -> int:
    parser = command.parser("remote", __doc__, SECTIONS, None)
    command.add_scale(parser)
    options = parser.parse_args(arguments)
    sizes = " and ".join(f"{plan.bytes // MIB // options.scale} MiB ({section})" for section, plan in PLANS.items())
    about = {"database": f"{sizes} on {SERVERS} servers", "each client": f"{THREADS} threads, {CAP // MIB} MiB of memory",
             "each figure": f"median of {TURNS} turns, of {STORE_TURNS} in store", "scale": options.scale}
    return command.run(options, about, 0, lambda programs: Bench("remote", programs=programs, scale=options.scale), SECTIONS)
