#include <gtest/gtest.h>
#include <unistd.h>

#include "fake_access.h"
#include "libc/alloc/allocate.h"
#include "libc/bytes/memory.h"
#include "libc/managed.h"
#include "libc/stdio/stdio.h"

namespace spw::libc {
namespace {

using testing::FakeManagedSpace;
using testing::Twin;

constexpr size_t kBytes = 400000;

struct StdioTest : ::testing::Test {
  StdioTest() { file = tmpfile(); }
  ~StdioTest() override { fclose(file); }
  FakeManagedSpace space;
  Rng rng{3};
  Twin a{space, kBytes}, b{space, kBytes};
  FILE* file;
};

TEST_F(StdioTest, elements_go_out_and_come_back) {
  a.randomise(rng);
  EXPECT_EQ(__spw_fwrite_v1(a.managed() + 3, 12, 30000, file), 30000u);
  rewind(file);
  // The last element is there in part only: its bytes arrive, but it does not count.
  ASSERT_EQ(ftruncate(fileno(file), 12 * 29999 + 5), 0);
  EXPECT_EQ(__spw_fread_v1(b.managed() + 7, 12, 30000, file), 29999u);
  EXPECT_TRUE(feof(file));
  std::copy_n(a.plain() + 3, 12 * 29999 + 5, b.plain() + 7);
  b.expect_same();
  EXPECT_EQ(__spw_fread_v1(b.managed(), 0, 5, file), 0u);
}

TEST_F(StdioTest, lines_agree_with_libc) {
  for (size_t i = 0; i < kBytes; ++i)
    a.plain()[i] = rng.below(3000) == 0 ? '\n' : static_cast<char>('a' + rng.below(3));
  a.plain()[777] = 0;  // a line may hold a zero byte
  fwrite(a.plain(), 1, kBytes, file);
  FILE* again = fdopen(dup(fileno(file)), "r");
  fflush(file);
  for (int bytes : {1, 2, 100, 5000, 100000}) {
    rewind(file);
    for (int line = 0; line < 30; ++line) {
      long position = ftell(file);
      char* want = fgets(b.plain(), bytes, file);
      fseek(again, position, SEEK_SET);
      char* got = __spw_fgets_v1(b.managed(), bytes, again);
      ASSERT_EQ(want == nullptr, got == nullptr);
      ASSERT_EQ(ftell(again), ftell(file));
      ASSERT_EQ(
          __spw_memcmp_v1(b.managed(), b.plain(), static_cast<size_t>(ftell(file) - position) + (bytes > 1)),
          0);
    }
  }
  fseek(again, 0, SEEK_END);
  EXPECT_EQ(__spw_fgets_v1(b.managed(), 100, again), nullptr);
  fclose(again);
}

TEST_F(StdioTest, getline_keeps_a_buffer_of_either_kind) {
  for (size_t i = 0; i < kBytes; ++i)
    a.plain()[i] = rng.below(2000) == 0 ? '\n' : static_cast<char>(rng.below(100));
  fwrite(a.plain(), 1, kBytes, file);
  rewind(file);
  char* line = static_cast<char*>(space.heap->allocate(100).address);
  size_t bytes = 100, position = 0;
  for (ssize_t length; (length = __spw_getline_v1(&line, &bytes, file)) >= 0;) {
    ASSERT_GT(bytes, static_cast<size_t>(length));
    ASSERT_EQ(__spw_memcmp_v1(line, a.plain() + position, static_cast<size_t>(length)), 0);
    position += static_cast<size_t>(length);
  }
  EXPECT_EQ(position, kBytes);
  release(line);
}

TEST_F(StdioTest, strings_are_written_whole) {
  std::fill(a.plain(), a.plain() + kBytes, 'w');
  a.plain()[kBytes - 1] = 0;
  a.put();
  EXPECT_NE(__spw_fputs_v1(a.managed(), file), EOF);
  EXPECT_EQ(ftell(file), static_cast<long>(kBytes - 1));
}

}  // namespace
}  // namespace spw::libc
