// Random writes of a block each, by some threads, to buffered files that may be striped (spw_open(3), which fio cannot
// name). Run by `spillway run`, which gives it its memory.
//
//   file_writes FILE[+FILE...] BYTES THREADS RAMP_SECONDS SECONDS
//       prints JSON: writes a second after the ramp, of all threads, and how long it takes then to sync all files
//
// Thread i writes to file i modulo their number. The files are laid out in full by the same calls before the clock
// runs: a write to a hole costs the file system more than one to what is there. Threads: each has its own generator,
// and a counter that only it writes.
#include <fcntl.h>
#include <spillway/spillway.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

constexpr uint64_t kBlockBytes = 4096, kLayoutBytes = uint64_t{1} << 20;

struct alignas(64) Writer {
  std::atomic<uint64_t> writes{0};
  std::thread thread;
};

[[noreturn]] void fail(const char* what, int64_t error) {
  std::fprintf(stderr, "file_writes: %s: %s\n", what, std::strerror(static_cast<int>(-error)));
  std::exit(1);
}

void lay_out(int file, uint64_t bytes) {
  std::vector<char> data(kLayoutBytes, 1);
  for (uint64_t at = 0; at < bytes; at += kLayoutBytes)
    if (const int64_t done = spw_pwrite(file, data.data(), kLayoutBytes, static_cast<int64_t>(at));
        done != static_cast<int64_t>(kLayoutBytes))
      fail("laying the file out", done < 0 ? done : -ENOSPC);
  if (const int error = spw_fsync(file); error != 0) fail("fsync", error);
}

void write_until(const std::atomic<bool>& is_over, int file, uint64_t blocks, unsigned seed,
                 std::atomic<uint64_t>& writes) {
  std::mt19937_64 random(seed);
  std::vector<uint64_t> data(kBlockBytes / sizeof(uint64_t));
  while (!is_over.load(std::memory_order_relaxed)) {
    data[0] = random();
    const int64_t done =
        spw_pwrite(file, data.data(), kBlockBytes, static_cast<int64_t>(random() % blocks * kBlockBytes));
    if (done != static_cast<int64_t>(kBlockBytes)) fail("write", done < 0 ? done : -ENOSPC);
    writes.store(writes.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
}

uint64_t total(const std::vector<Writer>& writers) {
  uint64_t sum = 0;
  for (const Writer& writer : writers) sum += writer.writes.load(std::memory_order_relaxed);
  return sum;
}

std::vector<int> open_all(std::string_view names, uint64_t bytes) {
  std::vector<int> files;
  while (!names.empty()) {
    const size_t end = std::min(names.find('+'), names.size());
    files.push_back(spw_open(std::string(names.substr(0, end)).c_str(), O_RDWR | O_CREAT, 0600));
    if (files.back() < 0) fail(std::string(names.substr(0, end)).c_str(), files.back());
    names.remove_prefix(std::min(end + 1, names.size()));
  }
  for (const int file : files) lay_out(file, bytes / files.size());
  return files;
}

// All at once, as they lie on devices that may work at the same time.
double seconds_to_sync(const std::vector<int>& files) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<std::thread> threads;
  for (const int file : files)
    threads.emplace_back([file] {
      if (const int error = spw_fsync(file); error != 0) fail("fsync", error);
    });
  for (std::thread& thread : threads) thread.join();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

int main(int argc, char** argv) {
  const uint64_t bytes = argc == 6 ? std::strtoull(argv[2], nullptr, 10) : 0;
  const auto threads = argc == 6 ? std::strtoul(argv[3], nullptr, 10) : 0;
  if (bytes == 0 || threads == 0 || bytes % kLayoutBytes != 0) {
    std::fprintf(stderr,
                 "usage: %s FILE[+FILE...] BYTES THREADS RAMP_SECONDS SECONDS\n  BYTES: in all, whole MiB "
                 "for each file\n",
                 argv[0]);
    return 2;
  }
  const std::vector<int> files = open_all(argv[1], bytes);
  const uint64_t blocks = bytes / files.size() / kBlockBytes;
  std::atomic<bool> is_over{false};
  std::vector<Writer> writers(threads);
  for (unsigned i = 0; i < threads; ++i)
    writers[i].thread = std::thread(
        [&, i] { write_until(is_over, files[i % files.size()], blocks, i + 1, writers[i].writes); });
  std::this_thread::sleep_for(std::chrono::duration<double>(std::strtod(argv[4], nullptr)));
  const auto start = std::chrono::steady_clock::now();
  const uint64_t before = total(writers);
  std::this_thread::sleep_for(std::chrono::duration<double>(std::strtod(argv[5], nullptr)));
  const uint64_t writes = total(writers) - before;
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  is_over.store(true);
  for (Writer& writer : writers) writer.thread.join();
  const double sync_s = seconds_to_sync(files);
  std::printf("{\"writes_per_s\": %.0f, \"sync_s\": %.3f}\n", static_cast<double>(writes) / took.count(),
              sync_s);
  return 0;
}
