// Blocks of the mapped engine that nobody reaches by their addresses: in
// the upper part of the space, by the cache alone and as buffered files.
#include <fcntl.h>
#include <unistd.h>

#include <set>
#include <string>
#include <thread>
#include <vector>

#include "access/context.h"
#include "files/buffered_file.h"
#include "files/descriptors.h"
#include "mapped_engine_fixture.h"

namespace spw::access {
namespace {

constexpr uint64_t kBlockBytes = uint64_t{1} << kShift;
constexpr uint64_t kLowerBytes = kSpaceBytes / 2;
constexpr uintptr_t kUpper = SPW_MANAGED_BASE + kLowerBytes;
constexpr uint64_t kBlocks = 4 * kFrames;

class PooledBlocks : public MappedEngineTest {
 protected:
  uint64_t in_place_bytes() const override { return kLowerBytes; }

  static BlockId block_at(uintptr_t address) { return BlockId((address - SPW_MANAGED_BASE) >> kShift); }
  void add_store(uint64_t bytes) {
    auto store = store::MemoryStore::create(bytes, &file_plan_);
    ASSERT_TRUE(store.is_ok());
    ASSERT_TRUE(regions_->add_file(kUpper, bytes,
                                   {regions_->adopt(std::move(*store)), 0, region::Kind::kSharedFile}));
    engine_->watch();
  }
  void write(uint64_t block, uint64_t value) {
    cache::Pin pin;
    ASSERT_TRUE(cache_->pin(engine_->client(), block_at(kUpper) + block, cache::Access::kWrite, &pin));
    std::memcpy(pin.data + 8, &value, sizeof value);
    cache_->unpin(engine_->client(), pin.frame);
  }
  uint64_t read(uint64_t block) {
    cache::Pin pin;
    SPW_CHECK(cache_->pin(engine_->client(), block_at(kUpper) + block, cache::Access::kRead, &pin).is_ok());
    uint64_t value;
    std::memcpy(&value, pin.data + 8, sizeof value);
    cache_->unpin(engine_->client(), pin.frame);
    return value;
  }

