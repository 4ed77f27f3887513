#include "guarded.h"

#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "operations.h"

namespace torture {

thread_local Catch caught;

namespace {

void on_fault(int signal, siginfo_t* info, void*) {
  if (!caught.armed) {
    char text[160];
    const int length =
        std::snprintf(text, sizeof text, "mmtorture: signal %d, code %d, at %p, where none may come\n",
                      signal, info->si_code, info->si_addr);
    if (write(2, text, static_cast<size_t>(length)) < 0) _exit(97);
    _exit(99);
  }
  caught.armed = 0;
  caught.signal = signal;
  caught.code = info->si_code;
  caught.address = static_cast<char*>(info->si_addr);
  siglongjmp(caught.back, 1);
}

}  // namespace

void catch_faults() {
  struct sigaction action;
  std::memset(&action, 0, sizeof action);
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  sigaction(SIGSEGV, &action, nullptr);
  sigaction(SIGBUS, &action, nullptr);
}

void log_caught(Log& log, const Slot& slot) {
  static const bool compares_codes = allowed("code_in_managed"),
                    compares_ends = allowed("end_of_managed_file");
  if (slot.may_be_managed() && !compares_codes) caught.code = 0;
  if (slot.may_be_managed_file() && slot.kind != Kind::kHeap && !compares_ends) caught.signal = SIGSEGV;
  log_caught(log, slot.base);
}

void log_caught(Log& log, const char* base) {
  log.word(caught.signal == SIGSEGV ? "SIGSEGV" : "SIGBUS");
  log.out("code", caught.code);
  log.out("at", caught.address - base);
}

}  // namespace torture
