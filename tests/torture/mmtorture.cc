// A random sequence of memory calls and accesses: `mmtorture --seed S --operations N`. What a seed does is the same
// natively and under Spillway, so what it prints has to be: now and then a hash of all that calls returned and loads
// read.
#include <fcntl.h>
#include <linux/capability.h>
#include <malloc.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "guarded.h"
#include "log.h"
#include "operations.h"

namespace {

using namespace torture;

struct Options {
  uint64_t seed = 1;
  uint64_t first = 0, operations = 10000, every = 1000;
  uint64_t text_from = UINT64_MAX;
  const char* text = nullptr;
  const char* only = nullptr;  // a file with numbers of operations; others are left out
  const char* directory = ".";
};

// NUMBER:WHO:K,K,...
void parse_inner(const char* text) {
  char* end = nullptr;
  inner.number = std::strtoull(text, &end, 10);
  for (++end; *end != ':' && *end != 0; ++end)
    std::strncat(inner.who, end, std::strlen(inner.who) < 2 ? 1 : 0);
  while (*end != 0 && end[1] != 0 && inner.count < 64)
    inner.kept[inner.count++] = std::strtoull(end + 1, &end, 10);
}

Options parse(int count, char** words) {
  Options options;
  for (int at = 1; at + 1 < count; at += 2) {
    const char *name = words[at], *value = words[at + 1];
    const auto is = [&](const char* known) { return std::strcmp(name, known) == 0; };
    if (is("--seed"))
      options.seed = std::strtoull(value, nullptr, 10);
    else if (is("--operations"))
      options.operations = std::strtoull(value, nullptr, 10);
    else if (is("--every"))
      options.every = std::strtoull(value, nullptr, 10);
    else if (is("--text-from"))
      options.text_from = std::strtoull(value, nullptr, 10);
    else if (is("--text"))
      options.text = value;
    else if (is("--only"))
      options.only = value;
    else if (is("--directory"))
      options.directory = value;
    else if (is("--without"))
      set_left_out(value);
    else if (is("--inner"))
      parse_inner(value);
    else {
      std::fprintf(stderr, "mmtorture: no such option: %s\n", name);
      std::exit(2);
    }
  }
  return options;
}

// Not to poison the machine's memory by MADV_HWPOISON, and to have a limit on what is locked.
void give_up_rights() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2];
  const rlimit locked{8u << 20, 8u << 20}, core{0, 0};
  if (syscall(SYS_capget, &header, data) == 0) {
    data[0].effective &= ~(1u << CAP_SYS_ADMIN | 1u << CAP_IPC_LOCK);
    data[0].permitted &= ~(1u << CAP_SYS_ADMIN | 1u << CAP_IPC_LOCK);
    if (syscall(SYS_capset, &header, data) == 0 && setrlimit(RLIMIT_MEMLOCK, &locked) == 0 &&
        setrlimit(RLIMIT_CORE, &core) == 0)
      return;
  }
  std::perror("mmtorture: giving up rights");
  std::exit(98);
}

void say(const char* line) {
  if (write(1, line, std::strlen(line)) < 0) _exit(97);
}

void run(const Options& options) {
  static Log log(-1, "");
  static Log text(options.text == nullptr
                      ? -1
                      : open(options.text, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644),
                  "");
  FILE* only = options.only == nullptr ? nullptr : std::fopen(options.only, "r");
  static uint64_t numbers[1u << 20];
  uint64_t count = 0;
  if (only != nullptr) {
    unsigned long long number = 0;
    while (count < sizeof numbers / sizeof numbers[0] && std::fscanf(only, "%llu", &number) == 1)
      numbers[count++] = number;
    std::fclose(only);
  } else {
    count = options.operations;
  }
  const Operation preparing{"prepare", 0, prepare_slot, true};
  char line[80];
  uint64_t hash = 0;
  for (uint64_t at = 0; at < count; ++at) {
    const uint64_t number = only == nullptr ? at : numbers[at];
    Log& of_operation = number >= options.text_from ? text : log;
    if (number < kPreparing) {
      run_one(of_operation, preparing, number, options.seed, kAllGroups, true);
    } else {
      run_operation(of_operation, number, options.seed, kAllGroups, true);
    }
    hash = mixed(hash, of_operation.hash());
    if ((at + 1) % options.every != 0 && at + 1 != count) continue;
    std::snprintf(line, sizeof line, "%llu %016llx\n", static_cast<unsigned long long>(at + 1),
                  static_cast<unsigned long long>(hash));
    say(line);
  }
}

}  // namespace

int main(int count, char** words) {
  const Options options = parse(count, words);
  // One that does not end ends with the driver.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  give_up_rights();
  set_up_files(options.directory);
  set_up_scratches();
  set_up_slots();
  catch_faults();
  run(options);
  say("end\n");
  return 0;
}
