#include "process/store_check.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <vector>

#include "base/units.h"
#include "platform/file.h"
#include "platform/place_list.h"
#include "process/options.h"

namespace spw::process {

namespace {

// But for the free space that is needed.
StoreFacts check_place(const std::string& place) {
  StoreFacts facts;
  facts.place = place;
  facts.named = is_store_name(place);
  if (facts.named) return facts;
  std::error_code error;
  const auto kind = std::filesystem::status(place, error).type();
  if (kind == std::filesystem::file_type::not_found) {
    facts.refusal = "it does not exist";
    return facts;
  }
  if (!error && kind != std::filesystem::file_type::directory) {
    facts.refusal = "it is not a directory";
    return facts;
  }
  auto spill = platform::open_spill_file(place);
  if (!spill) {
    facts.refusal = std::string("no file can be made there (") + std::strerror(spill.status().error()) + ")";
    return facts;
  }
  facts.drawback = drawback_of(platform::filesystem_type(*spill));
  auto free = platform::filesystem_free(*spill);
  facts.free_bytes = free ? *free : 0;
  auto reopened = platform::reopen_file((*spill).fd(), platform::Direct::kIfPossible);
  facts.direct = reopened && (*reopened).direct;
  return facts;
}

}  // namespace

StoreFacts check_store(const std::string& store) {
  StoreFacts all;
  all.named = all.direct = true;
  uint64_t free_bytes = 0;
  bool has_named = false;
  std::vector<dev_t> filesystems;
  for (const std::string& place : platform::split_places(store)) {
    StoreFacts facts = check_place(place);
    if (!facts.refusal.empty()) return facts;
    has_named |= facts.named;
    if (facts.named) continue;
    struct stat info{};
    const bool is_known =
        ::stat(place.c_str(), &info) == 0 && std::ranges::find(filesystems, info.st_dev) != filesystems.end();
    if (!is_known) free_bytes += facts.free_bytes;
    filesystems.push_back(info.st_dev);
    const bool direct = all.direct && facts.direct;
    if (all.named || (all.drawback.empty() && !facts.drawback.empty())) all = facts;
    all.direct = direct;
  }
  all.free_bytes = free_bytes;
  if (!all.named && !has_named && free_bytes < kStoreFreeBytesMin)
    all.refusal = "it has " + format_size(free_bytes) + " free, and at least " +
                  format_size(kStoreFreeBytesMin) + " are needed";
  return all;
}

std::string refusal_line(const StoreFacts& facts) {
  if (facts.refusal.empty()) return "";
  return "the store directory " + facts.place + ": " + facts.refusal + "; name another one with --store";
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

std::string drawback_line(const StoreFacts& facts) {
  if (facts.drawback.empty()) return "";
  return "the store directory " + facts.place + " " + facts.drawback +
         "; name one on a local disk with --store";
}

}  // namespace spw::process
