// Where an NBD export is, as users write it:
//
//     nbd://HOST[:PORT][/EXPORT]            over TCP; an IPv6 address in brackets
//     nbd+unix:///[EXPORT]?socket=PATH      over a Unix socket
//     nbds:, nbds+unix:                     the same over TLS, or not at all
//
// with the parameters timeout=SECONDS (how long a silent server is waited for), connections=N (at most, where the
// server allows several) and overwrite=yes (../claim/claim.h). HOST, EXPORT and PATH may be percent-encoded.
// TLS: tls-certificates=DIR (ca-cert.pem, and client-cert.pem with client-key.pem; else the system's authorities), or
// tls-psk-file=FILE with tls-username=NAME (a key that both sides have).
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
  bool tls = false;
  std::string tls_certificates, tls_psk_file, tls_username;  // "": the library's own choice
  uint64_t timeout_seconds = kNbdTimeoutSecondsDefault;
  uint64_t connections = kNbdConnectionsDefault;
  Overwrite overwrite = Overwrite::kNo;  // to spill to
  std::string text;                      // for messages: the name without parameters but the socket

  // `scheme`: "nbd:", "nbd+unix:", "nbds:" or "nbds+unix:". EINVAL with a sentence.
  static Result<NbdAddress> parse(std::string_view scheme, std::string_view rest);
};

}  // namespace spw::store
