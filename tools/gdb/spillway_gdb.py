"""How gdb shows what Spillway's own types mean. In gdb: source tools/gdb/spillway_gdb.py

    BlockId, FrameId, PartitionId   block 1234, frame 7, no frame
    PinWord, AtomicPinWord          block 1234 resident, 2 refs, dirty, referenced
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


gdb.printing.register_pretty_printer(gdb.current_objfile(), printers(), replace=True)
