// Where an NBD export is, as users write it:
//
//     nbd://HOST[:PORT][/EXPORT]            over TCP; an IPv6 address in brackets
//     nbd+unix:///[EXPORT]?socket=PATH      over a Unix socket
//
// with the parameters timeout=SECONDS (how long a silent server is waited for), connections=N (at most, where the
// server allows several) and overwrite=yes (../claim/claim.h). HOST, EXPORT and PATH may be percent-encoded. TLS
// (nbds:) is not supported.
// Threads: a value.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "store/claim/claim.h"

namespace spw::store {

inline constexpr uint64_t kNbdTimeoutSecondsDefault = 30;
inline constexpr uint64_t kNbdTimeoutSecondsMax = 3600;
inline constexpr uint64_t kNbdConnectionsDefault = 4;
inline constexpr uint64_t kNbdConnectionsMax = 16;

struct NbdAddress {
  std::string host;    // TCP, or
  std::string socket;  // the path of a Unix socket
  std::string port = "10809";
  std::string export_name;
  uint64_t timeout_seconds = kNbdTimeoutSecondsDefault;
  uint64_t connections = kNbdConnectionsDefault;
  Overwrite overwrite = Overwrite::kNo;  // to spill to
  std::string text;                      // for messages: the name without parameters but the socket

  // `scheme`: "nbd:" or "nbd+unix:". EINVAL with a sentence.
  static Result<NbdAddress> parse(std::string_view scheme, std::string_view rest);
};

}  // namespace spw::store
