// Striped files that grow: sizes and what they ask of the members,
// against a string, with members that are opened again.
#include "store/striped_file.h"

#include <fstream>
#include <iterator>
#include <thread>

#include "store_fixture.h"

namespace spw::store {
namespace {

TEST(Stripes, the_end_of_a_member_is_an_end_of_the_file) {
  const Stripes stripes{16, 3};
  for (uint64_t size = 0; size < 16 * 3 * 4; ++size) {
    uint64_t end = 0, sum = 0;
    for (uint64_t member = 0; member < 3; ++member) {
      const uint64_t bytes = stripes.offset_in_member(member, size);
      end = std::max(end, stripes.end_with(member, bytes));
      sum += bytes;
    }
    EXPECT_EQ(end, size);
    EXPECT_EQ(sum, size);
  }
}

// A member that fails when it is told to, as a disk would.
class Unwilling final : public GrowingStore {
 public:
  explicit Unwilling(std::unique_ptr<GrowingStore> file) : file_(std::move(file)) {}
  int resize_error = 0, sync_error = 0, syncs = 0;

  std::string describe() const override { return file_->describe(); }
  uint64_t size_bytes() const override { return file_->size_bytes(); }
  uint64_t alignment_bytes() const override { return file_->alignment_bytes(); }
  const Atomic<uint64_t>* written_end() const override { return file_->written_end(); }
  Result<std::unique_ptr<IoQueue>> open_queue(size_t depth) override { return file_->open_queue(depth); }
  Status transfer(Request& request) override { return file_->transfer(request); }
  Status reserve(uint64_t offset, uint64_t bytes) override { return file_->reserve(offset, bytes); }
  void set_size(uint64_t bytes) override { file_->set_size(bytes); }
  Status resize_file(uint64_t bytes) override {
    return resize_error != 0 ? Status(resize_error, "cannot resize") : file_->resize_file(bytes);
  }
  Status settle_size() override { return file_->settle_size(); }
  void stop() override { file_->stop(); }
  void close_files() override { file_->close_files(); }
  Status reopen(std::span<platform::File> files) override { return file_->reopen(files); }
  Result<platform::FileStamp> stamp() const override { return file_->stamp(); }
  void write_to_kernel(bool begins) override { file_->write_to_kernel(begins); }
  Status sync_file(bool whole) override {
    ++syncs;
    return sync_error != 0 ? Status(sync_error, "cannot sync") : file_->sync_file(whole);
  }
  bool is_direct() const override { return file_->is_direct(); }

 private:
  std::unique_ptr<GrowingStore> file_;
};

class StripedFileTest : public ::testing::Test {
 protected:
  void SetUp() override { directory_ = make_scratch_directory(); }
  void TearDown() override {
    file_.reset();
    std::filesystem::remove_all(directory_);
  }

