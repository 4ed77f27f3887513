"""How gdb shows what Spillway's own types mean. In gdb: source tools/gdb/spillway_gdb.py

    BlockId, FrameId, PartitionId   block 1234, frame 7, no frame
    PinWord, AtomicPinWord          block 1234 resident, 2 refs, dirty, referenced
    spw trace [N]                   the last N things that happened to blocks [50], of all threads (telemetry/trace.h)
"""
import gdb
import gdb.printing

FLAGS = ("Waiters", "Ahead", "Referenced", "Writing", "Dirty", "Parked")


class IdPrinter:
    """Id<BlockIdTag, uint64_t>: what it counts, and which."""

    def __init__(self, value):
        self.kind = str(value.type.strip_typedefs().template_argument(0)).rsplit("::", 1)[-1].removesuffix("IdTag").lower()
        self.number, self.bits = int(value["value"]), 8 * value["value"].type.sizeof

    def to_string(self):
        return f"no {self.kind}" if self.number == (1 << self.bits) - 1 else f"{self.kind} {self.number}"


class PinWordPrinter:
    """The 64 bits of a frame, by the constants of PinWord itself."""

    def __init__(self, value):
        self.bits = int(self.bits_of(value))

    @staticmethod
    def bits_of(value):
        if value.type.strip_typedefs().name.endswith("::PinWord"):
            return value["bits_"]
        # An AtomicPinWord is its eight bytes, and always in memory.
        return value.address.cast(gdb.lookup_type("unsigned long").pointer()).dereference()

    @staticmethod
    def constant(name):
        return int(gdb.parse_and_eval(f"spw::cache::PinWord::{name}"))

    def to_string(self):
        states = {field.enumval: field.name for field in gdb.lookup_type("spw::cache::FrameState").fields()}
        state = states[(self.bits & self.constant("kStateMask")) >> self.constant("kStateShift")]
        state = state.rsplit("::k", 1)[-1].lower()
        refs = self.bits & self.constant("kRefsMax")
        flags = [flag.lower() for flag in FLAGS if self.bits & self.constant(f"k{flag}")]
        if state == "free":
            return ", ".join(["free", *flags])
        return ", ".join([f"block {self.bits >> self.constant('kBlockShift')} {state}", f"{refs} refs", *flags])


def printers():
    collection = gdb.printing.RegexpCollectionPrettyPrinter("spillway")
    collection.add_printer("Id", r"^spw::Id<.*>$", IdPrinter)
    collection.add_printer("PinWord", r"^spw::cache::(Atomic)?PinWord$", PinWordPrinter)
    return collection


def counter_blocks():
    """Those of all threads that have counted something, ended ones too, by the registry of telemetry/counters.cc."""
    node_type = gdb.lookup_type("spw::telemetry::(anonymous namespace)::Registry").pointer()
    found = gdb.parse_and_eval("&'spw::telemetry::(anonymous namespace)::registry()::instance'")
    node = found.cast(node_type.pointer()).dereference()["all"]
    while node:
        yield node["block"].dereference()
        node = node["next_all"]


def atomic(value):
    """An Atomic<uint64_t> is its eight bytes."""
    return int(value.address.cast(gdb.lookup_type("unsigned long").pointer()).dereference())


def traced():
    """(at_ns, thread, block, event, value) of all entries, in the order of time."""
    entries = []
    for thread, counters in enumerate(counter_blocks()):
        slots = counters["trace"]["slots_"]["_M_elems"]
        for i in range(slots.type.strip_typedefs().range()[1] + 1):
            stamp, at_ns, block, what = (atomic(slots[i][name]) for name in ("stamp", "at_ns", "block", "what"))
            if stamp != 0:
                entries.append((at_ns, thread, block, what >> 56, what & ((1 << 56) - 1)))
    return sorted(entries)


class SpwPrefix(gdb.Command):
    """What Spillway knows of the program."""

    def __init__(self):
        super().__init__("spw", gdb.COMMAND_DATA, prefix=True)


class Trace(gdb.Command):
    """The last things that happened to blocks: spw trace [N]."""

    def __init__(self):
        super().__init__("spw trace", gdb.COMMAND_DATA)

    def invoke(self, argument, _from_tty):
        events = {field.enumval: field.name.rsplit("::k", 1)[-1].lower()
                  for field in gdb.lookup_type("spw::telemetry::TraceEvent").fields()}
        entries = traced()[-(int(argument) if argument else 50):]
        for at_ns, thread, block, event, value in entries:
            before_us = (entries[-1][0] - at_ns) / 1000
            place = "" if block == (1 << 64) - 1 else f"block {block}, "
            print(f"-{before_us:.1f} us  thread {thread}  {place}{events.get(event, event)}, {value}")


SpwPrefix()
Trace()
gdb.printing.register_pretty_printer(gdb.current_objfile(), printers(), replace=True)
