// Random reads of one block by one thread through spw_batch, with
// many in flight. Run by `spillway run`, which gives it its memory.
//
//   batch_bench FILE SECONDS IN_FLIGHT        prints JSON: reads a second
//
// What finds its block in memory is no read of the file, so the file has to be many times the memory.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <spillway/spillway.hpp>
#include <vector>

namespace {

constexpr std::size_t kBlockBytes = 4096;

struct Reader {
  std::vector<std::byte> buffer = std::vector<std::byte>(kBlockBytes);
  spw_request request{};
  bool is_done = true;
};

double read_for(double seconds, spillway::region& file, std::size_t blocks, unsigned in_flight) {
  spillway::batch batch(in_flight);
  std::mt19937_64 random(1);
  std::vector<Reader> readers(in_flight);
  std::size_t done = 0;
  const auto start = std::chrono::steady_clock::now();
  std::chrono::duration<double> took{};
  while (took.count() < seconds) {
    for (Reader& reader : readers) {
      if (!reader.is_done) continue;
      reader.is_done = false;
      reader.request = {static_cast<std::byte*>(file.data()) + random() % blocks * kBlockBytes,
                        reader.buffer.data(),
                        kBlockBytes,
                        SPW_READ,
                        [](spw_request* request) { static_cast<Reader*>(request->context)->is_done = true; },
                        &reader};
      batch.submit(&reader.request, 1);
    }
    done += batch.wait(1);
    took = std::chrono::steady_clock::now() - start;
  }
  batch.wait();
  return static_cast<double>(done) / took.count();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: %s FILE SECONDS IN_FLIGHT\n", argv[0]);
    return 2;
  }
  spillway::region file(std::string("file:") + argv[1], SPW_MAP_READ_ONLY);
  const std::size_t blocks = std::filesystem::file_size(argv[1]) / kBlockBytes;
  const double seconds = std::strtod(argv[2], nullptr);
  const auto in_flight = static_cast<unsigned>(std::strtoul(argv[3], nullptr, 10));
  read_for(seconds, file, blocks, in_flight);  // fills the memory
  std::printf("{\"reads_per_s\": %.0f}\n", read_for(seconds, file, blocks, in_flight));
}