  std::string path(size_t member) const { return directory_ + "/" + std::to_string(member); }
  Result<std::unique_ptr<StripedFile>> try_open(FaultPlan* faults_of_second = nullptr) {
    std::vector<StripedFile::Member> members;
    files_.clear();
    unwilling_.clear();
    for (size_t i = 0; i < count_; ++i) {
      auto file = platform::open_file(path(order_.empty() ? i : order_[i]), O_RDWR | O_CREAT);
      if (!file) return file.status();
      FileOptions options;
      options.grows = true;
      options.faults = i == 1 ? faults_of_second : nullptr;
      auto store = FileStore::open_descriptor(file->fd(), path(i), options);
      if (!store) return store.status();
      auto unwilling = std::make_unique<Unwilling>(std::move(*store));
      unwilling_.push_back(unwilling.get());
      members.push_back({std::move(unwilling), path(i)});
      files_.push_back(std::move(*file));
    }
    return StripedFile::create(std::move(members), chunk_);
  }
  void open(size_t count, uint64_t chunk, FaultPlan* faults_of_second = nullptr) {
    count_ = count;
    chunk_ = chunk;
    file_.reset();
    auto opened = try_open(faults_of_second);
    ASSERT_TRUE(opened) << opened.status().message();
    file_ = std::move(*opened);
  }
  void put(size_t member, uint64_t bytes) {
    std::ofstream(path(member)).close();
    std::filesystem::resize_file(path(member), bytes);
  }
  std::string on_disk(size_t member) const {
    std::ifstream file(path(member), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  // What the members hold, put together; their sizes have to be those that the sum asks for.
  std::string all_on_disk() const {
    const Stripes stripes{chunk_, count_};
    std::vector<std::string> texts;
    uint64_t size = 0;
    for (size_t i = 0; i < count_; ++i) size += texts.emplace_back(on_disk(i)).size();
    std::string text;
    for (uint64_t at = 0; at < size; at += chunk_) {
      const uint64_t member = stripes.member_of(at), bytes = std::min(chunk_, size - at);
      EXPECT_EQ(texts[member].size(), stripes.offset_in_member(member, size));
      text += texts[member].substr(stripes.offset_in_member(member, at), bytes);
    }
    return text;
  }
  std::vector<uint64_t> sizes_on_disk() const {
    std::vector<uint64_t> sizes;
    for (size_t i = 0; i < count_; ++i) sizes.push_back(std::filesystem::file_size(path(i)));
    return sizes;
  }

  // As a cache of blocks would: whole blocks, of which the last sticks out of the file's end.
  int move(Op op, uint64_t offset, const Buffer& buffer) {
    Request request = transfer_of(op, offset, buffer);
    if (!by_queue_) return file_->transfer(request).error();
    auto queue = file_->open_queue(4);
    EXPECT_TRUE(queue);
    Request* pointer = &request;
    return StoreTest::drive(**queue, std::vector<Request*>{pointer})[0];
  }
  void write(uint64_t offset, const std::string& text) {
    const uint64_t begin = round_down(offset, kUnit), end = round_up(offset + text.size(), kUnit);
    Buffer blocks(end - begin);
    std::memset(blocks.data(), 0, blocks.bytes());
    if (begin < file_->size_bytes()) {
      Buffer old(std::min(end, round_up(file_->size_bytes(), kUnit)) - begin);
      ASSERT_EQ(move(Op::kRead, begin, old), 0);
      std::memcpy(blocks.data(), old.data(), old.bytes());
    }
    file_->set_size(std::max(file_->size_bytes(), offset + text.size()));
    std::memcpy(blocks.data() + (offset - begin), text.data(), text.size());
    ASSERT_EQ(move(Op::kWrite, begin, blocks), 0);
  }
  std::string read(uint64_t offset, uint64_t bytes) {
    const uint64_t size = file_->size_bytes();
    if (offset >= size) return "";
    const uint64_t begin = round_down(offset, kUnit), end = round_up(std::min(size, offset + bytes), kUnit);
    Buffer blocks(end - begin);
    EXPECT_EQ(move(Op::kRead, begin, blocks), 0);
    if (end > size) EXPECT_TRUE(blocks.is_zero(size - begin)) << "behind the end";
    return {reinterpret_cast<const char*>(blocks.data()) + (offset - begin), std::min(bytes, size - offset)};
  }

  std::string directory_;
  size_t count_ = 2;
  uint64_t chunk_ = 16 * kKiB;
  std::vector<size_t> order_;
  bool by_queue_ = false;
  std::vector<platform::File> files_;
  std::vector<Unwilling*> unwilling_;
  std::unique_ptr<StripedFile> file_;
};

std::string random_text(Rng& rng, uint64_t bytes) {
  std::string text(bytes, '\0');
  for (char& c : text) c = static_cast<char>('a' + rng.next() % 26);
  return text;
}

class StripedFileModel : public StripedFileTest {
 protected:
  void run(uint64_t seed, uint64_t size_max, int operations) {
    Rng rng(seed);
    std::string model;
    for (int i = 0; i < operations && !HasFailure(); ++i) {
      SCOPED_TRACE("operation " + std::to_string(i));
      const uint64_t offset = rng.next() % size_max, bytes = 1 + rng.next() % (size_max / 8);
      by_queue_ = rng.next() % 2 == 0;
      switch (rng.next() % 12) {
        case 0: {  // shorter or longer, often by a little
          const uint64_t size = rng.next() % 3 == 0 ? offset : model.size() - model.size() / 16;
          file_->set_size(std::min(size, file_->size_bytes()));
          ASSERT_TRUE(file_->resize_file(size));
          model.resize(size);
          break;
        }
        case 1:
          ASSERT_TRUE(file_->settle_size());
          ASSERT_TRUE(all_on_disk() == model);
          break;
        case 2:
          ASSERT_TRUE(file_->settle_size());
          if (rng.next() % 2 == 0) ASSERT_TRUE(file_->sync_file(false));
          open(count_, chunk_);
          ASSERT_EQ(file_->size_bytes(), model.size());
          break;
        case 3:
          park();
          break;
        case 4:
        case 5:
        case 6:
        case 7: {
          const std::string text = random_text(rng, bytes);
          write(offset, text);
          if (model.size() < offset + bytes) model.resize(offset + bytes);
          model.replace(offset, bytes, text);
          break;
        }
        default:
          ASSERT_TRUE(read(offset, bytes) == (offset < model.size() ? model.substr(offset, bytes) : ""));
      }
      ASSERT_EQ(file_->size_bytes(), model.size());
    }
    ASSERT_TRUE(file_->settle_size());
    ASSERT_TRUE(all_on_disk() == model);
  }
  void park() {
    file_->stop();
    Buffer buffer(kUnit);
    if (file_->size_bytes() > 0) EXPECT_EQ(move(Op::kRead, 0, buffer), EBADF);
    file_->close_files();
    if (file_->size_bytes() > 0) EXPECT_EQ(move(Op::kRead, 0, buffer), EBADF);
    std::vector<platform::File> again;
    for (size_t i = 0; i < files_.size(); ++i) {
      auto file = platform::reopen_file(files_[i].fd(), platform::Direct::kNo);
      ASSERT_TRUE(file) << file.status().message();
      again.push_back(std::move(file->file));
    }
    const Status status = file_->reopen(again);
    ASSERT_TRUE(status) << status.message();
  }
};

TEST_F(StripedFileModel, random_operations_end_as_on_a_string) {
  uint64_t seed = 0;
  for (const size_t count : {2, 3, 5})
    for (const uint64_t chunk : {4 * kKiB, 512 * kKiB}) {
      SCOPED_TRACE(std::to_string(count) + " members, chunks of " + format_size(chunk));
      for (size_t i = 0; i < count; ++i) std::filesystem::remove(path(i));
      open(count, chunk);
      run(++seed, chunk == 4 * kKiB ? 200'000 : 4'000'000, (chunk == 4 * kKiB ? 600 : 200) / SPW_SLOWED);
      if (HasFatalFailure()) return;
    }
}

TEST_F(StripedFileTest, an_empty_file_has_empty_members_and_grows) {
  open(3, 16 * kKiB);
  EXPECT_EQ(file_->size_bytes(), 0);
  write(0, "x");
  EXPECT_EQ(sizes_on_disk(), (std::vector<uint64_t>{1, 0, 0})) << "nothing is written behind the end";
  ASSERT_TRUE(file_->resize_file(40'000));
  EXPECT_EQ(sizes_on_disk(), (std::vector<uint64_t>{16'384, 16'384, 40'000 - 2 * 16'384}));
  EXPECT_EQ(all_on_disk(), "x" + std::string(39'999, '\0'));
}

TEST_F(StripedFileTest, a_hole_is_settled_in_every_member) {
  open(3, 16 * kKiB);
  write(5 * 16 * kKiB, "end");  // the third member's second chunk; the others were never written
  EXPECT_EQ(sizes_on_disk(), (std::vector<uint64_t>{0, 0, 16 * kKiB + 3}));
  EXPECT_EQ(read(0, 100'000), std::string(5 * 16 * kKiB, '\0') + "end");
  ASSERT_TRUE(file_->settle_size());
  EXPECT_EQ(sizes_on_disk(), (std::vector<uint64_t>{32 * kKiB, 32 * kKiB, 16 * kKiB + 3}));
  open(3, 16 * kKiB);
  EXPECT_EQ(file_->size_bytes(), 5 * 16 * kKiB + 3);
}

TEST_F(StripedFileTest, members_of_which_no_striped_file_consists_are_refused_by_name) {
  chunk_ = 16 * kKiB;
  count_ = 3;
  auto refused = [&](std::vector<uint64_t> sizes) {
    for (size_t i = 0; i < sizes.size(); ++i) put(i, sizes[i]);
    auto opened = try_open();
    EXPECT_EQ(opened.status().error(), opened ? 0 : EINVAL);
    return opened ? std::string() : opened.status().message();
  };
  EXPECT_EQ(refused({0, 0, 0}), "");
  EXPECT_EQ(refused({16'384, 16'384, 1}), "");
  EXPECT_EQ(refused({32'768, 16'385, 16'384}), "");
  for (const auto& [sizes, member, wanted] :
       std::vector<std::tuple<std::vector<uint64_t>, std::string, std::string>>{
           {{100, 0, 1}, "member 1 of", "truncate -s 16384 "},
           {{16'384, 16'385, 16'384}, "member 1 of", "truncate -s 32768 "},
           {{16'385, 16'383, 16'384}, "member 2 of", "truncate -s 16384 "},
           {{0, 65'536, 0}, "member 1 of", "truncate -s 65536 "}}) {
    const std::string message = refused(sizes);
    EXPECT_NE(message.find(member), std::string::npos) << message;
    EXPECT_NE(message.find(wanted), std::string::npos) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos);
  }
  // What the message says mends it.
  EXPECT_NE(refused({100, 0, 1}), "");
  EXPECT_NE(refused({16'384, 0, 1}), "");
  EXPECT_EQ(refused({16'384, 16'384, 1}), "");
}

TEST_F(StripedFileTest, another_order_is_found_where_the_sizes_tell) {
  open(3, 16 * kKiB);
  write(0, std::string(20'000, 'a'));
  ASSERT_TRUE(file_->settle_size());
  file_.reset();
  order_ = {1, 0, 2};
  EXPECT_EQ(try_open().status().error(), EINVAL);
  order_ = {};
  EXPECT_TRUE(try_open());
}

TEST_F(StripedFileTest, a_member_that_fails_fails_what_concerns_it) {
  FaultPlan faults;
  open(3, 16 * kKiB, &faults);
  write(0, std::string(200'000, 'a'));
  ASSERT_TRUE(faults.add("write:1+:ENOSPC,read:1+:EIO"));
  Buffer buffer(16 * kKiB, 1);
  for (const bool by_queue : {false, true}) {
    by_queue_ = by_queue;
    EXPECT_EQ(move(Op::kWrite, 0, buffer), 0);
    EXPECT_EQ(move(Op::kWrite, 16 * kKiB, buffer), ENOSPC);
    EXPECT_EQ(move(Op::kRead, 16 * kKiB, buffer), EIO);
    Buffer all(64 * kKiB);
    EXPECT_EQ(move(Op::kRead, 0, all), EIO);
  }
  EXPECT_NE(file_->describe_at(16 * kKiB).find("member 2 of 3"), std::string::npos);
  faults.clear();
  EXPECT_EQ(move(Op::kWrite, 16 * kKiB, buffer), 0);
}

TEST_F(StripedFileTest, a_sync_reaches_all_members_and_the_first_error_is_returned) {
  open(3, 16 * kKiB);
  write(0, std::string(100'000, 'a'));
  EXPECT_TRUE(file_->sync_file(true));
  unwilling_[1]->sync_error = EIO;
  unwilling_[2]->sync_error = ENOSPC;
  EXPECT_EQ(file_->sync_file(false).error(), EIO);
  for (const Unwilling* member : unwilling_) EXPECT_EQ(member->syncs, 2);
}

TEST_F(StripedFileTest, growth_that_fails_leaves_all_members_as_they_were) {
  open(3, 16 * kKiB);
  ASSERT_TRUE(file_->resize_file(20'000));
  const auto before = sizes_on_disk();
  unwilling_[2]->resize_error = EFBIG;
  EXPECT_EQ(file_->resize_file(500'000).error(), EFBIG);
  EXPECT_EQ(file_->size_bytes(), 20'000);
  EXPECT_EQ(sizes_on_disk(), before);
}

TEST_F(StripedFileTest, a_truncation_that_fails_is_made_good_when_the_size_is_settled) {
  open(3, 16 * kKiB);
  write(0, std::string(200'000, 'a'));
  ASSERT_TRUE(file_->settle_size());
  unwilling_[1]->resize_error = EIO;
  file_->set_size(20'000);
  EXPECT_EQ(file_->resize_file(20'000).error(), EIO);
  EXPECT_EQ(file_->settle_size().error(), EIO);
  unwilling_[1]->resize_error = 0;
  EXPECT_TRUE(file_->settle_size());
  EXPECT_EQ(all_on_disk(), std::string(20'000, 'a'));
}

TEST_F(StripedFileTest, stamps_are_equal_until_some_member_changes) {
  open(3, 16 * kKiB);
  ASSERT_TRUE(file_->resize_file(200'000));
  auto before = file_->stamp();
  ASSERT_TRUE(before);
  EXPECT_EQ(before->size_bytes, 200'000);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_TRUE(*file_->stamp() == *before);
  std::ofstream(path(1), std::ios::in | std::ios::out) << "x";
  EXPECT_FALSE(*file_->stamp() == *before);
  std::filesystem::remove(path(2));
  EXPECT_EQ(file_->stamp()->links, 0);
}

// Its blocks are larger than chunks, so that parts of the last one lie wholly behind an end that comes nearer.
TEST_F(StripedFileTest, a_block_is_written_and_read_while_the_end_comes_nearer_within_it) {
  open(5, 4 * kKiB);
  constexpr uint64_t kBlock = 64 * kKiB;
  Buffer written(kBlock, 1), read(kBlock);
  auto queue = file_->open_queue(2);
  ASSERT_TRUE(queue);
  Rng rng(1);
  for (int i = 0; i < 500 && !HasFailure(); ++i) {
    file_->set_size(3 * kBlock);
    std::thread transfers([&] {
      for (const Op op : {Op::kWrite, Op::kRead}) {
        Request request = transfer_of(op, 2 * kBlock, op == Op::kWrite ? written : read);
        EXPECT_EQ(file_->transfer(request).error(), 0);
      }
    });
    std::thread queued([&] {
      Request write = transfer_of(Op::kWrite, 2 * kBlock, written);
      EXPECT_EQ(StoreTest::drive(**queue, std::vector<Request*>{&write}), std::vector<int>{0});
    });
    for (uint64_t end = 3 * kBlock; end > 2 * kBlock + 4000; end -= rng.next() % 4000) file_->set_size(end);
    transfers.join();
    queued.join();
    const uint64_t bytes = file_->size_bytes() - 2 * kBlock;
    EXPECT_EQ(std::memcmp(read.data(), written.data(), bytes), 0);
    ASSERT_TRUE(file_->resize_file(file_->size_bytes()));
  }
}

TEST_F(StripedFileTest, members_and_chunks_that_cannot_be_are_refused) {
  count_ = 1;
  EXPECT_EQ(try_open().status().error(), EINVAL);
  count_ = 2;
  for (const uint64_t chunk : {uint64_t{0}, uint64_t{1000}, 2 * kGiB}) {
    chunk_ = chunk;
    EXPECT_EQ(try_open().status().error(), EINVAL) << chunk;
  }
}

}  // namespace
}  // namespace spw::store
