// teragen: writes records in the sort benchmark's format.
//
//   teragen --records N [--seed S] [--output FILE] [--progress on|off]
//
// Prints JSON with the checksum that `teravalidate` expects. Without --output it only computes that.

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "common/options.h"
#include "common/progress.h"
#include "common/report.h"
#include "terasort/record.h"

int main(int argc, char** argv) {
  examples::Options options(argc, argv);
  const uint64_t count = options.number("records", 1000000);
  const uint64_t seed = options.number("seed", 1);
  const std::string path = options.text("output", "");
  const bool progress_on = options.text("progress", "on") == "on";
  options.finish();

  constexpr uint64_t kPieceRecords = 100000;
  std::FILE* file = path.empty() ? nullptr : std::fopen(path.c_str(), "wb");
  if (!path.empty() && file == nullptr) examples::fail("cannot write " + path);
  std::vector<examples::Record> piece(std::min(count, kPieceRecords));
  uint64_t checksum = 0;
  {
    examples::Progress progress("teragen", count, progress_on);
    for (uint64_t first = 0; first < count; first += piece.size()) {
      const uint64_t size = std::min<uint64_t>(piece.size(), count - first);
#pragma omp parallel for schedule(static) reduction(+ : checksum)
      for (uint64_t i = 0; i < size; ++i) {
        examples::make_record(seed, first + i, &piece[i]);
        checksum += examples::record_hash(piece[i]);
      }
      if (file != nullptr && std::fwrite(piece.data(), sizeof piece[0], size, file) != size) {
        examples::fail("cannot write " + path);
      }
      progress.done(size);
    }
  }
  if (file != nullptr && std::fclose(file) != 0) examples::fail("cannot write " + path);
  examples::Json()
      .add("name", "teragen")
      .add("records", count)
      .add("seed", seed)
      .add_hex("checksum", checksum)
      .print();
  return 0;
}
