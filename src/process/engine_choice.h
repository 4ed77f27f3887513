// Which engine a process runs: what its code was compiled for, what the user asked for, and what the machine allows.
//
//   --engine     code compiled with hints, or none at all     code compiled with translations
//   mapped       mapped                                       mapped: translations find every address where it is
//   translated   refused                                      translated
//   auto         mapped                                       translated, or mapped if there is code with hints too
//
// Where its hint table cannot be had, mapped is refused, and auto is translated if any code has translations. Without
// userfaultfd it does with access rights (access/mapped/protected_pages.h). Files are buffered by either engine, so for
// a program of which some are, translated is not refused: then its files are all there is in managed space.
// Threads: at the start of the process, one.
#pragma once

#include "base/status.h"
#include "process/options.h"

namespace spw::process {

// What the modules that are loaded now were compiled for.
struct LoadedCode {
  bool has_hints = false;
  bool has_translations = false;
  bool has_go = false;  // Go's runtime: stacks, also for signals, are on its heap, which is managed
  bool is_recompiled() const { return has_hints || has_translations; }
};
LoadedCode loaded_code();

// kTranslated or kMapped. EPERM when the engine that is needed cannot run here; the message says how to mend it.
Result<EngineKind> choose_engine(EngineKind wanted, const LoadedCode& code, bool buffers_files = false);

}  // namespace spw::process
