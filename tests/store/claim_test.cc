#include "store/claim/claim.h"

#include <fstream>

#include "store/claim/known_contents.h"
#include "store_fixture.h"

namespace spw::store {
namespace {

using std::literals::operator""sv;

// A device of these bytes, at first zeros.
class Contents {
 public:
  explicit Contents(uint64_t device_bytes) : device_bytes_(device_bytes), begin_(kMiB), end_(kMiB) {}
  void put(uint64_t offset, std::string_view text) {
    const uint64_t end_begins = device_bytes_ - end_.size();
    std::byte* const at = offset >= end_begins ? &end_[offset - end_begins] : &begin_[offset];
    std::memcpy(at, text.data(), text.size());
  }
  std::string known() const {
    const std::string begin(known_at_begin(begin_)), end(known_at_end(end_, device_bytes_));
    return begin.empty() ? end : begin;
  }

 private:
  uint64_t device_bytes_;
  std::vector<std::byte> begin_, end_;
};

TEST(KnownContents, are_found_at_either_end) {
  constexpr uint64_t kDevice = 100 * kMiB + 512 * 3;  // of no round size
  struct Example {
    uint64_t offset;
    std::string_view bytes;
    std::string_view what;
  };
  // As the makers of these formats document them.
  const Example examples[] = {
      {1024 + 56, "\x53\xEF"sv, "ext4"},
      {0, "XFSB\0\0\x10\0"sv, "XFS"},
      {64 * kKiB + 64, "_BHRfS_M"sv, "btrfs"},
      {4096 - 10, "SWAPSPACE2"sv, "swap"},
      {0, "LUKS\xBA\xBE\0\x02"sv, "LUKS"},
      {512 + 24, "LVM2 001"sv, "LVM"},
      {4096, "\xFC\x4E\x2B\xA9\x01\0\0\0"sv, "RAID"},
      {round_down(kDevice, 64 * kKiB) - 64 * kKiB, "\xFC\x4E\x2B\xA9\0\0\0\0"sv, "RAID"},
      {round_down(kDevice - 8 * kKiB, 4 * kKiB), "\xFC\x4E\x2B\xA9\x01\0\0\0"sv, "RAID"},
      {512, "EFI PART"sv, "GPT"},
      {kDevice - 512, "EFI PART"sv, "GPT"},
      {510, "\x55\xAA"sv, "partition table"},
      {128 * kKiB + 17 * kKiB, "\x0C\xB1\xBA\0\0\0\0\0"sv, "ZFS"},
      {round_down(kDevice, 256 * kKiB) - 128 * kKiB, "\x0C\xB1\xBA\0\0\0\0\0"sv, "ZFS"},
      {0, "DURABLE1"sv, "persistent region"},
      {54, "FAT16   "sv, "FAT"},
      {3, "NTFS    "sv, "NTFS"},
  };
  for (const Example& each : examples) {
    Contents contents(kDevice);
    EXPECT_EQ(contents.known(), "");
    contents.put(each.offset, each.bytes);
    EXPECT_NE(contents.known().find(each.what), std::string::npos) << each.what << ": " << contents.known();
  }
}

// Exports in memory stand for devices, which need root.
class Claim : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!NbdServer::missing().empty()) GTEST_SKIP() << NbdServer::missing();
    directory_ = make_scratch_directory();
    path_ = directory_ + "/export";
    std::ofstream(path_).close();
    std::filesystem::resize_file(path_, kStoreBytes);
    server_ = std::make_unique<NbdServer>(directory_ + "/socket");
    ASSERT_TRUE(server_->start({"file", path_}));
  }
  void TearDown() override {
    server_.reset();
    if (!directory_.empty()) std::filesystem::remove_all(directory_);
  }
  Result<std::unique_ptr<Store>> open(const std::string& parameters = "") {
    return open_store(server_->uri() + parameters, {.spill = true});
  }
  void put(uint64_t offset, const std::string& text) {
    std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(offset));
    file << text;
  }
  std::string get(uint64_t offset, uint64_t bytes) {
    std::ifstream file(path_, std::ios::binary);
    file.seekg(static_cast<std::streamoff>(offset));
    std::string text(bytes, '\0');
    file.read(text.data(), static_cast<std::streamsize>(bytes));
    return text;
  }
  static Status move(Store& store, Op op, uint64_t offset, const Buffer& buffer) {
    Request request = transfer_of(op, offset, buffer);
    return store.transfer(request);
  }

  std::string directory_, path_;
  std::unique_ptr<NbdServer> server_;
};

