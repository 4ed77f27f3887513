// Directories of sparse stores: what stands in their description, and segments of any size and kind.
//
// The input's first line says which segments there are, the rest is the description: "0=65536 3=0 5>fifo\n...".
#include <sys/stat.h>

#include <cinttypes>
#include <sstream>

#include "input.h"
#include "memory_file.h"
#include "store/sparse/segments.h"

namespace {

using namespace spw;

constexpr uint64_t kFileBytesMax = 16 * kMiB;

void make_segment(const std::string& directory, const std::string& what) {
  uint64_t number = 0, bytes = 0;
  char kind = 0;
  if (std::sscanf(what.c_str(), "%" SCNu64 "%c%" SCNu64, &number, &kind, &bytes) < 2) return;
  char name[32];
  std::snprintf(name, sizeof name, "/segment-%06" PRIu64, number % 1'000'000);
  const std::string path = directory + name;
  if (kind == '>') {
    (void)::mkfifo(path.c_str(), 0600);
  } else if (kind == '/') {
    (void)::mkdir(path.c_str(), 0700);
  } else {
    const platform::File file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (file.is_open()) (void)platform::set_file_size(file, bytes % kFileBytesMax);
  }
}

void use(const std::string& path, store::Access access) {
  auto directory = store::SegmentDirectory::open(path, access, {});
  if (!directory) return;
  const store::Shape shape = directory->shape();
  SPW_CHECK(shape.segment_count() > 0 && shape.segment_count() <= store::kSegmentCountMax);
  SPW_CHECK((shape.segment_count() - 1) * shape.segment_bytes < shape.size_bytes);
  store::Segments segments(std::move(*directory), platform::Direct::kNo);
  for (const uint64_t index : {uint64_t{0}, shape.segment_count() / 2, shape.segment_count() - 1}) {
    const auto missing =
        access == store::Access::kOpen ? store::Segments::Missing::kCreate : store::Segments::Missing::kLeave;
    auto fd = segments.use(index, missing);
    if (fd && *fd >= 0) segments.release(index, false);
    (void)segments.discard(index, 0, kMmuPageBytes);
  }
  (void)segments.sync();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  static const fuzz::Directory scratch;
  const std::string path = scratch.path() + "/store";
  std::filesystem::remove_all(path);
  SPW_CHECK(::mkdir(path.c_str(), 0700) == 0);
  fuzz::Input input(data, bytes);
  std::istringstream segments(input.line());
  std::string what;
  for (int i = 0; i < 8 && segments >> what; ++i) make_segment(path, what);
  const std::string_view text = input.rest();
  const std::string description = path + "/spillway-sparse";
  if (text == "fifo") {
    (void)::mkfifo(description.c_str(), 0600);
  } else {
    const platform::File file(::open(description.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    SPW_CHECK(::pwrite(file.fd(), text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()));
  }
  (void)store::SegmentDirectory::shape_of(path);
  use(path, store::Access::kRead);
  use(path, store::Access::kOpen);
  return 0;
}
