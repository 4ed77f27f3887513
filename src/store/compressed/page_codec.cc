#include "store/compressed/page_codec.h"

#include <lz4.h>
#include <zstd.h>

#include <cstring>
#include <string>

#include "platform/loaded_library.h"
#include "platform/time.h"

namespace spw::store {

namespace {

// An acceleration above 1 saves a tenth of the time and costs a twentieth of what is saved.
constexpr int kLz4Acceleration = 1;
constexpr int kZstdLevel = 1;

// Of so many calls one is timed, and counts for a part of the mean.
constexpr uint64_t kTimedEvery = 32, kMeanOf = 16;
constexpr uintptr_t kPlaceBytes = 64;  // objects begin at multiples of it

void note(Atomic<uint64_t>& mean_ns, uint64_t ns) {
  const uint64_t before = mean_ns.load_relaxed();
  mean_ns.store_relaxed(before == 0 ? ns : (before * (kMeanOf - 1) + ns) / kMeanOf);
}

Status found_all(const platform::LoadedLibrary& library, const char* package) {
  if (library.missing() == nullptr) return {};
  return Status::sentence(ENOPKG, std::string("compressing needs ") + library.name() +
                                      ", which is not here; install it, such as with apt-get install " +
                                      package);
}

class Lz4 final : public PageCodec {
 public:
  static Result<std::unique_ptr<PageCodec>> load() {
    platform::LoadedLibrary library("liblz4.so.1");
    std::unique_ptr<Lz4> made(new Lz4);
    decltype(&::LZ4_sizeofState) state_bytes = nullptr;
    library.find(state_bytes, "LZ4_sizeofState");
    library.find(made->compress_, "LZ4_compress_fast_extState");
    library.find(made->open_, "LZ4_decompress_safe");
    if (Status status = found_all(library, "liblz4-1"); !status) return status;
    const auto bytes = static_cast<size_t>(state_bytes());
    made->states_ = std::make_unique<std::byte[]>(bytes * kWorkspaces);
    for (size_t i = 0; i < kWorkspaces; ++i) made->workspaces_[i].state = made->states_.get() + i * bytes;
    return std::unique_ptr<PageCodec>(std::move(made));
  }
  bool open_copy(const std::byte* compressed, size_t bytes, std::byte* page) const override {
    return open_(reinterpret_cast<const char*>(compressed), reinterpret_cast<char*>(page),
                 static_cast<int>(bytes), int{kPageBytes}) == int{kPageBytes};
  }
  const char* name() const override { return "lz4"; }

 private:
  size_t compress_copy(Workspace& workspace, size_t most) const override {
    return static_cast<size_t>(compress_(workspace.state, reinterpret_cast<const char*>(workspace.page),
                                         reinterpret_cast<char*>(workspace.compressed), int{kPageBytes},
                                         static_cast<int>(most), kLz4Acceleration));
  }

  decltype(&::LZ4_compress_fast_extState) compress_ = nullptr;
  decltype(&::LZ4_decompress_safe) open_ = nullptr;
  std::unique_ptr<std::byte[]> states_;
};

class Zstd final : public PageCodec {
 public:
  static Result<std::unique_ptr<PageCodec>> load() {
    platform::LoadedLibrary library("libzstd.so.1");
    std::unique_ptr<Zstd> made(new Zstd);
    decltype(&::ZSTD_createCCtx) create = nullptr;
    decltype(&::ZSTD_createDCtx) create_opening = nullptr;
    library.find(create, "ZSTD_createCCtx");
    library.find(made->free_, "ZSTD_freeCCtx");
    library.find(made->compress_, "ZSTD_compressCCtx");
    library.find(create_opening, "ZSTD_createDCtx");
    library.find(made->free_opening_, "ZSTD_freeDCtx");
    library.find(made->open_, "ZSTD_decompressDCtx");
    library.find(made->is_error_, "ZSTD_isError");
    if (Status status = found_all(library, "libzstd1"); !status) return status;
    for (size_t i = 0; i < kWorkspaces; ++i) {
      made->workspaces_[i].state = create();
      made->opening_[i].state = create_opening();
      if (made->workspaces_[i].state == nullptr || made->opening_[i].state == nullptr)
        return Status(ENOMEM, "no memory to compress in");
    }
    return std::unique_ptr<PageCodec>(std::move(made));
  }
  ~Zstd() override {
    for (size_t i = 0; i < kWorkspaces; ++i) {
      free_(static_cast<ZSTD_CCtx*>(workspaces_[i].state));
      free_opening_(static_cast<ZSTD_DCtx*>(opening_[i].state));
    }
  }
  bool open_copy(const std::byte* compressed, size_t bytes, std::byte* page) const override {
    Opening& opening = take(opening_);
    const size_t count = open_(static_cast<ZSTD_DCtx*>(opening.state), page, kPageBytes, compressed, bytes);
    opening.is_taken.store_release(false);
    return is_error_(count) == 0 && count == kPageBytes;
  }
  const char* name() const override { return "zstd"; }