  store::FaultPlan file_plan_;
};

TEST_F(PooledBlocks, hold_what_was_written_beyond_the_memory) {
  add_store(kBlocks * kBlockBytes);
  for (uint64_t block = 0; block < kBlocks; ++block) write(block, block * 7);
  for (uint64_t block = 0; block < kBlocks; ++block) ASSERT_EQ(read(block), block * 7);
  for (uint64_t block = kBlocks; block-- > 0;) ASSERT_EQ(read(block), block * 7);
  EXPECT_GT(counted(Counter::evictions), kFrames);
}

TEST_F(PooledBlocks, share_frames_with_blocks_in_place) {
  add_store(kBlocks * kBlockBytes);
  std::byte* memory = add(kBlocks * kBlockBytes);
  std::thread in_place([memory] {
    for (uint64_t turn = 0; turn < 3; ++turn)
      for (uint64_t block = 0; block < kBlocks; ++block) {
        auto* word = reinterpret_cast<uint64_t*>(memory + block * kBlockBytes);
        ASSERT_EQ(*word, turn == 0 ? 0 : block + turn - 1);
        *word = block + turn;
      }
  });
  for (uint64_t turn = 0; turn < 3; ++turn)
    for (uint64_t block = 0; block < kBlocks; ++block) {
      ASSERT_EQ(read(block), turn == 0 ? 0 : block + turn - 1);
      write(block, block + turn);
    }
  in_place.join();
}

TEST_F(PooledBlocks, a_read_that_failed_leaves_nothing_behind) {
  add_store(kBlocks * kBlockBytes);
  for (uint64_t block = 0; block < kBlocks; ++block) write(block, block + 1);
  ASSERT_TRUE(file_plan_.add("read:1+:EIO"));
  cache::Pin pin;
  for (uint64_t block = 0; block < 10; ++block)
    EXPECT_EQ(
        cache_->pin_quietly(engine_->client(), block_at(kUpper) + block, cache::Access::kRead, &pin).error(),
        EIO);
  file_plan_.clear();
  for (uint64_t block = 0; block < kBlocks; ++block) ASSERT_EQ(read(block), block + 1);
}

TEST_F(PooledBlocks, have_no_address) {
  add_store(kBlocks * kBlockBytes);
  write(3, 5);
  EXPECT_TRUE(faults(kUpper + 3 * kBlockBytes));
  EXPECT_EQ(read(3), 5u);
}

// A file on the cache, as the runtime has it.
class PooledFile : public PooledBlocks {
 protected:
  void SetUp() override {
    PooledBlocks::SetUp();
    if (IsSkipped()) return;
    access::set_context(&context_);  // managed memory is at its own addresses: files copy as memcpy does
    heap_ = std::move(*heap::Heap::create(*regions_, kLowerBytes, kSpaceBytes - kLowerBytes));
    char name[] = "/tmp/spillway-pooled.XXXXXX";
    fd_ = ::mkstemp(name);
    ::unlink(name);
    parts_ = std::make_unique<files::FileParts>(
        files::FileParts{*cache_, *engine_, *regions_, heap_->mappings(), {}, kMiB, heap_->call_mappings()});
    file_ = std::move(
        *files::BufferedFile::open(*parts_, {nodes_, flusher_, runs_beside_managed_}, fd_, "a file"));
  }
  void TearDown() override {
    file_.reset();
    if (fd_ >= 0) ::close(fd_);
    access::set_context(nullptr);
    PooledBlocks::TearDown();
  }
  void put(uint64_t offset, const std::string& text) {
    const iovec piece{const_cast<char*>(text.data()), text.size()};
    ASSERT_EQ(*file_->write(offset, {&piece, 1}), text.size());
  }
  std::string get(uint64_t offset, uint64_t bytes) {
    std::string text(bytes, '?');
    const iovec piece{text.data(), bytes};
    text.resize(*file_->read(offset, {&piece, 1}));
    return text;
  }
  static bool is_upper(const void* address) { return reinterpret_cast<uintptr_t>(address) >= kUpper; }

