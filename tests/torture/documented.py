"""Where a program's memory calls may do something else than natively, since it is documented: what is left out of the sequences, for each
kind of program, and why. Names are those of operations (the tables in the sources beside this) and of what allowed() is asked for there.

Nothing else is left out or forgiven.
"""
import dataclasses

NATIVE = ("unmodified", "threads", "rights")
RECOMPILED = ("mapped", "translated")
ALL = NATIVE + RECOMPILED


@dataclasses.dataclass(frozen=True)
class Rule:
    name: str
    kinds: tuple[str, ...]
    reason: str  # sections of spillway-regions(7)


RULES = (
    Rule("have_a_child", ("translated",), "fork: a child that touches managed memory is refused in the translated engine"),
    Rule("fork_beside_threads", ("translated",), "fork: as have_a_child"),
    Rule("fork_with_advice", ("translated",), "fork: as have_a_child"),
    Rule("touch_hole_in_managed", ("translated",), "munmap: an access to what is unmapped ends the program with a message"),
    Rule("stack_in_managed", ("translated",), "Locks: no stacks in managed memory"),
    Rule("share_managed", ALL, "mmap, shmat: nothing shared at managed addresses (EINVAL)"),
    Rule("move_into_managed", ALL, "mremap: what is the kernel's does not move to managed addresses (EINVAL)"),
    Rule("code_in_managed", ALL, "munmap: si_code of an access to what is unmapped"),
    Rule("end_of_managed_file", RECOMPILED, "mmap: SIGSEGV, not SIGBUS, behind the end of a managed file"),
    Rule("share_file_near", RECOMPILED, "Kinds: stores to a managed file that is shared reach it later, what others write to it is not seen"),
    Rule("read_only_file_near", RECOMPILED, "mmap: a store to a managed private mapping that is only to be read succeeds"),
    Rule("unreadable_of_process", ALL, "process_vm_readv, madvise (POPULATE_READ): read what may be stored to or executed, but not read"),
    Rule("part_into_pipe", ALL, "System calls: a pipe takes or fills what comes before memory that may not be accessed, not whole pages of it"),
    Rule("replace_managed_file", RECOMPILED, "mmap: nothing replaces a mapped file (ENOMEM)"),
    Rule("move_managed_file", RECOMPILED, "mremap: a mapped file moves as a whole, and not to an address that is asked for (EINVAL)"),
    Rule("rights_of_managed", ("translated",), "Memory calls: no access rights in the translated engine"),
    Rule("lock_managed", ALL, "mmap: MAP_LOCKED is the kernel's"),
    Rule("lock_managed_pages", ("translated",), "Memory calls: nothing is locked in the translated engine"),
    Rule("file_in_managed", ALL, "mmap: MAP_FIXED at a managed address makes memory with a copy of the file"),
    Rule("hint_of_managed", ALL, "mmap: hints are not followed where managed memory is handed out"),
    Rule("proc_mem_of_managed", ALL, "process_vm_readv: /proc/PID/mem has not what is not in memory (EIO)"),
    Rule("move_break", ALL, "sbrk: ENOMEM over the quota"),
    Rule("managed_madvise_guard_install", ALL, "madvise: no guards (EINVAL)"),
    Rule("managed_madvise_guard_remove", ALL, "madvise: no guards (EINVAL)"),
)


def left_out(kind: str) -> list[str]:
    return [rule.name for rule in RULES if kind in rule.kinds]
