// Counts what a piece of code does, instruction by instruction: the processor's trap flag stops it after each, and the
// one that comes next is looked at. Exact, of the code as it was compiled, without an instrumented build.
//
// Counted: instructions, system calls by number, and atomic operations on memory by cache line (those with a lock
// prefix, and exchanges with memory, which lock without one).
// Threads: each counts itself. x86-64. Signals of others may come between; what their handlers do is counted, too.
#pragma once

#include <signal.h>
#include <ucontext.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <vector>

namespace spw {

class CountedSteps {
 public:
  CountedSteps() {
    struct sigaction action{};
    action.sa_sigaction = &on_step;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGTRAP, &action, &before_);
    atomics_.reserve(1 << 16);  // the handler must not allocate
    calls_.reserve(1 << 12);
  }
  ~CountedSteps() { sigaction(SIGTRAP, &before_, nullptr); }
  CountedSteps(const CountedSteps&) = delete;
  CountedSteps& operator=(const CountedSteps&) = delete;

  template <class Code>
  void count(Code code) {
    t_counts = this;
    asm volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "memory", "cc");
    code();
    asm volatile("pushfq; andq $~0x100, (%%rsp); popfq" ::: "memory", "cc");
    t_counts = nullptr;
  }

  uint64_t instructions() const { return instructions_; }
  const std::vector<long>& system_calls() const { return calls_; }
  uint64_t atomics() const { return atomics_.size(); }
  // How many there were on each line.
  std::map<uintptr_t, uint64_t> atomics_by_line() const {
    std::map<uintptr_t, uint64_t> lines;
    for (const uintptr_t address : atomics_) ++lines[address / 64];
    return lines;
  }

 private:
  static void on_step(int, siginfo_t*, void* context) {
    if (t_counts) t_counts->look(static_cast<ucontext_t*>(context)->uc_mcontext.gregs);
  }

  void look(const greg_t* registers) {
    const auto* code = reinterpret_cast<const uint8_t*>(registers[REG_RIP]);
    instructions_ += code != last_;  // a copy by `rep movsb` is one, and is stopped after each byte
    last_ = code;
    if (code[0] == 0x0F && code[1] == 0x05) calls_.push_back(registers[REG_RAX]);
    bool is_locked = false;
    uint8_t rex = 0;
    for (;; ++code) {
      if (*code == 0xF0)
        is_locked = true;
      else if ((*code & 0xF0) == 0x40)
        rex = *code;
      else if (*code != 0x66 && *code != 0xF2 && *code != 0xF3 && *code != 0x64 && *code != 0x2E &&
               *code != 0x3E)
        break;
    }
    const bool is_exchange = (*code == 0x86 || *code == 0x87) && code[1] >> 6 != 3;
    if (!is_locked && !is_exchange) return;
    code += *code == 0x0F ? 2 : 1;
    atomics_.push_back(operand_of(code, rex, registers));
  }

  // The memory operand that the ModRM byte at `code` begins.
  static uintptr_t operand_of(const uint8_t* code, uint8_t rex, const greg_t* registers) {
    static constexpr int kRegisters[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                                         REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                         REG_R12, REG_R13, REG_R14, REG_R15};
    const auto value = [&](unsigned number, bool is_high) {
      return static_cast<uintptr_t>(registers[kRegisters[number + (is_high ? 8 : 0)]]);
    };
    const unsigned mode = *code >> 6, base = *code & 7;
    ++code;
    uintptr_t address = 0;
    bool has_displacement = mode == 2;
    if (base == 4) {
      const unsigned scale = *code >> 6, index = (*code >> 3) & 7, inner = *code & 7;
      ++code;
      if (index != 4 || (rex & 2) != 0) address += value(index, (rex & 2) != 0) << scale;
      if (inner == 5 && mode == 0)
        has_displacement = true;
      else
        address += value(inner, (rex & 1) != 0);
    } else if (base == 5 && mode == 0) {
      address =
          reinterpret_cast<uintptr_t>(code) + 4;  // relative to the next instruction, or some bytes before it
      has_displacement = true;
    } else {
      address = value(base, (rex & 1) != 0);
    }
    if (mode == 1) return address + static_cast<uintptr_t>(static_cast<int8_t>(*code));
    if (!has_displacement) return address;
    int32_t displacement;
    std::memcpy(&displacement, code, sizeof displacement);
    return address + static_cast<uintptr_t>(static_cast<intptr_t>(displacement));
  }

  static inline thread_local CountedSteps* t_counts = nullptr;
  struct sigaction before_{};
  const uint8_t* last_ = nullptr;
  uint64_t instructions_ = 0;
  std::vector<long> calls_;
  std::vector<uintptr_t> atomics_;
};

}  // namespace spw
