"""tools/gdb/spillway_gdb.py: what gdb shows of the runtime's own types, in a small program."""
import shutil
import subprocess
import unittest

import tool_case

PROGRAM = """
#include "cache/block_table/pin_word.h"
using namespace spw;
using cache::PinWord;
int main() {
  BlockId block(1234), none = kNoBlock;
  FrameId frame(7);
  PinWord filling = PinWord::filling(block, 2, true), free;
  cache::AtomicPinWord dirty;
  dirty.store_release(filling.in_state(cache::FrameState::kResident).with(PinWord::kDirty | PinWord::kWriting));
  __builtin_debugtrap();
  return static_cast<int>(block.value + none.value + frame.value + free.bits() + dirty.load_relaxed().bits());
}
"""
TRACED = """
#include <thread>
#include "telemetry/counters.h"
using namespace spw::telemetry;
int main() {
  note_event(TraceEvent::kEvicted, 7);
  std::thread([] { note_event(TraceEvent::kEvicted, 8); }).join();
  note_event(TraceEvent::kWritten, 9, 4);
  note_event(TraceEvent::kLimit, kTraceNoBlock, 77);
  __builtin_debugtrap();
}
"""
SHOWN = {"block": "block 1234", "none": "no block", "frame": "frame 7", "free": "free",
         "filling": "block 1234 filling, 2 refs, ahead", "dirty": "block 1234 resident, 2 refs, ahead, writing, dirty"}


class Printers(tool_case.ToolCase):
    @unittest.skipUnless(shutil.which("gdb"), "gdb is not installed")
    def test_words_of_the_runtime_are_shown_as_what_they_mean(self):
        source, program = self.folder / "words.cc", self.folder / "words"
        source.write_text(PROGRAM)
        subprocess.run(["clang++-19", "-std=c++20", "-g", "-O0", f"-I{self.source}/src", source, "-o", program], check=True)
        commands = [f"source {self.source}/tools/gdb/spillway_gdb.py", "run", *(f"print {name}" for name in SHOWN)]
        done = subprocess.run(["gdb", "-nx", "-q", "-batch", *(word for command in commands for word in ("-ex", command)),
                               program], capture_output=True, text=True, timeout=50)
        shown = [line.partition(" = ")[2] for line in done.stdout.splitlines() if line.startswith("$")]
        self.assertEqual(shown, list(SHOWN.values()), done.stdout + done.stderr)

    @unittest.skipUnless(shutil.which("gdb"), "gdb is not installed")
    def test_what_happened_last_to_blocks_is_shown_in_order(self):
        source, program = self.folder / "trace.cc", self.folder / "trace"
        source.write_text(TRACED)
        parts = [self.source / "src" / name for name in ("telemetry/counters.cc", "telemetry/latencies.cc", "telemetry/trace.cc",
                                                         "platform/time.cc", "base/check.cc")]
        subprocess.run(["clang++-19", "-std=c++20", "-g", "-O1", f"-I{self.source}/src", source, *parts, "-o", program], check=True)
        commands = [f"source {self.source}/tools/gdb/spillway_gdb.py", "run", "spw trace 3"]
        done = subprocess.run(["gdb", "-nx", "-q", "-batch", *(word for command in commands for word in ("-ex", command)),
                               program], capture_output=True, text=True, timeout=50)
        shown = [line.split("  ", 2)[2] for line in done.stdout.splitlines() if " us  thread " in line]
        self.assertEqual(shown, ["block 8, evicted, 0", "block 9, written, 4", "limit, 77"], done.stdout + done.stderr)


if __name__ == "__main__":
    tool_case.main()
