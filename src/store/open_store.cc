#include "store/open_store.h"

#include <sys/stat.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "platform/place_list.h"
#include "store/balanced_store.h"
#include "store/file_store.h"
#include "store/memory_store.h"
#include "store/nbd_store.h"
#include "store/rbd_store.h"
#include "store/sparse_store.h"
#include "store/striped/striped_name.h"
#include "store/striped_store.h"
#include "store/uri.h"

namespace spw::store {

namespace {

using Opened = Result<std::unique_ptr<Store>>;

// Stripes of stripes of stripes: deeper names are mistakes, and each level takes stack.
constexpr unsigned kStripedDepthMax = 4;
constexpr std::string_view kRemoteSchemes[] = {"nbd:", "nbd+unix:", "nbds:", "nbds+unix:", "rbd:"};

template <class Kind>
Opened as_store(Result<std::unique_ptr<Kind>> opened) {
  if (!opened) return opened.status();
  return std::unique_ptr<Store>(std::move(*opened));
}

FileOptions file_options(const OpenOptions& options) {
  return {options.engine, options.direct, options.faults};
}

Opened open_memory(const std::string& rest, const OpenOptions& options) {
  auto size = parse_size_bytes(rest);
  if (!size || *size == 0) return Status::sentence(EINVAL, "memory: needs a size, not \"" + rest + "\"");
  return as_store(MemoryStore::create(*size, options.faults));
}

// A name to spill to may have parameters; others are paths, whatever is in them.
Opened open_device(const std::string& rest, const OpenOptions& options) {
  constexpr std::string_view kParameters[] = {kOverwriteParameter};
  auto uri = parse_uri("file:", rest, kParameters);
  if (!uri) return uri.status();
  struct stat info{};
  if (::stat(uri->path.c_str(), &info) == 0 && !S_ISBLK(info.st_mode))
    return Status::sentence(
        EINVAL, "file:" + uri->path + ": to spill would overwrite this file; name its directory instead");
  auto overwrite = overwrite_of(uri->find(kOverwriteParameter), uri->whole);
  if (!overwrite) return overwrite.status();
  return as_store(FileStore::open_device(uri->path, "file:" + uri->path, *overwrite, file_options(options)));
}

Opened open_file(const std::string& rest, const OpenOptions& options) {
  if (options.spill) return open_device(rest, options);
  return as_store(FileStore::open(rest, file_options(options)));
}

Opened open_spill(const std::string& rest, const OpenOptions& options) {
  return as_store(FileStore::open_spill(rest, file_options(options)));
}

Result<Access> access_of(const Uri& uri, bool spill) {
  const std::string* mode = uri.find("mode");
  if (spill && mode)
    return Status::sentence(EINVAL, uri.whole + ": what is spilled is gone with the program; leave mode out");
  if (spill) return Access::kSpill;
  if (!mode) return Access::kOpenOrCreate;
  if (*mode == "create") return Access::kCreate;
  if (*mode == "open") return Access::kOpen;
  if (*mode == "read") return Access::kRead;
  return Status::sentence(EINVAL, uri.whole + ": mode is create, open or read, not \"" + *mode + "\"");
}

Opened open_sparse(const std::string& rest, const OpenOptions& options) {
  constexpr std::string_view kParameters[] = {"segment", "size", "mode"};
  auto uri = parse_uri("sparse:", rest, kParameters);
  if (!uri) return uri.status();
  if (uri->path.empty()) return Status::sentence(EINVAL, uri->whole + ": it needs a directory, sparse:DIR");
  auto segment = uri->size("segment");
  if (!segment) return segment.status();
  auto size = uri->size("size");
  if (!size) return size.status();
  auto access = access_of(*uri, options.spill);
  if (!access) return access.status();
  SparseOptions sparse{
      *access, {segment->value_or(0), size->value_or(0)}, options.engine, options.direct, options.faults};
  return as_store(SparseStore::open(uri->path, sparse));
}

Opened open_nbd_address(Result<NbdAddress> address, const OpenOptions& options) {
  if (!address) return address.status();
  return as_store(options.spill ? NbdStore::open_to_spill(*address, options.faults)
                                : NbdStore::open(*address, options.faults));
}
Opened open_nbd(const std::string& rest, const OpenOptions& options) {
  return open_nbd_address(NbdAddress::parse("nbd:", rest), options);
}
Opened open_nbd_unix(const std::string& rest, const OpenOptions& options) {
  return open_nbd_address(NbdAddress::parse("nbd+unix:", rest), options);
}
Opened open_nbds(const std::string& rest, const OpenOptions& options) {
  return open_nbd_address(NbdAddress::parse("nbds:", rest), options);
}
Opened open_nbds_unix(const std::string& rest, const OpenOptions& options) {
  return open_nbd_address(NbdAddress::parse("nbds+unix:", rest), options);
}

Opened open_rbd_image(const std::string& rest, const OpenOptions& options) {
  auto address = RbdAddress::parse(rest);
  if (!address) return address.status();
  if (!options.spill) return open_rbd(*address, options.faults);
  return open_rbd_to_spill(
      *address, options.faults, [&options](const RbdAddress& pool, const std::string& image) {
        return options.have_removed_at_end != nullptr && options.have_removed_at_end(pool.whole, image);
      });
}

// A list goes on to the next tier where it goes from this machine to the network, or back.
std::vector<uint32_t> tiers_of(const std::vector<std::string>& names) {
  const auto is_remote = [](const std::string& name) {
    return std::ranges::any_of(kRemoteSchemes, [&](std::string_view each) { return name.starts_with(each); });
  };
  std::vector<uint32_t> tiers;
  for (size_t i = 0; i < names.size(); ++i) {
    const bool is_next = i > 0 && is_remote(names[i]) != is_remote(names[i - 1]);
    tiers.push_back(i == 0 ? 0 : tiers.back() + (is_next ? 1 : 0));
  }
  return tiers;
}

Opened open_members(const StripedName& name, const OpenOptions& options,
                    const std::vector<uint32_t>& tiers = {}) {
  OpenOptions for_members = options;
  for_members.faults = nullptr;  // they happen once, above the members
  ++for_members.depth;
  std::vector<std::unique_ptr<Store>> members;
  for (const std::string& each : name.members) {
    auto member = open_store(each, for_members);
    if (!member) return member.status();
    members.push_back(std::move(*member));
  }
  if (options.spill)
    return as_store(BalancedStore::create(std::move(members), name.chunk_bytes, options.faults, tiers));
  return as_store(StripedStore::create(std::move(members), name.chunk_bytes, options.faults));
}

Opened open_striped(const std::string& rest, const OpenOptions& options) {
  if (options.depth == kStripedDepthMax)
    return Status::sentence(EINVAL, std::string(kStripedScheme) + rest.substr(0, 80) +
                                        ": striped stores can be members " + "of each other to a depth of " +
                                        std::to_string(kStripedDepthMax));
  auto name = parse_striped(rest, kStripeChunkBytesDefault);
  if (!name) return name.status();
  return open_members(*name, options);
}

Opened open_list(std::vector<std::string> names, const OpenOptions& options) {
  const std::string list = "a list of " + std::to_string(names.size()) + " places";
  if (names.size() > kStripedMembersMax)
    return Status::sentence(EINVAL, list + ": " + std::to_string(kStripedMembersMax) + " are possible");
  const std::vector<uint32_t> tiers = tiers_of(names);
  return open_members({kStripeChunkBytesDefault, std::move(names)}, options, tiers);
}

struct Scheme {
  std::string_view prefix;
  Opened (*open)(const std::string& rest, const OpenOptions& options);
};
constexpr Scheme kSchemes[] = {{"memory:", open_memory}, {"file:", open_file},
                               {"spill:", open_spill},   {"sparse:", open_sparse},
                               {"nbd:", open_nbd},       {"nbd+unix:", open_nbd_unix},
                               {"nbds:", open_nbds},     {"nbds+unix:", open_nbds_unix},
                               {"rbd:", open_rbd_image}, {"striped:", open_striped}};

bool is_directory(const std::string& path) {
  struct stat info{};
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

}  // namespace

Result<std::unique_ptr<Store>> open_store(const std::string& uri, const OpenOptions& options) {
  // Not a member's name, whose commas have been its own from the start.
  if (options.spill && options.depth == 0)
    if (auto names = platform::split_places(uri); names.size() > 1)
      return open_list(std::move(names), options);
  for (const Scheme& scheme : kSchemes)
    if (uri.starts_with(scheme.prefix)) return scheme.open(uri.substr(scheme.prefix.size()), options);
  if (is_directory(uri)) return open_spill(uri, options);
  return Status::sentence(EINVAL, "\"" + uri +
                                      "\" is neither a directory nor memory:SIZE, file:PATH, spill:DIR, "
                                      "sparse:DIR, striped:URI,URI, nbd://HOST, rbd:POOL or rbd:POOL/IMAGE" +
                                      (options.spill || uri.find(',') == uri.npos
                                           ? ""
                                           : "; names with commas between them are places to spill to"));
}

bool is_another_each_time(const std::string& uri) {
  const auto are_all = [](const std::vector<std::string>& names) {
    return std::ranges::all_of(names, [](const std::string& name) { return is_another_each_time(name); });
  };
  if (const auto names = platform::split_places(uri); names.size() > 1) return are_all(names);
  if (uri.starts_with(kStripedScheme)) {
    auto name = parse_striped(uri.substr(kStripedScheme.size()), kStripeChunkBytesDefault);
    return name && are_all(name->members);
  }
  return uri.starts_with("memory:") || uri.starts_with("spill:") || is_directory(uri);
}

}  // namespace spw::store