  int fd_ = -1;
  files::UseSlots uses_{std::move(*files::UseSlots::map_memory())};
  files::PageNodes nodes_{uses_};
  Atomic<uint32_t> runs_beside_managed_{0};
  files::Flusher flusher_{files::FlushOptions{}, kFrames,
                          [] { return std::vector<std::shared_ptr<files::BufferedFile>>(); }};
  std::unique_ptr<heap::Heap> heap_;
  access::Context context_{.in_place = true};
  std::unique_ptr<files::FileParts> parts_;
  std::unique_ptr<files::BufferedFile> file_;
};

TEST_F(PooledFile, gets_addresses_with_all_that_is_dirty_when_it_is_mapped) {
  const std::string text(100'000, 'a');
  put(0, text);
  auto mapped = file_->map(0, 0);
  ASSERT_TRUE(mapped.is_ok()) << mapped.status().message();
  auto* memory = reinterpret_cast<char*>(*mapped);
  EXPECT_FALSE(is_upper(memory));
  EXPECT_EQ(std::string(memory, text.size()), text);
  memory[50'000] = 'b';
  EXPECT_EQ(get(49'999, 3), "aba");
  put(10, "ccc");
  EXPECT_EQ(std::string(memory + 9, 5), "accca");
  file_->unmap(*mapped);
  ASSERT_TRUE(file_->flush());
  char on_disk[3];
  ASSERT_EQ(::pread(fd_, on_disk, 3, 49'999), 3);
  EXPECT_EQ(std::string(on_disk, 3), "aba");
}

TEST_F(PooledFile, is_mapped_again_after_it_has_outgrown_its_addresses) {
  put(0, "begin");
  auto first = file_->map(0, 0);
  ASSERT_TRUE(first.is_ok());
  reinterpret_cast<char*>(*first)[0] = 'B';
  file_->unmap(*first);
  put(40 * kMiB, "end");  // addresses for more than it had
  EXPECT_EQ(get(0, 5), "Begin");
  auto second = file_->map(0, 0);
  ASSERT_TRUE(second.is_ok()) << second.status().message();
  EXPECT_FALSE(is_upper(reinterpret_cast<char*>(*second)));
  EXPECT_NE(*first, *second);
  EXPECT_EQ(std::string(reinterpret_cast<char*>(*second), 5), "Begin");
  EXPECT_EQ(std::string(reinterpret_cast<char*>(*second) + 40 * kMiB, 3), "end");
  file_->unmap(*second);
  ASSERT_TRUE(file_->flush());
}

TEST_F(PooledFile, takes_what_addresses_there_are) {
  put(0, "begin");
  put(120 * kMiB, "longer");  // four times as many are not left in the upper half, nor behind that
  put(300 * kMiB, "longest");
  EXPECT_EQ(get(0, 5), "begin");
  EXPECT_EQ(get(120 * kMiB, 6), "longer");
  EXPECT_EQ(get(300 * kMiB, 7), "longest");
  const iovec piece{const_cast<char*>("x"), 1};
  EXPECT_EQ(file_->write(2 * kGiB, {&piece, 1}).status().error(), ENOMEM);
  EXPECT_EQ(get(300 * kMiB, 7), "longest");
  ASSERT_TRUE(file_->flush());
}

// What threads write by one open file, first by the kernel and then, its trial over, by the cache, stands in it once.
TEST_F(PooledFile, a_trial_ends_while_threads_write) {
  constexpr uint64_t kThreads = 4, kRecords = 100, kRecordBytes = 16;
  parts_->trial_calls = 50;
  files::Descriptors descriptors(*parts_);
  const auto write_one = [&](int fd, const std::string& text) {
    const iovec piece{const_cast<char*>(text.data()), text.size()};
    for (;;) {
      if (const auto file = descriptors.find(fd); !file->is_on_trial())
        return file->write({&piece, 1}).is_ok();
      const files::Descriptors::KernelCall call(descriptors, fd,
                                                files::Descriptors::KernelCall::Counts::kAsOne);
      if (!call.is_over()) return ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
    }
  };
  for (int round = 0; round < 10; ++round) {
    char name[] = "/tmp/spillway-trial.XXXXXX";
    const int fd = ::mkstemp(name);
    ::unlink(name);
    ASSERT_TRUE(descriptors.attach(fd, O_RDWR, name, *platform::file_stamp(fd),
                                   files::BufferedFiles::Guard::kGuarded));
    ASSERT_TRUE(descriptors.find(fd)->is_on_trial());
    std::vector<std::thread> threads;
    for (uint64_t thread = 0; thread < kThreads; ++thread)
      threads.emplace_back([&, thread] {
        for (uint64_t i = 0; i < kRecords; ++i) {
          std::string text = std::to_string(thread * kRecords + i);
          text.resize(kRecordBytes, ' ');
          EXPECT_TRUE(write_one(fd, text));
        }
      });
    for (std::thread& thread : threads) thread.join();
    std::string all(kThreads * kRecords * kRecordBytes + 1, '?');
    {
      const auto file = descriptors.find(fd);
      ASSERT_FALSE(file->is_on_trial());
      const iovec piece{all.data(), all.size()};
      ASSERT_EQ(*file->read_at(0, {&piece, 1}), all.size() - 1);
    }
    std::set<std::string> records;
    for (uint64_t i = 0; i < kThreads * kRecords; ++i)
      records.insert(all.substr(i * kRecordBytes, kRecordBytes));
    EXPECT_EQ(records.size(), kThreads * kRecords);
    bool was;
    EXPECT_TRUE(descriptors.detach(fd, &was, files::Descriptors::Now::kOpen));
    ::close(fd);
  }
}

}  // namespace
}  // namespace spw::access
