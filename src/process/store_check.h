// What can be said of a store's directory, or several, before anything is stored there: by `spillway run` and `doctor`,
// and by the runtime of a program that was started without them.
//
// Threads: any. Limits: the free space is that of the moment; what fills up later is the cache's to report.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace spw::process {

// Less free space than this is no place to put data.
inline constexpr uint64_t kStoreFreeBytesMin = uint64_t{64} << 20;

struct StoreFacts {
  std::string place;    // the directory that is meant below
  std::string refusal;  // one clause that says why the directory cannot be used; "" if it can
  uint64_t free_bytes = 0;
  bool named = false;  // no directory but names of stores, which are not looked at here
  // What is wrong with its filesystem, though it can be used: "is on a tmpfs, which is memory itself"; "": nothing.
  std::string drawback;
  bool direct = false;  // transfers can go around the page cache
};

// Makes a nameless file in the directory to find out. Of a list: the first directory that is refused, or else has a
// drawback; the free bytes are those of all its directories.
StoreFacts check_store(const std::string& store);
// What a user is told of a refusal, and of a drawback; "" if there is none.
std::string refusal_line(const StoreFacts& facts);
std::string drawback_line(const StoreFacts& facts);
// Names the store whose drawback `spillway run` has told of: the processes of the run do not say so again.
inline constexpr const char* kStoreToldVariable = "SPILLWAY_STORE_TOLD";
// Of a filesystem of this type, as the kernel names it ("nfs4", "fuse.sshfs"). "" for what is on a disk, or unknown.
std::string drawback_of(std::string_view filesystem_type);

}  // namespace spw::process
