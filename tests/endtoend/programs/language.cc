// The corners of the language and of the allocation functions, each on managed memory.
#include <malloc.h>
#include <unistd.h>

#include <csetjmp>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "parts.h"
#include "print.h"

namespace {

uint64_t check_pattern(const unsigned char* bytes, size_t count, unsigned char first) {
  uint64_t wrong = 0;
  for (size_t i = 0; i < count; ++i) wrong += bytes[i] != static_cast<unsigned char>(first + i * 7);
  return wrong;
}

void fill_pattern(unsigned char* bytes, size_t count, unsigned char first) {
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<unsigned char>(first + i * 7);
}

int realloc_keeps(long) {
  auto* bytes = static_cast<unsigned char*>(std::malloc(1));
  size_t have = 0, wrong = 0;
  for (size_t want = 1; want < 24u << 20; want = want * 3 / 2 + 13) {
    bytes = static_cast<unsigned char*>(std::realloc(bytes, want));
    wrong += check_pattern(bytes, have, 0);
    fill_pattern(bytes, want, 0);
    have = want;
  }
  for (size_t want = have / 2; want > 0; want /= 3) {
    bytes = static_cast<unsigned char*>(std::realloc(bytes, want));
    wrong += check_pattern(bytes, want, 0);
  }
  std::printf("wrong bytes %zu, usable %d\n", wrong, malloc_usable_size(bytes) >= 1);
  std::free(bytes);
  return 0;
}

int calloc_zeroes(long) {
  size_t not_zero = 0;
  for (int round = 0; round < 40; ++round) {
    size_t count = round % 4 == 0 ? 3'000'000 : 50 + static_cast<size_t>(round) * 1500;
    for (int repeat = 0; repeat < (count > 1'000'000 ? 1 : 30); ++repeat) {
      auto* bytes = static_cast<unsigned char*>(std::calloc(count, 1));
      for (size_t i = 0; i < count; ++i) not_zero += bytes[i] != 0;
      std::memset(bytes, 0xEE, count);
      std::free(bytes);
    }
  }
  std::printf("not zero %zu\n", not_zero);
  return 0;
}

int aligned(long) {
  size_t misaligned = 0, wrong = 0;
  for (size_t alignment = 8; alignment <= 4u << 20; alignment *= 2) {
    void* objects[6] = {};
    if (posix_memalign(&objects[0], alignment, 3 * alignment + 5)) return 1;
    objects[1] = std::aligned_alloc(alignment, 2 * alignment);
    objects[2] = memalign(alignment, 100);
    objects[3] = ::operator new(5000, std::align_val_t(alignment));
    objects[4] = std::malloc(alignment + 1);
    objects[5] = valloc(10);
    for (int i = 0; i < 4; ++i) misaligned += reinterpret_cast<uintptr_t>(objects[i]) % alignment != 0;
    misaligned += reinterpret_cast<uintptr_t>(objects[5]) % 4096 != 0;
    for (auto* object : objects) std::memset(object, 0x5A, 10);
    for (auto* object : objects) wrong += static_cast<unsigned char*>(object)[9] != 0x5A;
    ::operator delete(objects[3], std::align_val_t(alignment));
    for (int i : {0, 1, 2, 4, 5}) std::free(objects[i]);
  }
  std::printf("misaligned %zu, wrong %zu, bad alignment refused %d, too much refused %d %d\n", misaligned,
              wrong, posix_memalign(reinterpret_cast<void**>(&wrong), 24, 8) == EINVAL,
              std::malloc(~size_t{0} / 2) == nullptr, std::calloc(~size_t{0} / 4, 8) == nullptr);
  return 0;
}

int zero_sizes(long) {
  void* a = std::malloc(0);
  void* b = std::malloc(0);
  std::printf("distinct %d, new[0] %d\n", a != b && a && b, (new char[0]) != nullptr);
  a = std::realloc(a, 10);
  std::free(a), std::free(b), std::free(nullptr);
  std::printf("realloc null %d\n", (b = std::realloc(nullptr, 4096)) != nullptr);
  std::free(b);
  return 0;
}

int live = 0;
struct Throwing {
  std::string text = "something long enough to be allocated by itself";
  Throwing() {
    if (++live == 700) {
      --live;
      throw std::runtime_error("the 700th constructor, with a message that is long");
    }
  }
  ~Throwing() { --live; }
};

void thrower(int depth, std::vector<int>& seen) {
  std::vector<int> local(5000, depth);
  struct Mark {
    std::vector<int>& seen;
    int depth;
    ~Mark() { seen.push_back(depth); }
  } mark{seen, depth};
  if (depth == 40) throw std::vector<int>(local.begin(), local.begin() + 10);
  thrower(depth + 1, seen);
}

int exceptions(long) {
  try {
    std::unique_ptr<Throwing[]> objects(new Throwing[1000]);
    std::puts("not thrown");
  } catch (const std::exception& error) {
    std::printf("%s, alive %d\n", error.what(), live);
  }
  std::vector<int> seen;
  try {
    thrower(0, seen);
  } catch (const std::vector<int>& what) {
    std::printf("%zu elements of %d, unwound %zu frames, last %d\n", what.size(), what[9], seen.size(),
                seen.back());
  }
  try {
    (void)std::vector<int>(10).at(11);
  } catch (const std::out_of_range& error) {
    std::puts(error.what());
  }
  try {
    std::vector<char> huge(~size_t{0} / 4);
    std::printf("there is memory at %p\n", static_cast<void*>(huge.data()));
  } catch (const std::bad_alloc&) {
    std::puts("bad_alloc");
  }
  std::exception_ptr carried;
  std::thread([&] {
    try {
      throw std::logic_error("carried from a thread, again with a long message");
    } catch (...) {
      carried = std::current_exception();
    }
  }).join();
  try {
    std::rethrow_exception(carried);
  } catch (const std::logic_error& error) {
    std::puts(error.what());
  }
  throw std::runtime_error("nobody catches this");  // std::terminate: SIGABRT
}

int caught(long) {
  try {
    exceptions(0);
  } catch (const std::runtime_error& error) {
    std::puts(error.what());
  }
  return 3;
}

std::jmp_buf* plain_jump;
void jumper(int depth, volatile int* managed) {
  managed[depth * 1000] = depth;
  if (depth == 100) std::longjmp(*plain_jump, managed[50 * 1000] + 1);
  jumper(depth + 1, managed);
}

int long_jumps(long) {
  auto* managed = static_cast<volatile int*>(std::malloc(4'000'000));
  auto* jump = static_cast<std::jmp_buf*>(
      std::malloc(sizeof(std::jmp_buf)));  // itself managed: libc writes and reads it
  for (plain_jump = jump;;) {
    int value = setjmp(*jump);
    if (value != 0) {
      std::printf("jumped with %d, %d\n", value, managed[99 * 1000]);
      break;
    }
    jumper(0, managed);
  }
  std::jmp_buf on_stack;
  plain_jump = &on_stack;
  if (int value = setjmp(on_stack)) {
    std::printf("again with %d\n", value);
    return 0;
  }
  jumper(0, managed);
  return 1;
}

struct ThreadOwned {
  std::vector<int> numbers;
  ~ThreadOwned() {
    long sum = 0;
    for (int n : numbers) sum += n;
    std::printf("thread ended with %ld\n", sum);
  }
};
thread_local ThreadOwned thread_owned;
thread_local std::string thread_text = "a string that each thread allocates for itself, long enough";

int thread_locals(long) {
  for (int i = 0; i < 5; ++i) {
    std::thread([i] {
      thread_owned.numbers.assign(300'000, i);
      thread_text += std::to_string(i);
      std::puts(thread_text.c_str());
    }).join();
  }
  thread_owned.numbers.assign(100, 1);
  return 0;
}

int* at_exit_numbers;
void at_exit() {
  long sum = 0;
  for (int i = 0; i < 3'000'000; ++i) sum += at_exit_numbers[i];
  std::printf("at exit %ld\n", sum);
  std::free(at_exit_numbers);
  std::fflush(stdout);
}

struct Static {
  std::vector<long> numbers = std::vector<long>(1'000'000, 3);  // before main
  ~Static() {
    long sum = 0;
    for (long n : numbers) sum += n;
    std::printf("static ended with %ld\n", sum);
  }
};
Static statics;

int at_the_end(long how) {
  std::atexit(at_exit);
  at_exit_numbers = static_cast<int*>(std::malloc(3'000'000 * sizeof(int)));
  for (int i = 0; i < 3'000'000; ++i) at_exit_numbers[i] = i & 7;
  statics.numbers[5] = 10;
  if (how == 1) std::exit(7);
  if (how == 2) std::thread([] { std::exit(8); }).join();
  if (how == 3) _exit(9);
  if (how == 4) std::abort();
  return 6;
}

volatile sig_atomic_t ticks;
int signals(long) {
  struct sigaction action{};
  action.sa_handler = [](int) { ticks = ticks + 1; };
  action.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &action, nullptr);
  ualarm(500, 500);
  std::vector<uint64_t> numbers(2'500'000);
  uint64_t state = 99;
  for (auto& n : numbers) n = next_random(&state);
  uint64_t sum = 0;
  for (int round = 0; round < 2; ++round)
    for (size_t i = 0; i < numbers.size(); ++i) sum = mix(sum, numbers[(i * 3) % numbers.size()]);
  ualarm(0, 0);
  print_sum("sum", sum);
  std::printf("interrupted %d\n", ticks > 5);
  return 0;
}

// Every overlap of memmove around block edges, and copies between managed and plain memory.
int copies(long) {
  constexpr size_t kBytes = 3u << 20;
  auto* area = static_cast<unsigned char*>(std::malloc(kBytes));
  std::vector<unsigned char> model(kBytes);
  static unsigned char plain[100'000];
  uint64_t state = 4711;
  for (size_t i = 0; i < kBytes; ++i) area[i] = model[i] = static_cast<unsigned char>(next_random(&state));
  size_t wrong = 0;
  for (int round = 0; round < 3000; ++round) {
    size_t bytes = next_random(&state) % (round % 50 == 0 ? 1'000'000 : 9000);
    size_t from = next_random(&state) % (kBytes - bytes), to = next_random(&state) % (kBytes - bytes);
    if (round % 3 == 0) to = (from & ~size_t{4095}) + next_random(&state) % 64;
    if (to + bytes > kBytes) continue;
    if (round % 5 == 1) {
      bytes = bytes % sizeof plain;
      std::memcpy(plain, area + from, bytes);
      std::memcpy(area + to, plain, bytes);
      std::memmove(model.data() + to, model.data() + from, bytes);
    } else if (round % 5 == 2) {
      std::memset(area + to, round, bytes);
      std::memset(model.data() + to, round, bytes);
    } else {
      std::memmove(area + to, area + from, bytes);
      std::memmove(model.data() + to, model.data() + from, bytes);
    }
    wrong += std::memcmp(area + to, model.data() + to, bytes) != 0;
  }
  uint64_t sum = 0;
  for (size_t i = 0; i < kBytes; ++i) wrong += area[i] != model[i], sum = mix(sum, area[i]);
  std::printf("wrong %zu\n", wrong);
  print_sum("sum", sum);
  std::free(area);
  return 0;
}

constexpr Part kParts[] = {{"realloc", realloc_keeps}, {"calloc", calloc_zeroes},
                           {"aligned", aligned},       {"zero", zero_sizes},
                           {"throw", caught},          {"uncaught", exceptions},
                           {"longjmp", long_jumps},    {"thread_local", thread_locals},
                           {"end", at_the_end},        {"signals", signals},
                           {"copies", copies}};

}  // namespace

int main(int count, char** arguments) { RUN_PARTS(kParts, count, arguments); }
