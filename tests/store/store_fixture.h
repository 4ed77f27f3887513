// What the store tests share: every way to reach every store, aligned
// buffers, requests in a line, counters since the start.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/rng.h"
#include "ceph.h"
#include "nbd_server.h"
#include "store/balanced_store.h"
#include "store/checked_store.h"
#include "store/compressed_store.h"
#include "store/encrypted_store.h"
#include "store/file_store.h"
#include "store/memory_store.h"
#include "store/open_store.h"
#include "store/sparse_store.h"
#include "telemetry/counters.h"

namespace spw::store {

inline constexpr uint64_t kUnit = 4096;
inline constexpr uint64_t kStoreBytes = 8 * kMiB;

class Buffer {
 public:
  explicit Buffer(uint64_t bytes, uint64_t seed = 0)
      : bytes_(bytes), data_(static_cast<std::byte*>(std::aligned_alloc(kUnit, bytes)), &std::free) {
    std::memset(data_.get(), 0xEE, bytes);
    if (seed == 0) return;
    Rng rng(seed);
    for (uint64_t at = 0; at < bytes; at += 8) {
      uint64_t word = rng.next();
      std::memcpy(data_.get() + at, &word, 8);
    }
  }
  std::byte* data() const { return data_.get(); }
  uint64_t bytes() const { return bytes_; }
  bool operator==(const Buffer& other) const {
    return bytes_ == other.bytes_ && std::memcmp(data(), other.data(), bytes_) == 0;
  }
  bool is_zero(uint64_t from = 0) const {
    for (uint64_t at = from; at < bytes_; ++at)
      if (data_.get()[at] != std::byte{0}) return false;
    return true;
  }

