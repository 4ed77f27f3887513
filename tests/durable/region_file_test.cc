// Files that somebody else may have made: a header that is whole and wrong, a file that was cut off, chunks and logs
// that no version writes. Each is an error that names the file or the place, for those who open it and for
// `spillway check`.
#include "durable/region_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <vector>

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
    ASSERT_TRUE((*file)->grow_to(header_.heap_offset + kChunks * kChunkBytes));
    for (uint64_t chunk = 0; chunk < kChunks; ++chunk) write_chunk(chunk, {});
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
    const uint64_t bits = word.word(chunk_place(header_, chunk));
    write(header_.chunks_offset + chunk * sizeof bits, &bits, sizeof bits);
  }
  // All of them free.
  void write_states(uint64_t chunk, uint64_t objects) const {
    const StateBytes states(header_, chunk);
    std::vector<std::byte> bytes;
    for (uint64_t i = 0; i < objects; ++i) bytes.push_back(states.free(i));
    write(header_.heap_offset + chunk * kChunkBytes, bytes.data(), bytes.size());
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

  static constexpr uint64_t kChunks = 4;
  std::string path_;
  Header header_{};
};

TEST_F(RegionFileTest, what_was_made_can_be_checked_and_opened) {
  auto checked = check_file(path_);
  ASSERT_TRUE(checked) << checked.status().message();
  EXPECT_TRUE(checked->problems.empty()) << checked->problems.front();
  EXPECT_EQ(checked->free_chunks, kChunks);
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

TEST_F(RegionFileTest, chunks_that_a_file_was_about_to_get_are_free_or_have_no_word) {
  write_chunk(kChunks, {});
  write_chunk(kChunks + 2, {});
  EXPECT_TRUE(try_open());
  const uint64_t word = 77;
  write(header_.chunks_offset + (kChunks + 1) * sizeof word, &word, sizeof word);
  expect_damaged("chunk 5 behind its end is none that was ever written");
}

TEST_F(RegionFileTest, a_file_of_the_format_before_is_refused_with_both_versions) {
  Header header = header_;
  header.version = 1;
  write_header(header);
  expect_damaged("its format is version 1, and this is 2");
}

TEST_F(RegionFileTest, a_state_of_zeros_or_ones_or_with_flipped_bits_is_none) {
  uint64_t others = 0;
  for (uint64_t chunk = 0; chunk < 100; ++chunk) {
    const StateBytes states(header_, chunk), next(header_, chunk + 1);
    for (uint64_t object = 0; object < objects_of(0); ++object) {
      ASSERT_FALSE(states.is_one(object, std::byte{0}) || states.is_one(object, std::byte{0xFF}));
      // Of all 256 two are states, all of whose bits differ.
      int count = 0;
      for (unsigned byte = 0; byte < 256; ++byte) count += states.is_one(object, std::byte(byte));
      ASSERT_EQ(count, 2);
      ASSERT_EQ(states.free(object) ^ states.allocated(object), std::byte{0xFF});
      others += states.is_one(object, next.free(object));
    }
  }
  EXPECT_LT(others, 100 * objects_of(0) / 32) << "one in 64 is to be expected";
}

TEST_F(RegionFileTest, every_bit_of_a_header_is_checked) {
  for (size_t bit = 0; bit < 8 * sizeof(Header); ++bit) {
    Header header = header_;
    reinterpret_cast<std::byte*>(&header)[bit / 8] ^= std::byte{static_cast<uint8_t>(1 << bit % 8)};
    write(0, &header, sizeof header);
    ASSERT_EQ(try_open().error(), EILSEQ) << bit;
    ASSERT_EQ(check_file(path_).status().error(), EILSEQ) << bit;
  }
  write(0, &header_, sizeof header_);
  EXPECT_TRUE(try_open());
}

TEST_F(RegionFileTest, every_bit_of_what_changes_in_a_header_is_checked) {
  for (unsigned bit = 0; bit < 64; ++bit) {
    Header header = header_;
    header.epoch ^= uint64_t{1} << bit;
    write_header(header);
    expect_damaged("its header is damaged");
  }
  Header header = header_;
  header.epoch = 0;
  write_header(header);
  expect_damaged("its header is damaged");
}

TEST_F(RegionFileTest, every_bit_of_words_of_chunks_is_checked) {
  write_chunk(0, {ChunkKind::kLarge, 0, 2});
  write_chunk(1, {ChunkKind::kRest, 0, 0});
  write_chunk(2, {ChunkKind::kObjects, 3, 1});
  write_states(0, 1);
  write_states(2, objects_of(3));
  EXPECT_TRUE(check_file(path_)->problems.empty());
  uint64_t words[kChunks];
  const platform::File file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_EQ(::pread(file.fd(), words, sizeof words, static_cast<off_t>(header_.chunks_offset)),
            static_cast<ssize_t>(sizeof words));
  const auto expect_found = [&](uint64_t chunk, uint64_t word) {
    write(header_.chunks_offset + chunk * sizeof word, &word, sizeof word);
    expect_damaged("a word of a chunk that is damaged");
    expect_damaged("chunk " + std::to_string(chunk));
    write(header_.chunks_offset + chunk * sizeof word, &words[chunk], sizeof word);
  };
  for (uint64_t chunk = 0; chunk < kChunks; ++chunk) {
    // Chunk 1 is of a large object that is free: nobody's, as long as its word is whole or belongs to another.
    for (unsigned bit = 0; bit < 64; ++bit) expect_found(chunk, words[chunk] ^ uint64_t{1} << bit);
    expect_found(chunk, 0);
    expect_found(chunk, words[(chunk + 1) % kChunks]);
  }
}

TEST_F(RegionFileTest, words_of_chunks_that_no_version_writes_are_damage_and_not_free_space) {
  const struct {
    ChunkWord word;
    const char* words;
  } damages[] = {
      {{static_cast<ChunkKind>(9), 0, 1}, "a kind of chunk that does not exist"},
      {{ChunkKind::kObjects, 200, 1}, "a size class that does not exist"},
      {{ChunkKind::kObjects, 1, 2}, "a run of chunks of a kind that has none"},
      {{ChunkKind::kFree, 0, 1}, "a run of chunks of a kind that has none"},
      {{ChunkKind::kLarge, 0, 0}, "past the end of the file"},
      {{ChunkKind::kLarge, 0, INT32_MAX}, "past the end of the file"},
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
  write_states(2, objects_of(1));
  const StateBytes states(header_, 0);
  const auto write_state = [this](std::byte state) { write(header_.heap_offset, &state, 1); };
  write_state(states.free(0));
  EXPECT_TRUE(try_open()) << "it is what is left of one that is gone";
  write_state(states.allocated(0));
  expect_damaged("has chunks of others in it");
  write_state(states.allocated(0) ^ std::byte{4});
  expect_damaged("the state of a large object is neither free nor allocated");
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
  expect_damaged("root 1 is damaged");
  Root root{"restored", header_.base + header_.heap_offset, 0};
  root.checksum = checksum_of(root, header_, 1);
  record.bytes = sizeof root;
  write_record(record, &root);
  auto checked = check_file(path_);
  ASSERT_TRUE(checked && checked->problems.empty());
  EXPECT_EQ(checked->roots, std::vector<std::string>{"restored"}) << "as it will be";
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

TEST_F(RegionFileTest, a_roots_name_without_an_end_is_damage_whatever_its_checksum) {
  Root root{};
  std::memset(root.name, 'x', sizeof root.name);
  root.checksum = checksum_of(root, header_, 1);
  write(header_.roots_offset + sizeof root, &root, sizeof root);
  expect_damaged("root 1 has a name without an end");
}

TEST_F(RegionFileTest, what_a_new_region_writes_at_first_may_be_zeros_until_it_was_opened) {
  ASSERT_TRUE(try_open());
  const uint64_t zero = 0;
  write(header_.slots_offset, &zero, sizeof zero);
  expect_damaged("the word of slot 0");
  const uint64_t whole = checked_word(0, slot_place(header_, 0));
  write(header_.slots_offset, &whole, sizeof whole);
  ASSERT_TRUE(try_open());
  const Root none{};
  write(header_.roots_offset + 3 * sizeof none, &none, sizeof none);
  expect_damaged("root 3 is damaged");
}

}  // namespace
}  // namespace spw::durable
