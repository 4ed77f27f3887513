// AES-256-GCM of pages, by Intel's IPsec multi-buffer library, which is loaded when encryption is first asked for.
//
// Why this library: its key and its state are where the caller puts them, so that the key can be kept out of core dumps
// and swap space; nothing is allocated or locked, so that pages can be encrypted in a handler of page faults; and 4 KiB
// take 0.2 us, a quarter of what OpenSSL takes through its EVP calls.
// The key is random, this process's own, and dies with it. A forked child has it too: it reads what its parent wrote.
// Threads: seal() and open() any. Lifetime: as long as this.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/status.h"
#include "platform/memory.h"

namespace spw::store {

class PageCipher {
 public:
  static constexpr size_t kPageBytes = 4096;

  // ENOPKG where the library is not installed, or where this was built without its header; else what the kernel said.
  static Result<std::unique_ptr<PageCipher>> create();
  ~PageCipher();

  // `nonce`: never the same again with this key. Returns the tag. Of one page; `to` may be `from`.
  uint64_t seal(uint64_t nonce, const std::byte* from, std::byte* to) const;
  // Whether it is what was sealed; if it is not, the page's contents are garbage.
  bool open(uint64_t nonce, uint64_t tag, std::byte* page) const;

 private:
  struct Library;

  PageCipher() = default;

  std::unique_ptr<Library> library_;
  platform::Mapping key_;
};

}  // namespace spw::store
