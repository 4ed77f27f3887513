#include "platform/cache_lines.h"

#include <cpuid.h>
#include <immintrin.h>

namespace spw::platform {

namespace {

constexpr unsigned kFeatures = 7;  // cpuid's leaf of structured extended features
constexpr unsigned kClflushopt = 1u << 23, kClwb = 1u << 24;

__attribute__((target("clwb"))) void write_with_clwb(const void* line) { _mm_clwb(const_cast<void*>(line)); }
__attribute__((target("clflushopt"))) void write_with_clflushopt(const void* line) {
  _mm_clflushopt(const_cast<void*>(line));
}
void write_with_clflush(const void* line) { _mm_clflush(line); }

unsigned features() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid_count(kFeatures, 0, &eax, &ebx, &ecx, &edx) ? ebx : 0;
}

}  // namespace

LineWriteBack line_write_back(LineInstruction wanted) {
  static const unsigned has = features();
  if (wanted <= LineInstruction::kClwb && (has & kClwb) != 0) return write_with_clwb;
  if (wanted <= LineInstruction::kClflushopt && (has & kClflushopt) != 0) return write_with_clflushopt;
  return write_with_clflush;
}

const char* line_write_back_name() {
  const LineWriteBack with = line_write_back();
  return with == write_with_clwb ? "clwb" : with == write_with_clflushopt ? "clflushopt" : "clflush";
}

void store_fence() { _mm_sfence(); }

}  // namespace spw::platform
