// Files that somebody else may have made: a header that is whole and wrong, a file that was cut off, chunks and logs
// that no version writes. Each is an error that names the file or the place, for those who open it and for
// `spillway check`.
#include "durable/region_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "durable/check.h"
#include "durable/persistent_region.h"
#include "durable/undo_log.h"

namespace spw::durable {
namespace {

class RegionFileTest : public testing::Test {
 protected:
  void SetUp() override {
    path_ = testing::TempDir() + "region_file_test." + std::to_string(::getpid());
    RegionFile::Options options;
    options.domain = DomainKind::kBlock;
    options.layout.capacity_bytes = kMiB;
    options.layout.slots = 2;
    options.layout.segment_bytes = 4 * kKiB;
    auto file = RegionFile::open(path_, options);
    ASSERT_TRUE(file) << file.status().message();
    header_ = (*file)->view().header();
    ASSERT_TRUE((*file)->grow_to(header_.heap_offset + 4 * kChunkBytes));
  }
  void TearDown() override { std::filesystem::remove(path_); }

  void write(uint64_t at, const void* data, size_t bytes) const {
    const platform::File file(::open(path_.c_str(), O_RDWR | O_CLOEXEC));
    ASSERT_EQ(::pwrite(file.fd(), data, bytes, static_cast<off_t>(at)), static_cast<ssize_t>(bytes));
  }
  // With a checksum that holds.
  void write_header(Header header) const {
    header.checksum = checksum_of(header);
    write(0, &header, sizeof header);
  }
  void write_chunk(uint64_t chunk, ChunkWord word) const {
    const uint64_t bits = word.word();
    write(header_.chunks_offset + chunk * sizeof bits, &bits, sizeof bits);
  }
  // Of slot 0, the first of its log.
  void write_record(Record record, const void* payload) const {
    alignas(8) std::byte bytes[sizeof(Record) + 64] = {};
    Header now{};
    const platform::File file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
    ASSERT_EQ(::pread(file.fd(), &now, sizeof now, 0), static_cast<ssize_t>(sizeof now));
    std::memcpy(bytes, &record, sizeof record);
    std::memcpy(bytes + sizeof record, payload, record.bytes);
    auto& placed = *reinterpret_cast<Record*>(bytes);
    placed.checksum = checksum_of(placed, log_seed(now, 0));
    write(header_.logs_offset, bytes, record_bytes(record.bytes));
  }
  Status try_open() const {
    PersistentRegion::Options options;
    options.file.domain = DomainKind::kBlock;
    options.file.may_create = false;
    return PersistentRegion::open(path_, options).status();
  }
  // It is refused, and the message has these words. A damaged region is one that check reads, and lists problems of.
  void expect_damaged(const std::string& words) const {
    const Status status = try_open();
    EXPECT_EQ(status.error(), EILSEQ) << status.message();
    EXPECT_NE(status.message().find(words), std::string::npos) << status.message();
    EXPECT_NE(status.message().find(path_), std::string::npos) << status.message();
    auto checked = check_file(path_);
    const std::string said = !checked                    ? checked.status().message()
                             : checked->problems.empty() ? "no problem was found"
                                                         : checked->problems.front();
    EXPECT_NE(said.find(words), std::string::npos) << said;
  }

