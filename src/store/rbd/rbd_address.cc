#include "store/rbd/rbd_address.h"

#include "store/uri.h"

namespace spw::store {

namespace {

// Both parts of "POOL/IMAGE". False when they are not there.
bool split(std::string_view path, RbdAddress* address) {
  const size_t slash = path.find('/');
  if (slash == path.npos) return false;
  auto pool = percent_decoded(path.substr(0, slash));
  auto image = percent_decoded(path.substr(slash + 1));
  if (!pool || !image || pool->empty() || image->empty()) return false;
  // '@' is a snapshot's, and a second '/' a namespace's, neither of which it can be.
  if (image->find_first_of("/@") != image->npos) return false;
  address->pool = *pool;
  address->image = *image;
  return true;
}

}  // namespace

Result<RbdAddress> RbdAddress::parse(std::string_view rest) {
  constexpr std::string_view kParameters[] = {"conf", "id", "timeout", "mode", kOverwriteParameter};
  auto uri = parse_uri("rbd:", rest, kParameters);
  if (!uri) return uri.status();
  RbdAddress address;
  if (!split(uri->path, &address))
    return Status::sentence(EINVAL, uri->whole + ": an image of a Ceph cluster is named rbd:POOL/IMAGE");
  address.text = "rbd:" + uri->path;
  if (const std::string* conf = uri->find("conf")) address.conf = *conf;
  if (const std::string* id = uri->find("id")) address.id = *id;
  if (address.id.empty() || address.id.starts_with("client."))
    return Status::sentence(EINVAL, uri->whole + ": id is what stands behind \"client.\", such as id=admin");
  if (const std::string* mode = uri->find("mode")) {
    if (*mode != "read")
      return Status::sentence(EINVAL, uri->whole + ": mode is read or left out, not \"" + *mode + "\"");
    address.read_only = true;
  }
  auto timeout = uri->number("timeout", 1, kRbdTimeoutSecondsMax, kRbdTimeoutSecondsDefault);
  if (!timeout) return timeout.status();
  address.timeout_seconds = *timeout;
  auto overwrite = overwrite_of(uri->find(kOverwriteParameter), uri->whole);
  if (!overwrite) return overwrite.status();
  address.overwrite = *overwrite;
  return address;
}

}  // namespace spw::store
