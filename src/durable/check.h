// What a persistent region holds, and whether it hangs together. Changes nothing.
//
// Threads: one; nobody else has the region. Cost: reads the logs, the
// table of chunks and the bytes of each object's state.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "durable/recovery.h"

namespace spw::durable {

struct CheckReport {
  uint64_t objects = 0, object_bytes = 0;  // allocated
  uint64_t chunks = 0, free_chunks = 0, log_chunks = 0;
  std::vector<std::string> roots;
  // What the next to open it does: sections that it keeps though they were not history, and those that it undoes.
  uint64_t sections_to_keep = 0, sections_to_undo = 0;
  std::vector<std::string> problems;  // empty: none was found
};

// Of a region that needs no recovery, or before one: then objects are those of sections that will be undone, too; roots
// are as they are afterwards.
// `tells`: now and then, how many of the chunks were looked at.
using TellChecked = std::function<void(uint64_t chunks, uint64_t of)>;
CheckReport check_region(const RegionView& region, bool stores_leak, const TellChecked& tells = nullptr);
// Opens the file read-only, reads what matters of it, and checks that.
// EWOULDBLOCK: it is in use; EILSEQ: it is no region, or was cut off; EIO.
Result<CheckReport> check_file(const std::string& path, const TellChecked& tells = nullptr);

}  // namespace spw::durable
