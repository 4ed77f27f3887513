// Compresses pages by themselves, and opens them again: LZ4 or Zstandard, each by its own library, which is loaded when
// it is first asked for.
//
// Threads: any; each call that compresses has a workspace of its own, and waits where all are in use. What it all cost
// is as of some recent instant.
// Limits: kWorkspaces calls that compress at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/atomic.h"
#include "base/status.h"
#include "base/units.h"
#include "platform/spin.h"

namespace spw::store {

enum class Compression : uint8_t { kLz4, kZstd };

class PageCodec {
 public:
  static constexpr size_t kPageBytes = kMmuPageBytes;
  static constexpr size_t kWorkspaces = 8;

  // ENOPKG with a sentence when the library is not here.
  static Result<std::unique_ptr<PageCodec>> load(Compression compression);
  virtual ~PageCodec() = default;

  // Calls use(bytes, count) with what the page comes to, while its workspace is this call's; or with 0 when that is
  // more than `most` < kPageBytes. The page may change all the while: what it comes to then is no page that there was.
  template <class Use>
  void compress(const std::byte* page, size_t most, Use use) {
    Workspace& workspace = take_workspace();
    const size_t count = compress_in(workspace, page, most);
    use(static_cast<const std::byte*>(workspace.compressed), count);
    workspace.is_taken.store_release(false);
  }
  // False: it is no page compressed.
  bool open(const std::byte* compressed, size_t bytes, std::byte* page);
  virtual const char* name() const = 0;

  // Since the start.
  struct Totals {
    uint64_t tried = 0;
    uint64_t fitted = 0;
    uint64_t fitted_bytes = 0;  // what these came to
  };
  Totals totals() const;
  // Of one page, lately; 0: none yet.
  double compress_ns() const { return static_cast<double>(compress_ns_.load_relaxed()); }
  double open_ns() const { return static_cast<double>(open_ns_.load_relaxed()); }
  // In a forked child: workspaces that its parent's threads had are nobody's.
  void in_child();

 protected:
  struct Workspace {
    std::byte page[kPageBytes];
    std::byte compressed[kPageBytes];
    void* state = nullptr;  // the library's
    Atomic<bool> is_taken{false};
    Atomic<uint64_t> tried{0}, fitted{0}, fitted_bytes{0};  // written by whose it is
  };
  PageCodec();
  // One that nobody has. Threads begin to look at different ones, by where their stacks are.
  template <class Any>
  static auto& take(Any&& all) {
    const std::byte here{};
    for (size_t at = reinterpret_cast<uintptr_t>(&here) / kStackBytes;; ++at) {
      auto& one = all[at % kWorkspaces];
      if (!one.is_taken.load_relaxed() && !one.is_taken.exchange_acquire(true)) return one;
      platform::spin_pause();
    }
  }
  // As compress() has it, of workspace.page.
  virtual size_t compress_copy(Workspace& workspace, size_t most) const = 0;
  virtual bool open_copy(const std::byte* compressed, size_t bytes, std::byte* page) const = 0;
  virtual void in_child_too() {}

  std::unique_ptr<Workspace[]> workspaces_;

 private:
  static constexpr uintptr_t kStackBytes = 1 << 16;

  Workspace& take_workspace();
  size_t compress_in(Workspace& workspace, const std::byte* page, size_t most);

  Atomic<uint64_t> compress_ns_{0}, open_ns_{0};  // a racing update is lost, which changes little
};

}  // namespace spw::store