TEST_F(Claim, what_is_spilled_lies_behind_the_header) {
  auto store = open();
  ASSERT_TRUE(store) << store.status().message();
  EXPECT_EQ((*store)->size_bytes(), kStoreBytes - kClaimBytes);
  const Buffer first(kUnit, 1), last(kUnit, 2);
  EXPECT_TRUE(move(**store, Op::kWrite, 0, first));
  EXPECT_TRUE(move(**store, Op::kWrite, (*store)->size_bytes() - kUnit, last));
  for (const auto& [offset, written] :
       {std::pair(uint64_t{0}, &first), {(*store)->size_bytes() - kUnit, &last}}) {
    Buffer read(kUnit);
    EXPECT_TRUE(move(**store, Op::kRead, offset, read));
    EXPECT_EQ(read, *written);
    EXPECT_EQ(get(kClaimBytes + offset, kUnit),
              std::string(reinterpret_cast<const char*>(written->data()), kUnit));
  }
  Request discard = discard_of(0, kUnit);
  EXPECT_TRUE((*store)->transfer(discard));
  EXPECT_TRUE(get(0, kMiB).starts_with(kClaimMagic)) << "the discard met the header";
  EXPECT_EQ(get(kClaimBytes, kUnit), std::string(kUnit, '\0'));
}

TEST_F(Claim, is_one_processes_and_is_given_up) {
  auto first = open();
  ASSERT_TRUE(first) << first.status().message();
  auto second = open("&overwrite=yes");
  ASSERT_FALSE(second);
  EXPECT_EQ(second.status().error(), EBUSY);
  EXPECT_NE(second.status().message().find("this process has it as its store already"), std::string::npos);
  *first = nullptr;
  EXPECT_TRUE(open()) << "what it left is ours";
  EXPECT_TRUE(open_store(server_->uri())) << "who does not spill claims nothing";
}

TEST_F(Claim, what_is_not_ours_is_left_alone_wherever_it_stands) {
  for (const uint64_t offset : {uint64_t{0}, uint64_t{17}, uint64_t{4000}, uint64_t{5000}, kMiB - 2}) {
    ASSERT_TRUE(open("&overwrite=yes"));
    ASSERT_TRUE(open()) << "ours again";
    put(offset, "xy");
    const std::string before = get(0, kStoreBytes);
    auto refused = open();
    ASSERT_FALSE(refused) << offset;
    EXPECT_EQ(refused.status().error(), EINVAL);
    EXPECT_NE(refused.status().message().find("it holds data that is not Spillway's"), std::string::npos)
        << refused.status().message();
    EXPECT_EQ(get(0, kStoreBytes), before);
  }
}

TEST_F(Claim, what_looks_like_something_among_what_was_spilled_is_nothing) {
  ASSERT_TRUE(open());
  put(kStoreBytes - 512, "EFI PART");
  put(kMiB + 1080, "\x53\xEF");
  EXPECT_TRUE(open());
}

TEST_F(Claim, a_partition_table_whose_copy_alone_is_left_is_found) {
  put(kStoreBytes - 512, "EFI PART");
  auto refused = open();
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.status().message().find("a partition table (GPT)"), std::string::npos);
}

TEST_F(Claim, overwrite_is_yes_or_no) {
  EXPECT_TRUE(open("&overwrite=no"));
  EXPECT_EQ(open("&overwrite=maybe").status().error(), EINVAL);
}

TEST(ClaimFile, a_file_is_no_device) {
  const std::string directory = make_scratch_directory();
  const std::string path = directory + "/data?overwrite=yes";
  std::ofstream(path) << "precious";
  EXPECT_EQ(open_store("file:" + directory + "/none", {.spill = true}).status().error(), ENOENT);
  std::ofstream(directory + "/data") << "precious";
  for (const char* name : {"/data", "/data?overwrite=yes"}) {
    auto refused = open_store("file:" + directory + name, {.spill = true});
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.status().message().find("would overwrite this file"), std::string::npos);
  }
  EXPECT_TRUE(open_store("file:" + path)) << "a name that nothing is spilled to has no parameters";
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace spw::store