 private:
  uint64_t bytes_;
  std::unique_ptr<std::byte, void (*)(void*)> data_;
};

inline Request transfer_of(Op op, uint64_t offset_bytes, const Buffer& buffer) {
  Request request;
  request.op = op;
  request.offset_bytes = offset_bytes;
  request.segment_count = 1;
  request.segments[0] = {buffer.data(), buffer.bytes()};
  return request;
}

inline Request discard_of(uint64_t offset_bytes, uint64_t bytes) {
  Request request;
  request.op = Op::kDiscard;
  request.offset_bytes = offset_bytes;
  request.discard_bytes = bytes;
  return request;
}

inline Request sync_of() {
  Request request;
  request.op = Op::kSync;
  return request;
}

enum class Kind : uint8_t {
  kMemory,
  kFile,
  kBufferedFile,
  kSpill,
  kSparse,
  kSparseSpill,
  kNbd,
  kRbd,
  kStriped,
  kMixed,
  kBalanced,
  // Around a spill file.
  kChecked,
  kEncrypted,
  kCompressed
};
enum class Way : uint8_t { kTransfer, kUring, kAio, kThreads };

struct Case {
  Kind kind;
  Way way;
};

inline std::string name_of(const Case& c) {
  constexpr const char* kKinds[] = {"memory",       "file",    "buffered_file", "spill",     "sparse",
                                    "sparse_spill", "nbd",     "rbd",           "striped",   "mixed",
                                    "balanced",     "checked", "encrypted",     "compressed"};
  constexpr const char* kWays[] = {"transfer", "io_uring", "libaio", "threads"};
  return std::string(kKinds[static_cast<int>(c.kind)]) + "_" + kWays[static_cast<int>(c.way)];
}

// Whether a store's queues may be any engine's; the others have one way of their own, which stands as kThreads.
inline bool has_engines(Kind kind) {
  return kind != Kind::kMemory && kind != Kind::kNbd && kind != Kind::kRbd && kind != Kind::kMixed;
}

inline std::vector<Case> cases(std::vector<Way> ways) {
  std::vector<Case> all;
  for (Kind kind : {Kind::kMemory, Kind::kFile, Kind::kBufferedFile, Kind::kSpill, Kind::kSparse,
                    Kind::kSparseSpill, Kind::kNbd, Kind::kRbd, Kind::kStriped, Kind::kMixed, Kind::kBalanced,
                    Kind::kChecked, Kind::kEncrypted, Kind::kCompressed})
    for (Way way : ways)
      if (has_engines(kind) || way == Way::kTransfer || way == Way::kThreads) all.push_back({kind, way});
  return all;
}

inline std::string make_scratch_directory() {
  const char* named = std::getenv("SPW_TEST_DIR");
  std::string path = (named ? std::string(named) + "/" : ::testing::TempDir()) + "spw_store.XXXXXX";
  return ::mkdtemp(path.data()) ? path : std::string();
}

// A store and a way to it, in a directory of its own.
class StoreTest : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    directory_ = make_scratch_directory();
    before_ = telemetry::read_totals();
    open_new(kStoreBytes);
  }
  void TearDown() override {
    queue_.reset();
    store_.reset();
    server_.reset();
    std::filesystem::remove_all(directory_);
  }

  static IoEngineKind engine_of(Way way) {
    return way == Way::kUring     ? IoEngineKind::kUring
           : way == Way::kAio     ? IoEngineKind::kAio
           : way == Way::kThreads ? IoEngineKind::kThreads
                                  : IoEngineKind::kAuto;
  }

  FileOptions options(Way way) {
    FileOptions options;
    options.direct = GetParam().kind != Kind::kBufferedFile;
    options.faults = &faults_;
    options.engine = engine_of(way);
    return options;
  }

  // Segments so small that many requests of the tests cross them.
  SparseOptions sparse_options(uint64_t bytes) {
    bool spill = GetParam().kind == Kind::kSparseSpill;
    constexpr uint64_t kSegmentBytes = 192 * kKiB;
    return {spill ? Access::kSpill : Access::kOpenOrCreate,
            {kSegmentBytes, bytes},
            engine_of(GetParam().way),
            true,
            &faults_};
  }

  // Opens a fresh, empty store.
  void open_new(uint64_t bytes) {
    queue_.reset();
    if (GetParam().kind == Kind::kMemory) return adopt(MemoryStore::create(bytes, &faults_));
    if (GetParam().kind == Kind::kSpill)
      return adopt(FileStore::open_spill(directory_, options(GetParam().way), bytes));
    if (GetParam().kind == Kind::kChecked || GetParam().kind == Kind::kEncrypted) {
      auto spill = FileStore::open_spill(directory_, options(GetParam().way), bytes);
      ASSERT_TRUE(spill) << spill.status().message();
      if (GetParam().kind == Kind::kEncrypted) {
        auto encrypted = EncryptedStore::around(std::move(*spill), kMiB);
        if (!encrypted && encrypted.status().error() == ENOPKG) GTEST_SKIP() << encrypted.status().message();
        return adopt(std::move(encrypted));
      }
      return adopt(CheckedStore::around(std::move(*spill)));
    }
    if (GetParam().kind == Kind::kCompressed) return open_compressed(bytes);
    if (GetParam().kind == Kind::kSparse || GetParam().kind == Kind::kSparseSpill)
      return adopt(SparseStore::open(directory_, sparse_options(bytes)));
    if (GetParam().kind == Kind::kNbd) return open_nbd(bytes);
    if (GetParam().kind == Kind::kRbd) return open_rbd(bytes);
    if (GetParam().kind == Kind::kBalanced) return open_balanced(bytes);
    if (GetParam().kind == Kind::kStriped || GetParam().kind == Kind::kMixed) return open_striped(bytes);
    path_ = make_file("data", bytes);
    adopt(FileStore::open(path_, options(GetParam().way)));
  }

  // Four files, or members of four kinds, the same size altogether.
  void open_striped(uint64_t bytes) {
    constexpr int kMembers = 4;
    if (GetParam().kind == Kind::kMixed && !NbdServer::missing().empty())
      GTEST_SKIP() << "one of the members is a server's: " << NbdServer::missing();
    store_.reset();
    std::vector<std::string> members;
    for (int i = 0; i < kMembers; ++i)
      members.push_back("file:" + make_file(std::to_string(i), bytes / kMembers));
    if (GetParam().kind == Kind::kMixed) {
      members[1] = "memory:" + std::to_string(bytes / kMembers);
      members[2] = "sparse:" + directory_ + "/sparse?segment=64K&size=" + std::to_string(bytes / kMembers);
      server_ = std::make_unique<NbdServer>(directory_ + "/socket");
      ASSERT_TRUE(server_->start({"memory", std::to_string(bytes / kMembers)}));
      members[3] = server_->uri();
    }
    std::string uri = "striped:chunk=64K";
    for (const std::string& member : members) uri += "," + member;
    adopt(open_store(uri, {.engine = engine_of(GetParam().way), .faults = &faults_}));
  }

  // Four spill files, of which one is half the size of the others.
  void open_balanced(uint64_t bytes) {
    store_.reset();
    FileOptions unfaulted = options(GetParam().way);
    unfaulted.faults = nullptr;
    std::vector<std::unique_ptr<Store>> members;
    const uint64_t unit = round_down(bytes / 7, 64 * kKiB);
    for (const uint64_t member_bytes : {2 * unit, 2 * unit, unit, bytes - 5 * unit}) {
      auto spill = FileStore::open_spill(directory_, unfaulted, member_bytes);
      ASSERT_TRUE(spill) << spill.status().message();
      members.push_back(std::move(*spill));
    }
    adopt(BalancedStore::create(std::move(members), 64 * kKiB, &faults_));
  }

  std::string make_file(const std::string& name, uint64_t bytes) {
    std::string path = directory_ + "/" + name;
    platform::File file(::open(path.c_str(), O_CREAT | O_TRUNC | O_RDWR, 0600));
    EXPECT_TRUE(platform::set_file_size(file, bytes));
    return path;
  }

  void open_nbd(uint64_t bytes) {
    if (!NbdServer::missing().empty()) GTEST_SKIP() << NbdServer::missing();
    store_.reset();
    server_ = std::make_unique<NbdServer>(directory_ + "/socket");
    ASSERT_TRUE(server_->start({"memory", std::to_string(bytes)}));
    adopt(open_store(server_->uri(), {.faults = &faults_}));
  }

  // What the tests write mostly does not compress; zeros do.
  void open_compressed(uint64_t bytes) {
    auto spill = FileStore::open_spill(directory_, options(GetParam().way), bytes);
    ASSERT_TRUE(spill) << spill.status().message();
    auto codec = PageCodec::load(Compression::kLz4);
    if (!codec && codec.status().error() == ENOPKG) GTEST_SKIP() << codec.status().message();
    ASSERT_TRUE(codec) << codec.status().message();
    store_.reset();
    compressed_ = std::make_unique<CompressedMemory>(std::move(*codec), kMiB);
    adopt(CompressedStore::around(std::move(*spill), *compressed_));
  }

  void open_rbd(uint64_t bytes) {
    Ceph& ceph = Ceph::here();
    if (!ceph.missing().empty()) GTEST_SKIP() << ceph.missing();
    store_.reset();
    const std::string uri = ceph.make_image(bytes);
    ASSERT_FALSE(uri.empty());
    adopt(open_store(uri, {.faults = &faults_}));
  }

  template <class T>
  void adopt(Result<std::unique_ptr<T>> store) {
    ASSERT_TRUE(store) << store.status().message();
    store_ = std::move(*store);
    if (GetParam().way == Way::kTransfer) return;
    auto queue = store_->open_queue(kDepth);
    if (!queue && (queue.status().error() == EPERM || queue.status().error() == ENOSYS))
      GTEST_SKIP() << queue.status().message();
    ASSERT_TRUE(queue) << queue.status().message();
    queue_ = std::move(*queue);
  }

  // Does all of them and waits; their errors, in order.
  std::vector<int> perform(std::vector<Request>& requests) {
    std::vector<int> errors;
    if (!queue_) {
      for (Request& request : requests) errors.push_back(store_->transfer(request).error());
      return errors;
    }
    std::vector<Request*> pointers;
    for (Request& request : requests) pointers.push_back(&request);
    return drive(*queue_, pointers);
  }
  int perform(Request request) {
    std::vector<Request> one{request};
    return perform(one)[0];
  }

 public:
  // Submits all as room allows, and reaps each exactly once.
  static std::vector<int> drive(IoQueue& queue, const std::vector<Request*>& requests) {
    std::map<Request*, int> errors;
    size_t submitted = 0;
    while (errors.size() < requests.size()) {
      submitted += queue.submit(std::span(requests).subspan(submitted));
      EXPECT_LE(queue.in_flight(), queue.depth());
      Completion done[3];
      size_t count = queue.reap(done);
      for (size_t i = 0; i < count; ++i)
        EXPECT_TRUE(errors.emplace(done[i].request, done[i].error).second) << "completed twice";
      if (count == 0) queue.wait(kHangNs);
    }
    EXPECT_EQ(queue.in_flight(), 0u);
    std::vector<int> in_order;
    for (Request* request : requests) in_order.push_back(errors.at(request));
    return in_order;
  }

 protected:
  uint64_t counted(telemetry::Counter counter) const {
    return telemetry::total(telemetry::read_totals(), counter) - telemetry::total(before_, counter);
  }
  bool is_whole_file() const {
    return GetParam().kind == Kind::kFile || GetParam().kind == Kind::kBufferedFile;
  }

  static constexpr size_t kDepth = 8;
  static constexpr uint64_t kHangNs = 10'000'000'000;

  std::string directory_;
  std::string path_;
  FaultPlan faults_;
  std::unique_ptr<NbdServer> server_;
  std::unique_ptr<CompressedMemory> compressed_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<IoQueue> queue_;
  telemetry::Totals before_{};
};

}  // namespace spw::store
