// Files of persistent regions: what `spillway check` says of them, and opening, using and closing one.
//
// Of an input each byte of which stands for itself a checksum would be wrong nearly always. So an input is a list of
// changes to a whole file: words of the header, chunks, slots, roots, states of objects and records of logs are put
// there with checksums that hold, since whoever makes a hostile file can work them out. A raw change leaves what it
// likes.
//
// What must hold: nothing crashes; a file without a problem can be opened, and has none after it was used (unless a
// section had to be undone, which puts back what a log says).
#include <algorithm>
#include <array>
#include <vector>

#include "durable/check.h"
#include "durable/regions.h"
#include "durable/undo_log.h"
#include "input.h"
#include "memory_file.h"

namespace spw::fuzz {
namespace {

using namespace durable;

constexpr uint64_t kBase = uint64_t{18} << 40, kCapacity = 512 * kKiB;
constexpr uint32_t kSlots = 2;
constexpr uint64_t kObjectsEach[] = {24, 700, 9000, 100'000};

using Image = std::vector<std::byte>;

Image read_all(const std::string& path) {
  Image image(std::filesystem::file_size(path));
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  SPW_CHECK(fd >= 0 && ::pread(fd, image.data(), image.size(), 0) == static_cast<ssize_t>(image.size()));
  ::close(fd);
  return image;
}

// As programs leave them: closed, and as a crash in a section leaves it.
std::array<Image, 2> make_images() {
  const Directory directory;
  const std::string path = directory.path() + "/region";
  PersistentRegion::Options options;
  options.file.domain = DomainKind::kBlock;
  options.file.layout = {kBase, kCapacity, kSlots, 4 * kKiB};
  auto region = PersistentRegion::open(path, options);
  SPW_CHECK(region.is_ok());
  Regions regions;
  Thread thread;
  SPW_CHECK(regions.add(std::move(*region)).is_ok());
  for (const uint64_t bytes : kObjectsEach) {
    auto made = regions.allocate(thread, 0, bytes);
    SPW_CHECK(made.is_ok());
    SPW_CHECK(regions.set_root(thread, 0, "root" + std::to_string(bytes), *made).is_ok());
  }
  SPW_CHECK(regions.sync(thread).is_ok());
  const Image closed = read_all(path);
  regions.begin(thread);
  const uintptr_t at = regions.region(0)->roots().get("root9000");
  SPW_CHECK(regions.before_store(thread, at, 6000).is_ok());
  std::memset(reinterpret_cast<void*>(at), 7, 6000);
  SPW_CHECK(regions.region(0)->sections().persist().is_ok());
  Image crashed = read_all(path);
  SPW_CHECK(regions.end(thread).is_ok() && regions.ended(thread).is_ok());
  SPW_CHECK(regions.remove(thread, 0).is_ok());
  return {closed, crashed};
}

class Changes {
 public:
  Changes(Image& image, Input& input) : image_(image), input_(input) { log_at_ = header().logs_offset; }

  void make() {
    while (!input_.is_over()) make_one();
    if (header_is_whole_) header().checksum = checksum_of(header());
  }

 private:
  Header& header() { return *reinterpret_cast<Header*>(image_.data()); }
  // Where it still is in the image, whatever the header says by now.
  static constexpr uint64_t kRoots = 4096, kSlotWords = 20480, kChunks = 32768, kHeap = 65536;

  void put(uint64_t at, const void* data, size_t bytes) {
    if (at >= image_.size()) return;
    std::memcpy(image_.data() + at, data, std::min<uint64_t>(bytes, image_.size() - at));
  }

  void make_one() {
    switch (input_.number<uint8_t>() % 9) {
      case 0: {
        const uint64_t at = input_.number<uint8_t>() % (sizeof(Header) / 8) * 8;
        auto value = input_.number<uint64_t>();
        // Epochs only rise: of an earlier one, records of later ones would be no records before the region is opened,
        // and some behind the end of its log afterwards.
        if (at == offsetof(Header, epoch))
          value =
              checked_word(std::max(payload_of(value), payload_of(header().epoch)), epoch_place(header()));
        return put(at, &value, sizeof value);
      }
      case 1: {
        const auto chunk = input_.number<uint8_t>();
        const uint64_t value = checked_word(input_.number<uint64_t>(), chunk_place(header(), chunk));
        return put(kChunks + uint64_t{chunk} * 8, &value, sizeof value);
      }
      case 2: {
        const auto slot = input_.number<uint8_t>();
        const uint64_t value = checked_word(input_.number<uint16_t>(), slot_place(header(), slot));
        return put(kSlotWords + uint64_t{slot} * sizeof(SlotWord), &value, sizeof value);
      }
      case 3:
        return put_root();
      case 4:
        return put_record();
      case 5:
        log_at_ = input_.number<uint32_t>();
        return;
      case 6: {
        const uint64_t at = input_.number<uint32_t>();
        const std::string_view data = input_.text(input_.number<uint8_t>());
        return put(at, data.data(), data.size());
      }
      case 7:
        return put_states();
      default:
        image_.resize(std::max<uint64_t>(input_.number<uint32_t>() % (2 * kCapacity), sizeof(Header)));
        header_is_whole_ = input_.number<uint8_t>() % 8 != 7;
    }
  }

  void put_root() {
    Root root{};
    const auto number = input_.number<uint8_t>();
    const std::string_view name = input_.text(input_.number<uint8_t>() % (sizeof root.name + 1));
    std::memcpy(root.name, name.data(), name.size());
    root.address = kBase + input_.number<uint64_t>();
    root.checksum = checksum_of(root, header(), number);
    put(kRoots + uint64_t{number} * sizeof root, &root, sizeof root);
  }

  // The first objects of a chunk: free, but for one.
  void put_states() {
    const auto chunk = input_.number<uint8_t>();
    const StateBytes states(header(), chunk);
    std::array<std::byte, 4096> bytes;
    for (uint64_t i = 0; i < bytes.size(); ++i) bytes[i] = states.free(i);
    const uint64_t allocated = input_.number<uint16_t>() % bytes.size();
    bytes[allocated] = states.allocated(allocated);
    put(kHeap + uint64_t{chunk} * kChunkBytes, bytes.data(), bytes.size());
  }

  void put_record() {
    alignas(8) std::byte bytes[sizeof(Record) + 256] = {};
    auto& record = *reinterpret_cast<Record*>(bytes);
    const uint32_t slot = input_.number<uint8_t>();
    record.kind = static_cast<RecordKind>(input_.number<uint8_t>());
    record.section = input_.number<uint16_t>();
    record.stamp = input_.number<uint8_t>();
    record.address = kBase + input_.number<uint64_t>();
    const std::string_view payload = input_.text(input_.number<uint8_t>());
    record.bytes = static_cast<uint32_t>(payload.size());
    std::memcpy(&record + 1, payload.data(), payload.size());
    record.checksum = checksum_of(record, log_seed(header(), slot));
    put(log_at_, &record, record_bytes(record.bytes));
    log_at_ += record_bytes(record.bytes);
  }

  Image& image_;
  Input& input_;
  uint64_t log_at_;
  bool header_is_whole_ = true;
};

// Only what is not zero takes memory.
void write_image(const MemoryFile& file, const Image& image) {
  file.resize(0);
  file.resize(image.size());
  static constexpr std::array<std::byte, kMmuPageBytes> kZeros{};
  for (size_t at = 0; at < image.size(); at += kZeros.size()) {
    const size_t bytes = std::min(kZeros.size(), image.size() - at);
    if (std::memcmp(image.data() + at, kZeros.data(), bytes) != 0)
      file.write({reinterpret_cast<const char*>(image.data()) + at, bytes}, at);
  }
}

// What a program does that finds its objects again and goes on.
void use(std::unique_ptr<PersistentRegion> opened) {
  Regions regions;
  Thread thread;
  SPW_CHECK(regions.add(std::move(opened)).is_ok());
  PersistentRegion& region = *regions.region(0);
  for (const uint64_t bytes : kObjectsEach) {
    const uint64_t at = region.roots().get("root" + std::to_string(bytes));
    if (region.objects().size_of(at) >= 8 && regions.before_store(thread, at, 8))
      std::memset(reinterpret_cast<void*>(at), 1, 8);
    if (bytes != 700) (void)regions.free(thread, at);
    if (auto made = regions.allocate(thread, 0, bytes))
      (void)regions.set_root(thread, 0, "root" + std::to_string(bytes), *made);
  }
  (void)regions.set_root(thread, 0, "another", 0);
  (void)regions.sync(thread);
  (void)regions.ended(thread);
  (void)regions.remove(thread, 0);
}

void check_and_open(const MemoryFile& file, DomainKind domain) {
  auto checked = check_file(file.path());
  const bool is_whole = checked && checked->problems.empty();
  PersistentRegion::Options options;
  options.file.domain = domain;
  options.file.may_create = false;
  auto opened = PersistentRegion::open(file.path(), options);
  if (!opened) {
    // Two things it can meet that say nothing of the file: its address is taken, or is none here.
    const int error = opened.status().error();
    SPW_CHECK(!is_whole || error == EEXIST || error == ENOMEM || error == EINVAL || error == EPERM);
    return;
  }
  SPW_CHECK(checked.is_ok());
  use(std::move(*opened));
  if (!is_whole || checked->sections_to_undo != 0) return;
  auto after = check_file(file.path());
  SPW_CHECK(after.is_ok() && after->problems.empty());
}

}  // namespace
}  // namespace spw::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  using namespace spw::fuzz;
  static const auto images = make_images();
  static const MemoryFile file;
  Input input(data, bytes);
  const auto flags = input.number<uint8_t>();
  static Image image;  // one for all: its memory is most of the work
  image = images[flags & 1];
  Changes(image, input).make();
  write_image(file, image);
  check_and_open(file, (flags & 2) != 0 ? spw::durable::DomainKind::kBlock : spw::durable::DomainKind::kPmem);
  return 0;
}
