// Where an image of a Ceph cluster is, as users write it:
//
//     rbd:POOL/IMAGE
//     rbd:POOL         to spill to: an image that is made there, and gone with the program
//
// with the parameters conf=FILE (the cluster's configuration, else CEPH_CONF and the usual places), id=NAME (whose key
// to use: client.NAME, else client.admin), timeout=SECONDS (how long a silent cluster is waited for), mode=read (to
// read only, which any number of clients can at a time) and overwrite=yes (../claim/claim.h), both of an image that
// there is, or size=SIZE of one that is made (else as much as the cluster has free). POOL and IMAGE may be
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
  std::string pool;
  std::string image;  // "": one that is made
  std::string conf;   // "": the usual places
  std::string id = "admin";
  uint64_t timeout_seconds = kRbdTimeoutSecondsDefault;
  bool read_only = false;
  Overwrite overwrite = Overwrite::kNo;  // to spill to
  uint64_t size_bytes = 0;               // of an image that is made; 0: what is free
  std::string text;                      // for messages: the name without parameters
  std::string whole;                     // as it was written, with "rbd:"

  // `rest`: what follows "rbd:". EINVAL with a sentence.
  static Result<RbdAddress> parse(std::string_view rest);
};

}  // namespace spw::store
