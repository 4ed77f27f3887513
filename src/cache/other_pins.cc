// pin() in other ways: what is different of a miss stands in the client meanwhile.
#include "cache/shared_cache.h"

namespace spw::cache {

Status SharedCacheParts::pin_quietly(Client& client, BlockId block, Access access, Pin* out) {
  client.takes_errors = true;
  Status status = pin(client, block, access, out);
  client.takes_errors = false;
  return status;
}

Status SharedCacheParts::pin_loose(Client& client, BlockId block, Access access, Pin* out) {
  client.takes_loose = true;
  Status status = pin(client, block, access, out);
  client.takes_loose = false;
  return status;
}

// Of what is there nothing is different.
Status SharedCacheParts::pin_expecting(Client& client, BlockId block, Pin* out) {
  client.expects_store = true;
  Status status = pin(client, block, Access::kRead, out);
  client.expects_store = false;
  return status;
}

}  // namespace spw::cache
