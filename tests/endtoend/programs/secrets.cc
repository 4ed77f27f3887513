// Memory that no core dump is to have: secrets KIB [child]. Fills it with kSecret, then other memory beyond the cap,
// says "spilled" and waits for a line; then checks it, in a child that has done the same if that is asked for.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr uint64_t kSecret = 0x5EC2E75EC2E75EC2;
constexpr size_t kOtherBytes = size_t{48} << 20;

uint64_t* map(size_t bytes) {
  void* made = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (made == MAP_FAILED) std::abort();
  return static_cast<uint64_t*>(made);
}

void fill(uint64_t* words, size_t bytes, uint64_t value) {
  for (size_t i = 0; i < bytes / 8; ++i) words[i] = value + (value == kSecret ? 0 : i);
}

int wait_and_check(const uint64_t* secrets, size_t bytes) {
  std::puts("spilled");
  std::fflush(stdout);
  (void)std::getchar();
  for (size_t i = 0; i < bytes / 8; ++i)
    if (secrets[i] != kSecret) return 1;
  return 0;
}

}  // namespace

int main(int count, char** words) {
  const size_t bytes = std::strtoul(words[1], nullptr, 10) << 10;
  uint64_t* const secrets = map(bytes);
  if (madvise(secrets, bytes, MADV_DONTDUMP) != 0) return 2;
  uint64_t* const other = map(kOtherBytes);
  fill(secrets, bytes, kSecret);
  fill(other, kOtherBytes, 1);
  if (count < 3) return wait_and_check(secrets, bytes);
  const pid_t child = fork();
  if (child == 0) {
    fill(other, kOtherBytes, 2);
    _exit(wait_and_check(secrets, bytes));
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) std::fprintf(stderr, "signal %d\n", WTERMSIG(status));
  return WIFEXITED(status) ? WEXITSTATUS(status) : 3;
}
