// A program for tests/tools/code_names_test.py, which compiles it in several ways. place() prints the number it is
// given, and an address within the call of it; the test looks for the lines that the comments name.
#include "named_program.h"

#include <cstdio>
#include <memory>
#include <vector>

extern "C" __attribute__((noinline)) void place(const int* number) {
  std::printf("%d %p\n", *number, static_cast<void*>(static_cast<char*>(__builtin_return_address(0)) - 1));
}

static __attribute__((noinline)) int static_function(int number) {
  place(&number);  // LINE static
  return number + 1;
}

template <class T>
__attribute__((noinline)) int template_function(const std::vector<T>& all) {
  place(all.data());  // LINE template
  return static_cast<int>(all.size());
}

__attribute__((noinline)) int around_inlined(int number) { return inlined_helper(number) + 1; }

// The call is in the standard library's code, which is inlined here.
__attribute__((noinline)) int calls_through_library(int number) {
  std::unique_ptr<const int, void (*)(const int*)> owner(&number, place);
  owner.reset();  // LINE library
  return number + 1;
}

int main() {
  const int sum = static_function(1) + template_function(std::vector<int>{2}) + around_inlined(3) +
                  calls_through_library(4);
  std::fflush(stdout);
  std::getchar();  // until the test has looked at this process
  return sum == 0;
}