 private:
  struct Opening {
    void* state = nullptr;
    Atomic<bool> is_taken{false};
  };

  size_t compress_copy(Workspace& workspace, size_t most) const override {
    const size_t count = compress_(static_cast<ZSTD_CCtx*>(workspace.state), workspace.compressed, most,
                                   workspace.page, kPageBytes, kZstdLevel);
    return is_error_(count) != 0 ? 0 : count;
  }
  void in_child_too() override {
    for (Opening& opening : opening_) opening.is_taken.store_relaxed(false);
  }

  decltype(&::ZSTD_freeCCtx) free_ = nullptr;
  decltype(&::ZSTD_compressCCtx) compress_ = nullptr;
  decltype(&::ZSTD_freeDCtx) free_opening_ = nullptr;
  decltype(&::ZSTD_decompressDCtx) open_ = nullptr;
  decltype(&::ZSTD_isError) is_error_ = nullptr;
  mutable Opening opening_[kWorkspaces];
};

}  // namespace

Result<std::unique_ptr<PageCodec>> PageCodec::load(Compression compression) {
  return compression == Compression::kZstd ? Zstd::load() : Lz4::load();
}

PageCodec::PageCodec() : workspaces_(std::make_unique<Workspace[]>(kWorkspaces)) {}

PageCodec::Workspace& PageCodec::take_workspace() {
  return take(std::span<Workspace>(workspaces_.get(), kWorkspaces));
}

size_t PageCodec::compress_in(Workspace& workspace, const std::byte* page, size_t most) {
  std::memcpy(workspace.page, page, kPageBytes);
  const uint64_t tried = workspace.tried.load_relaxed();
  const bool is_timed = tried % kTimedEvery == 0;
  const uint64_t begin_ns = is_timed ? platform::monotonic_ns() : 0;
  const size_t count = compress_copy(workspace, most);
  if (is_timed) note(compress_ns_, platform::monotonic_ns() - begin_ns);
  workspace.tried.store_relaxed(tried + 1);
  if (count > 0) {
    workspace.fitted.store_relaxed(workspace.fitted.load_relaxed() + 1);
    workspace.fitted_bytes.store_relaxed(workspace.fitted_bytes.load_relaxed() + count);
  }
  return count;
}

bool PageCodec::open(const std::byte* compressed, size_t bytes, std::byte* page) {
  // Objects are equally likely to be anywhere.
  if (reinterpret_cast<uintptr_t>(compressed) / kPlaceBytes % kTimedEvery != 0)
    return open_copy(compressed, bytes, page);
  const uint64_t begin_ns = platform::monotonic_ns();
  const bool is_page = open_copy(compressed, bytes, page);
  note(open_ns_, platform::monotonic_ns() - begin_ns);
  return is_page;
}

PageCodec::Totals PageCodec::totals() const {
  Totals totals;
  for (size_t i = 0; i < kWorkspaces; ++i) {
    totals.tried += workspaces_[i].tried.load_relaxed();
    totals.fitted += workspaces_[i].fitted.load_relaxed();
    totals.fitted_bytes += workspaces_[i].fitted_bytes.load_relaxed();
  }
  return totals;
}

void PageCodec::in_child() {
  for (size_t i = 0; i < kWorkspaces; ++i) workspaces_[i].is_taken.store_relaxed(false);
  in_child_too();
}

}  // namespace spw::store
