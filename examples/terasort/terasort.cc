// terasort: sorts 100-byte records in memory.
//
//   terasort --records N [--seed S] | --input FILE
//            [--mode one-call|shuffle] [--output FILE] [--threads T] [--progress on|off]
//
// Makes the records in memory or reads them, sorts, checks order and checksum in place, writes them if asked
// to, and prints the times of the phases as JSON. Exit status 1: the result is wrong.

#include <omp.h>
#include <sys/stat.h>

#include <cstdio>
#include <memory>
#include <string>

#include "common/options.h"
#include "common/progress.h"
#include "common/report.h"
#include "terasort/record.h"
#include "terasort/sorts.h"

namespace {

using examples::Progress;
using examples::Record;

constexpr uint64_t kPieceRecords = 10000;

struct Check {
  uint64_t checksum = 0;
  uint64_t unordered = 0;  // neighbours in the wrong order
};

uint64_t pieces_of(uint64_t count) { return (count + kPieceRecords - 1) / kPieceRecords; }

uint64_t generate(Record* records, uint64_t count, uint64_t seed, bool progress_on) {
  Progress progress("generate", count, progress_on);
  uint64_t checksum = 0;
#pragma omp parallel for schedule(static) reduction(+ : checksum)
  for (uint64_t piece = 0; piece < pieces_of(count); ++piece) {
    const uint64_t end = std::min(count, (piece + 1) * kPieceRecords);
    for (uint64_t i = piece * kPieceRecords; i < end; ++i) {
      Record record;
      examples::make_record(seed, i, &record);
      checksum += examples::record_hash(record);
      records[i] = record;
    }
    progress.done(kPieceRecords);
  }
  return checksum;
}

Check check(const Record* records, uint64_t count, const char* phase, bool progress_on) {
  Progress progress(phase, count, progress_on);
  uint64_t checksum = 0;
  uint64_t unordered = 0;
#pragma omp parallel for schedule(static) reduction(+ : checksum, unordered)
  for (uint64_t piece = 0; piece < pieces_of(count); ++piece) {
    const uint64_t end = std::min(count, (piece + 1) * kPieceRecords);
    for (uint64_t i = piece * kPieceRecords; i < end; ++i) {
      checksum += examples::record_hash(records[i]);
      if (i > 0 && examples::KeyLess()(records[i], records[i - 1])) ++unordered;
    }
    progress.done(kPieceRecords);
  }
  return {checksum, unordered};
}

uint64_t records_in_file(const std::string& path) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0) examples::fail("cannot read " + path);
  if (status.st_size % static_cast<off_t>(sizeof(Record)) != 0)
    examples::fail(path + " holds no whole records");
  return static_cast<uint64_t>(status.st_size) / sizeof(Record);
}

// Moves all records between the file and memory, piece by piece. `transfer` is fread or fwrite of one piece.
template <class Transfer>
void stream(const std::string& path, const char* open_mode, uint64_t count, bool progress_on,
            Transfer transfer) {
  std::FILE* file = std::fopen(path.c_str(), open_mode);
  if (file == nullptr) examples::fail("cannot open " + path);
  Progress progress(*open_mode == 'r' ? "read" : "write", count, progress_on);
  for (uint64_t first = 0; first < count; first += kPieceRecords) {
    const uint64_t size = std::min(kPieceRecords, count - first);
    if (transfer(first, size, file) != size) examples::fail("input or output error on " + path);
    progress.done(size);
  }
  if (std::fclose(file) != 0) examples::fail("input or output error on " + path);
}

}  // namespace

int main(int argc, char** argv) {
  examples::Options options(argc, argv);
  const std::string input = options.text("input", "");
  const std::string output = options.text("output", "");
  const std::string mode = options.text("mode", "one-call");
  const uint64_t seed = options.number("seed", 1);
  const uint64_t count = input.empty() ? options.number("records", 1000000) : records_in_file(input);
  const bool progress_on = options.text("progress", "on") == "on";
  omp_set_num_threads(
      static_cast<int>(options.number("threads", static_cast<uint64_t>(omp_get_max_threads()))));
  options.finish();
  if (mode != "one-call" && mode != "shuffle") examples::fail("--mode is one-call or shuffle");

  const double processor_start_s = examples::processor_s();
  double sort_processor_s = 0;
  std::unique_ptr<Record[]> records(new Record[count]);
  uint64_t expected = 0;
  Check result;
  examples::Json seconds;
  seconds.add(input.empty() ? "generate" : "read", examples::timed([&] {
                if (input.empty()) {
                  expected = generate(records.get(), count, seed, progress_on);
                  return;
                }
                stream(input, "rb", count, progress_on, [&](uint64_t first, uint64_t size, std::FILE* file) {
                  return std::fread(records.get() + first, sizeof(Record), size, file);
                });
                expected = check(records.get(), count, "checksum", progress_on).checksum;
              }));
  seconds.add("sort", examples::timed([&] {
                const double before_s = examples::processor_s();
                Progress progress("sort", 0, progress_on && mode == "one-call");
                if (mode == "one-call") {
                  examples::sort_one_call(records.get(), count);
                } else {
                  records = examples::sort_shuffle(std::move(records), count, progress_on);
                }
                sort_processor_s = examples::processor_s() - before_s;
              }));
  seconds.add("validate",
              examples::timed([&] { result = check(records.get(), count, "validate", progress_on); }));
  if (!output.empty()) {
    seconds.add("write", examples::timed([&] {
                  stream(output, "wb", count, progress_on,
                         [&](uint64_t first, uint64_t size, std::FILE* file) {
                           return std::fwrite(records.get() + first, sizeof(Record), size, file);
                         });
                }));
  }

  const bool ok = result.unordered == 0 && result.checksum == expected;
  examples::Json()
      .add("name", "terasort")
      .add("mode", mode)
      .add("records", count)
      .add("threads", omp_get_max_threads())
      .add("seconds", seconds)
      .add("processor", examples::Json().add("sort", sort_processor_s))
      .add("processor_s", examples::processor_s() - processor_start_s)
      .add_hex("checksum", result.checksum)
      .add("unordered", result.unordered)
      .add("ok", ok)
      .print();
  return ok ? 0 : 1;
}
