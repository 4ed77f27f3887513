#include "process/store_check.h"

#include <algorithm>
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
  facts.drawback = drawback_of(platform::filesystem_type(*spill));
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

std::string drawback_of(std::string_view type) {
  constexpr std::string_view kInMemory[] = {"tmpfs", "ramfs", "hugetlbfs"};
  constexpr std::string_view kOnNetwork[] = {
      "nfs",          "nfs4",           "cifs",        "smb3",           "smbfs",     "ceph",
      "afs",          "coda",           "9p",          "lustre",         "beegfs",    "gpfs",
      "gfs2",         "ocfs2",          "fuse.sshfs",  "fuse.glusterfs", "fuse.s3fs", "fuse.rclone",
      "fuse.gcsfuse", "fuse.ceph-fuse", "fuse.davfs2", "fuse.curlftpfs"};
  if (std::ranges::find(kInMemory, type) != std::end(kInMemory))
    return "is on a " + std::string(type) + ", which is memory itself, so that spilling gains nothing";
  if (std::ranges::find(kOnNetwork, type) != std::end(kOnNetwork))
    return "is on a network filesystem (" + std::string(type) +
           "), so that a miss takes as long as the network and its server do, and both must last as long as "
           "the run";
  return "";
}

std::string drawback_line(const std::string& directory, const StoreFacts& facts) {
  if (facts.drawback.empty()) return "";
  return "the store directory " + directory + " " + facts.drawback +
         "; name one on a local disk with --store";
}

}  // namespace spw::process
