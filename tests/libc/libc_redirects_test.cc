// Every function the pass redirects is defined by the runtime: this program links, and each has an address of its own.
#include <gtest/gtest.h>

#include <set>

extern "C" {
#define SPW_REDIRECT(name) void __spw_##name##_v1();
#include "abi/calls.def"
}

namespace {

TEST(Redirects, every_one_is_defined) {
  void (*const all[])() = {
#define SPW_REDIRECT(name) &__spw_##name##_v1,
#include "abi/calls.def"
  };
  std::set<void (*)()> different(std::begin(all), std::end(all));
  EXPECT_EQ(different.size(), std::size(all));
}

}  // namespace
