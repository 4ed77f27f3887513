// Reports of --stats=FILE: what `spillway stats` makes of them.
#include "report_file.h"

#include <algorithm>

#include "base/check.h"
#include "input.h"
#include "memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  using namespace spw;
  static const fuzz::MemoryFile file;
  file.set({reinterpret_cast<const char*>(data), bytes});
  auto report = tool::read_report(file.path());
  if (!report) return 0;
  const std::string text = telemetry::report_text(report->facts, report->totals);
  SPW_CHECK(std::none_of(text.begin(), text.end(), [](char letter) {
    const auto byte = static_cast<unsigned char>(letter);
    return (byte < 0x20 && byte != '\n') || byte == 0x7f;
  }));
  (void)telemetry::report_json(report->facts, report->totals);
  return 0;
}
