// Where an image of a Ceph cluster is, as users write it:
//
//     rbd:POOL/IMAGE
//
// with the parameters conf=FILE (the cluster's configuration, else CEPH_CONF and the usual places), id=NAME (whose key
// to use: client.NAME, else client.admin), timeout=SECONDS (how long a silent cluster is waited for), mode=read (to
// read only, which any number of clients can at a time) and overwrite=yes (../claim/claim.h). POOL and IMAGE may be
// percent-encoded.
// Threads: a value.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "store/claim/claim.h"

namespace spw::store {

inline constexpr uint64_t kRbdTimeoutSecondsDefault = 30;
inline constexpr uint64_t kRbdTimeoutSecondsMax = 3600;

struct RbdAddress {
  std::string pool, image;
  std::string conf;  // "": the usual places
  std::string id = "admin";
  uint64_t timeout_seconds = kRbdTimeoutSecondsDefault;
  bool read_only = false;
  Overwrite overwrite = Overwrite::kNo;  // to spill to
  std::string text;                      // for messages: the name without parameters

  // `rest`: what follows "rbd:". EINVAL with a sentence.
  static Result<RbdAddress> parse(std::string_view rest);
};

}  // namespace spw::store
