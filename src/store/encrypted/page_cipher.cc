#include "store/encrypted/page_cipher.h"

#include "base/check.h"

#ifdef SPW_HAS_IPSEC_MB

#include <intel-ipsec-mb.h>
#include <sys/mman.h>

#include <cstring>

#include "base/units.h"
#include "platform/loaded_library.h"
#include "platform/random.h"

namespace spw::store {

namespace {

constexpr size_t kKeyBytes = 32;

struct Key {
  alignas(64) gcm_key_data expanded;
};

struct Nonce {
  unsigned char bytes[12] = {};
  explicit Nonce(uint64_t number) { std::memcpy(bytes, &number, sizeof number); }
};

}  // namespace

struct PageCipher::Library {
  decltype(&::free_mb_mgr) free_manager = nullptr;
  IMB_MGR* manager = nullptr;

  ~Library() {
    if (manager != nullptr) free_manager(manager);
  }

  // What the library does depends on the processor, so it has to show first that it can do it: a vector of McGrew and
  // Viega's paper on GCM (test case 13: AES-256, no text, key and nonce all zero).
  bool works(Key& key) const {
    constexpr unsigned char kWanted[16] = {0x53, 0x0f, 0x8a, 0xfb, 0xc7, 0x45, 0x36, 0xb9,
                                           0xa9, 0x63, 0xb4, 0xf1, 0xc4, 0xcb, 0x73, 0x8b};
    const unsigned char zeros[kKeyBytes] = {};
    unsigned char tag[16] = {};
    gcm_context_data context;
    IMB_AES256_GCM_PRE(manager, zeros, &key.expanded);
    IMB_AES256_GCM_ENC(manager, &key.expanded, &context, nullptr, nullptr, 0, zeros, nullptr, 0, tag,
                       sizeof tag);
    return std::memcmp(tag, kWanted, sizeof tag) == 0;
  }
};

Result<std::unique_ptr<PageCipher>> PageCipher::create() {
  platform::LoadedLibrary file("libIPSec_MB.so.1");
  if (!file.is_here())
    return Status::sentence(ENOPKG,
                            "--encrypt needs libipsec-mb, which is not here; install it, such as with "
                            "apt-get install libipsec-mb1");
  std::unique_ptr<PageCipher> cipher(new PageCipher);
  cipher->library_ = std::make_unique<Library>();
  Library& library = *cipher->library_;
  decltype(&::alloc_mb_mgr) make = nullptr;
  decltype(&::init_mb_mgr_auto) choose = nullptr;
  file.find(make, "alloc_mb_mgr");
  file.find(choose, "init_mb_mgr_auto");
  file.find(library.free_manager, "free_mb_mgr");
  if (file.missing() != nullptr)
    return Status::sentence(ENOPKG, std::string(file.name()) + " lacks functions of libipsec-mb 1.0");
  library.manager = make(0);
  if (library.manager == nullptr) return Status(ENOMEM, "libipsec-mb");
  IMB_ARCH chosen = IMB_ARCH_NONE;
  choose(library.manager, &chosen);

  // Neither a core dump nor swap space has it.
  auto memory = platform::map_anonymous(round_up(sizeof(Key), kMmuPageBytes));
  if (!memory) return memory.status();
  cipher->key_ = std::move(*memory);
  if (::madvise(cipher->key_.data(), cipher->key_.bytes(), MADV_DONTDUMP) != 0 ||
      ::mlock(cipher->key_.data(), cipher->key_.bytes()) != 0)
    return Status(errno, "cannot keep the key of --encrypt in memory (ulimit -l)");
  auto& key = *new (cipher->key_.data()) Key;
  if (!library.works(key))
    return Status::sentence(ENOTSUP,
                            std::string(file.name()) + " computes AES-GCM wrongly on this processor");
  unsigned char random[kKeyBytes];
  platform::draw_random(random, sizeof random);
  IMB_AES256_GCM_PRE(library.manager, random, &key.expanded);
  ::explicit_bzero(random, sizeof random);
  return cipher;
}

uint64_t PageCipher::seal(uint64_t nonce, const std::byte* from, std::byte* to) const {
  gcm_context_data context;
  uint64_t tag = 0;
  IMB_AES256_GCM_ENC(library_->manager, &reinterpret_cast<const Key*>(key_.data())->expanded, &context,
                     reinterpret_cast<uint8_t*>(to), reinterpret_cast<const uint8_t*>(from), kPageBytes,
                     Nonce(nonce).bytes, nullptr, 0, reinterpret_cast<uint8_t*>(&tag), sizeof tag);
  return tag;
}

bool PageCipher::open(uint64_t nonce, uint64_t tag, std::byte* page) const {
  gcm_context_data context;
  uint64_t found = 0;
  auto* const bytes = reinterpret_cast<uint8_t*>(page);
  IMB_AES256_GCM_DEC(library_->manager, &reinterpret_cast<const Key*>(key_.data())->expanded, &context, bytes,
                     bytes, kPageBytes, Nonce(nonce).bytes, nullptr, 0, reinterpret_cast<uint8_t*>(&found),
                     sizeof found);
  return found == tag;
}

#else

namespace spw::store {

struct PageCipher::Library {};

Result<std::unique_ptr<PageCipher>> PageCipher::create() {
  return Status::sentence(ENOPKG,
                          "--encrypt: this build of Spillway has no encryption; it was made without "
                          "libipsec-mb-dev");
}
uint64_t PageCipher::seal(uint64_t, const std::byte*, std::byte*) const { SPW_CHECK(false); }
bool PageCipher::open(uint64_t, uint64_t, std::byte*) const { SPW_CHECK(false); }

#endif

PageCipher::~PageCipher() {
  if (key_.bytes() != 0) ::explicit_bzero(key_.data(), key_.bytes());
}

}  // namespace spw::store
