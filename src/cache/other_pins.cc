// pin() in other ways: what is different of a miss stands in the client meanwhile.
#include "cache/shared_cache.h"

namespace spw::cache {

Status SharedCacheParts::pin_as(bool Client::* what, Client& client, BlockId block, Access access, Pin* out) {
  client.*what = true;
  Status status = pin(client, block, access, out);
  client.*what = false;
  return status;
}

Status SharedCacheParts::pin_quietly(Client& client, BlockId block, Access access, Pin* out) {
  return pin_as(&Client::takes_errors, client, block, access, out);
}

Status SharedCacheParts::pin_loose(Client& client, BlockId block, Access access, Pin* out) {
  return pin_as(&Client::takes_loose, client, block, access, out);
}

// Of what is there nothing is different.
Status SharedCacheParts::pin_expecting(Client& client, BlockId block, Pin* out) {
  return pin_as(&Client::expects_store, client, block, Access::kRead, out);
}

}  // namespace spw::cache
