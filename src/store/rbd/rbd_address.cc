#include "store/rbd/rbd_address.h"

#include "store/uri.h"

namespace spw::store {

namespace {

// Of "POOL/IMAGE" or "POOL". False when that is not what it is.
bool split(std::string_view path, RbdAddress* address) {
  const size_t slash = path.find('/');
  auto pool = percent_decoded(path.substr(0, slash));
  if (!pool || pool->empty()) return false;
  address->pool = *pool;
  if (slash == path.npos) return true;
  auto image = percent_decoded(path.substr(slash + 1));
  if (!image || image->empty()) return false;
  // '@' is a snapshot's, and a second '/' a namespace's, neither of which it can be.
  if (image->find_first_of("/@") != image->npos) return false;
  address->image = *image;
  return true;
}

// What goes with an image that is made, and with one that there is.
Status see_what_fits(const Uri& uri, bool is_made) {
  for (const char* name : {"mode", "overwrite"})
    if (is_made && uri.find(name))
      return Status::sentence(EINVAL,
                              uri.whole + ": " + name + " is for an image that there is, rbd:POOL/IMAGE");
  if (!is_made && uri.find("size"))
    return Status::sentence(EINVAL, uri.whole + ": an image that there is has its size; leave size out");
  return Status::ok();
}

}  // namespace

Result<RbdAddress> RbdAddress::parse(std::string_view rest) {
  constexpr std::string_view kParameters[] = {"conf", "id", "timeout", "mode", "size", kOverwriteParameter};
  auto uri = parse_uri("rbd:", rest, kParameters);
  if (!uri) return uri.status();
  RbdAddress address;
  if (!split(uri->path, &address))
    return Status::sentence(EINVAL, uri->whole +
                                        ": an image of a Ceph cluster is named rbd:POOL/IMAGE, and a pool in "
                                        "which one is made to spill to rbd:POOL");
  if (Status status = see_what_fits(*uri, address.image.empty()); !status) return status;
  address.whole = uri->whole;
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
  auto size = uri->size("size");
  if (!size) return size.status();
  address.size_bytes = size->value_or(0);
  address.timeout_seconds = *timeout;
  auto overwrite = overwrite_of(uri->find(kOverwriteParameter), uri->whole);
  if (!overwrite) return overwrite.status();
  address.overwrite = *overwrite;
  return address;
}

}  // namespace spw::store
