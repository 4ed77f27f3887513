#include "durable/pmem.h"

#include "base/units.h"
#include "durable/layout.h"

namespace spw::durable {

namespace {

class PmemWriter final : public Persistence::Writer {
 public:
  explicit PmemWriter(platform::LineInstruction instruction)
      : write_line_back_(platform::line_write_back(instruction)) {}
  void write_back(const void* first, size_t bytes) override {
    const uintptr_t address = reinterpret_cast<uintptr_t>(first), end = address + bytes;
    for (uintptr_t line = round_down(address, kLineBytes); line < end; line += kLineBytes)
      write_line_back_(reinterpret_cast<void*>(line));
  }
  Status fence() override {
    platform::store_fence();
    return {};
  }

 private:
  void (*const write_line_back_)(const void*);
};

class Pmem final : public Persistence {
 public:
  explicit Pmem(platform::LineInstruction instruction) : instruction_(instruction) {}
  unsigned grain_shift() const override { return kLineShift; }
  bool stores_leak() const override { return true; }
  std::unique_ptr<Writer> open_writer() override { return std::make_unique<PmemWriter>(instruction_); }

 private:
  const platform::LineInstruction instruction_;
};

}  // namespace

std::unique_ptr<Persistence> make_pmem(platform::LineInstruction instruction) {
  return std::make_unique<Pmem>(instruction);
}

}  // namespace spw::durable
