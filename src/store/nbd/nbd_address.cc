#include "store/nbd/nbd_address.h"

#include <sys/un.h>

#include <charconv>
#include <optional>

#include "store/uri.h"

namespace spw::store {

namespace {

bool is_port(std::string_view text) {
  uint16_t port = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc{} && end == text.data() + text.size() && port != 0;
}

// Takes "HOST", "HOST:PORT" or "[IPv6]:PORT" apart. False when it is none of them.
bool split_host(std::string_view authority, NbdAddress* address) {
  std::string_view host = authority;
  std::string_view port;
  if (authority.starts_with('[')) {
    size_t end = authority.find(']');
    if (end == authority.npos) return false;
    host = authority.substr(1, end - 1);
    port = authority.substr(end + 1);
    if (!port.empty() && !port.starts_with(':')) return false;
  } else if (size_t colon = authority.find(':'); colon != authority.npos) {
    host = authority.substr(0, colon);
    port = authority.substr(colon);
  }
  auto decoded = percent_decoded(host);
  if (!decoded || decoded->empty()) return false;
  address->host = *decoded;
  if (port.empty()) return true;
  address->port = port.substr(1);
  return is_port(address->port);
}

}  // namespace

Result<NbdAddress> NbdAddress::parse(std::string_view scheme, std::string_view rest) {
  constexpr std::string_view kParameters[] = {"socket",           "timeout",      "connections",
                                              "tls-certificates", "tls-psk-file", "tls-username",
                                              kOverwriteParameter};
  auto uri = parse_uri(scheme, rest, kParameters);
  if (!uri) return uri.status();
  const bool unix_socket = scheme.ends_with("+unix:");
  auto wrong = [&] {
    return Status::sentence(EINVAL,
                            uri->whole + ": an NBD store is named " +
                                (unix_socket ? "nbd+unix:///EXPORT?socket=PATH" : "nbd://HOST:PORT/EXPORT"));
  };
  std::string_view path = uri->path;
  if (!path.starts_with("//")) return wrong();
  path.remove_prefix(2);
  size_t slash = path.find('/');
  std::string_view authority = path.substr(0, slash);
  auto export_name = percent_decoded(slash == path.npos ? std::string_view() : path.substr(slash + 1));
  if (!export_name) return wrong();

  NbdAddress address;
  address.export_name = *export_name;
  address.text = std::string(scheme) + uri->path;
  address.tls = scheme.starts_with("nbds");
  for (auto [name, to] :
       {std::pair("tls-certificates", &address.tls_certificates),
        std::pair("tls-psk-file", &address.tls_psk_file), std::pair("tls-username", &address.tls_username)}) {
    const std::string* const given = uri->find(name);
    if (given && !address.tls)
      return Status::sentence(EINVAL, uri->whole + ": " + name + " is of nbds: and nbds+unix:");
    if (given) *to = *given;
  }
  const std::string* socket = uri->find("socket");
  if (unix_socket != (socket != nullptr)) return wrong();
  if (unix_socket) {
    if (!authority.empty() || socket->empty()) return wrong();
    if (socket->size() >= sizeof(sockaddr_un::sun_path))
      return Status::sentence(EINVAL, uri->whole + ": the socket's path is too long for a Unix socket");
    address.socket = *socket;
    address.text += "?socket=" + *socket;
  } else if (!split_host(authority, &address)) {
    return wrong();
  }
  auto timeout = uri->number("timeout", 1, kNbdTimeoutSecondsMax, kNbdTimeoutSecondsDefault);
  if (!timeout) return timeout.status();
  address.timeout_seconds = *timeout;
  auto connections = uri->number("connections", 1, kNbdConnectionsMax, kNbdConnectionsDefault);
  if (!connections) return connections.status();
  address.connections = *connections;
  auto overwrite = overwrite_of(uri->find(kOverwriteParameter), uri->whole);
  if (!overwrite) return overwrite.status();
  address.overwrite = *overwrite;
  return address;
}

}  // namespace spw::store