  std::string path_;
  Header header_{};
};

TEST_F(RegionFileTest, what_was_made_can_be_checked_and_opened) {
  auto checked = check_file(path_);
  ASSERT_TRUE(checked) << checked.status().message();
  EXPECT_TRUE(checked->problems.empty()) << checked->problems.front();
  EXPECT_EQ(checked->free_chunks, 4u);
  EXPECT_TRUE(try_open());
}

TEST_F(RegionFileTest, a_header_whose_sizes_do_not_fit_together_is_refused_whatever_its_checksum) {
  using Change = void (*)(Header&);
  const Change changes[] = {
      [](Header& header) { header.slots_offset = uint64_t{1} << 60; },
      [](Header& header) { header.roots_offset += 8; },
      [](Header& header) { header.logs_offset = UINT64_MAX - 7; },
      [](Header& header) { header.chunks_offset += kMmuPageBytes; },
      [](Header& header) { header.heap_offset = 0; },
      [](Header& header) { header.heap_offset = UINT64_MAX - kChunkBytes + 1; },
      [](Header& header) { header.slots = 0; },
      [](Header& header) { header.slots = kSlotsMax + 1; },
      [](Header& header) { header.segment_bytes = uint64_t{1} << 63; },
      [](Header& header) { header.capacity_bytes = uint64_t{1} << 50; },
      [](Header& header) { header.capacity_bytes += 1; },
      [](Header& header) { header.base = 0; },
      [](Header& header) { header.base += 8; },
      [](Header& header) { header.base = UINT64_MAX - kMiB + 1; },
  };
  for (const Change change : changes) {
    Header header = header_;
    change(header);
    write_header(header);
    expect_damaged("its sizes do not fit together");
  }
  write_header(header_);
  EXPECT_TRUE(try_open());
}

TEST_F(RegionFileTest, a_file_that_was_cut_off_within_its_used_chunks_is_told) {
  write_chunk(2, {ChunkKind::kObjects, 3, 1});
  EXPECT_TRUE(try_open());
  std::filesystem::resize_file(path_, header_.heap_offset + 2 * kChunkBytes);
  expect_damaged("was cut off");
  std::filesystem::resize_file(path_, header_.heap_offset + 2 * kChunkBytes + 100);
  expect_damaged("in the middle of a chunk");
}

TEST_F(RegionFileTest, words_of_chunks_that_no_version_writes_are_damage_and_not_free_space) {
  const struct {
    ChunkWord word;
    const char* words;
  } damages[] = {
      {{static_cast<ChunkKind>(9), 0, 1}, "a kind of chunk that does not exist"},
      {{ChunkKind::kObjects, 200, 1}, "a size class that does not exist"},
      {{ChunkKind::kObjects, 1, 2}, "a word of a chunk that is damaged"},
      {{ChunkKind::kFree, 0, 1}, "a word of a chunk that is damaged"},
      {{ChunkKind::kLarge, 0, 0}, "past the end of the file"},
      {{ChunkKind::kLarge, 0, UINT32_MAX}, "past the end of the file"},
      {{ChunkKind::kLog, 0, 4}, "past the end of the file"},
  };
  for (const auto& damage : damages) {
    write_chunk(1, damage.word);
    expect_damaged(damage.words);
    expect_damaged("chunk 1");
  }
}

TEST_F(RegionFileTest, a_large_object_with_others_chunks_in_it_is_damage_while_it_is_allocated) {
  write_chunk(0, {ChunkKind::kLarge, 0, 3});
  write_chunk(1, {ChunkKind::kRest, 0, 0});
  write_chunk(2, {ChunkKind::kObjects, 1, 1});
  EXPECT_TRUE(try_open()) << "it is what is left of one that is gone";
  const std::byte allocated{1};
  write(header_.heap_offset, &allocated, 1);
  expect_damaged("has chunks of others in it");
}

TEST_F(RegionFileTest, a_log_may_restore_what_sections_store_to_and_nothing_else) {
  const uint64_t old = 0x1234;
  Record record{0, 1, 1, 0, sizeof old, RecordKind::kOldBytes};
  for (const uint64_t offset :
       {uint64_t{40}, header_.slots_offset, header_.slots_offset - 4, header_.logs_offset,
        header_.chunks_offset, header_.heap_offset - 4, header_.heap_offset + 4 * kChunkBytes - 4}) {
    record.address = header_.base + offset;
    write_record(record, &old);
    expect_damaged("names an address outside of the heap");
  }
  record.kind = static_cast<RecordKind>(7);
  write_record(record, &old);
  expect_damaged("a record of an unknown kind");
  record.kind = RecordKind::kOldBytes;
  record.address = header_.base + header_.roots_offset + sizeof(Root);
  write_record(record, &old);
  EXPECT_TRUE(try_open());
}

TEST_F(RegionFileTest, a_log_that_goes_in_circles_has_an_end) {
  write_chunk(3, {ChunkKind::kLog, 0, 1});
  Record jump{0, 1, 1, header_.base + header_.heap_offset + 3 * kChunkBytes, 0, RecordKind::kJump};
  write_record(jump, &jump);
  jump.checksum = checksum_of(jump, log_seed(header_, 0));
  write(header_.heap_offset + 3 * kChunkBytes, &jump, sizeof jump);
  EXPECT_TRUE(check_file(path_));
  EXPECT_TRUE(try_open());
}

TEST_F(RegionFileTest, a_roots_name_without_an_end_is_nobodys) {
  const std::string name(sizeof(Root) - 1, 'x');
  write(header_.roots_offset, name.data(), name.size());
  auto checked = check_file(path_);
  ASSERT_TRUE(checked);
  ASSERT_FALSE(checked->problems.empty());
  EXPECT_NE(checked->problems.front().find("has no end"), std::string::npos);
  PersistentRegion::Options options;
  options.file.domain = DomainKind::kBlock;
  auto region = PersistentRegion::open(path_, options);
  ASSERT_TRUE(region) << region.status().message();
  EXPECT_EQ((*region)->roots().get(name), 0u);
  EXPECT_EQ((*region)->roots().get(name.substr(0, kRootNameMax)), 0u);
}

}  // namespace
}  // namespace spw::durable
