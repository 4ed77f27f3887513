#include "process/store_check.h"

#include <linux/magic.h>
#include <sys/statfs.h>

#include <cstring>
#include <filesystem>

#include "base/units.h"
#include "platform/file.h"
#include "process/options.h"

namespace spw::process {

StoreFacts check_store(const std::string& directory) {
  StoreFacts facts;
  facts.named = is_store_name(directory);
  if (facts.named) return facts;
  std::error_code error;
  const auto kind = std::filesystem::status(directory, error).type();
  if (kind == std::filesystem::file_type::not_found) {
    facts.refusal = "it does not exist";
    return facts;
  }
  if (!error && kind != std::filesystem::file_type::directory) {
    facts.refusal = "it is not a directory";
    return facts;
  }
  auto spill = platform::open_spill_file(directory);
  if (!spill) {
    facts.refusal = std::string("no file can be made there (") + std::strerror(spill.status().error()) + ")";
    return facts;
  }
  struct statfs filesystem;
  if (::fstatfs((*spill).fd(), &filesystem) == 0)
    facts.is_memory = filesystem.f_type == TMPFS_MAGIC || filesystem.f_type == RAMFS_MAGIC;
  auto free = platform::filesystem_free(*spill);
  facts.free_bytes = free ? *free : 0;
  if (facts.free_bytes < kStoreFreeBytesMin)
    facts.refusal = "it has " + format_size(facts.free_bytes) + " free, and at least " +
                    format_size(kStoreFreeBytesMin) + " are needed";
  auto reopened = platform::reopen_file((*spill).fd(), platform::Direct::kIfPossible);
  facts.direct = reopened && (*reopened).direct;
  return facts;
}

std::string refusal_line(const std::string& directory, const StoreFacts& facts) {
  if (facts.refusal.empty()) return "";
  return "the store directory " + directory + ": " + facts.refusal + "; name another one with --store";
}

}  // namespace spw::process
