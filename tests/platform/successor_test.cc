#include "platform/successor.h"

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>

#include "platform/time.h"

namespace spw::platform {
namespace {

constexpr const char* kNoteVariable = "SPW_TEST_NOTE";
constexpr int kTries = 3000;
constexpr uint64_t kPauseNs = 10'000'000;

std::string descriptors() {
  std::ostringstream all;
  DIR* open = ::opendir("/proc/self/fd");
  for (const dirent* each = ::readdir(open); each != nullptr; each = ::readdir(open)) {
    const std::string name = each->d_name;
    if (name[0] != '.' && std::stoi(name) != ::dirfd(open)) all << name << " ";
  }
  ::closedir(open);
  return all.str();
}

// What a successor finds, in a file that is whole when it is there.
void note(const std::string& text) {
  const std::string file = std::getenv(kNoteVariable);
  std::ofstream(file + ".part") << text;
  std::filesystem::rename(file + ".part", file);
}

// Run by others as their successor: this program again.
TEST(Successor, DISABLED_is_one) {
  const std::string found = descriptors();
  const bool is_leader = ::getsid(0) == ::getpid();
  const bool has_preload = std::getenv("LD_PRELOAD") != nullptr;
  if (!await_predecessor()) return;
  sigset_t blocked;
  ::sigprocmask(SIG_BLOCK, nullptr, &blocked);
  note(found + (is_leader ? "leader " : "") + (has_preload ? "preload " : "") +
       (sigisemptyset(&blocked) != 0 ? "unblocked" : "blocked"));
}

class SuccessorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    place_ = std::filesystem::temp_directory_path() / "spw_successor.XXXXXX";
    ASSERT_NE(::mkdtemp(place_.data()), nullptr);
    note_ = place_ + "/note";
    ::setenv(kNoteVariable, note_.c_str(), 1);
    self_ = std::filesystem::read_symlink("/proc/self/exe");
  }
  void TearDown() override {
    std::error_code error;
    std::filesystem::remove_all(place_, error);
  }

  Status start() const {
    return start_successor(self_, {self_, "--gtest_filter=Successor.DISABLED_is_one",
                                   "--gtest_also_run_disabled_tests", "--gtest_brief=1"});
  }
  bool has_noted() const { return std::filesystem::exists(note_); }
  std::string noted() const {
    for (int tries = 0; tries < kTries && !has_noted(); ++tries) sleep_ns(kPauseNs);
    std::ifstream file(note_);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  std::string place_, note_, self_;
};

int g_children_ended = 0;

// Exit codes: which of what follows is not so.
int run_predecessor(const std::function<Status()>& start, int ready) {
  ::setenv("LD_PRELOAD", "", 1);
  ::signal(SIGCHLD, [](int) { ++g_children_ended; });
  sigset_t before, after;
  ::sigprocmask(SIG_BLOCK, nullptr, &before);
  if (!start()) return 1;
  ::sigprocmask(SIG_BLOCK, nullptr, &after);
  if (sigismember(&before, SIGTERM) != sigismember(&after, SIGTERM)) return 2;
  if (g_children_ended != 0 || ::waitpid(-1, nullptr, __WALL) != -1 || errno != ECHILD) return 3;
  if (::write(ready, "x", 1) != 1) return 4;
  for (;;) ::pause();
}

TEST_F(SuccessorTest, goes_on_when_the_process_is_killed_and_is_nobodys_child_before) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t predecessor = ::fork();
  if (predecessor == 0) ::_exit(run_predecessor([this] { return start(); }, ready[1]));
  ::close(ready[1]);
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1) << "it has none";
  sleep_ns(20 * kPauseNs);
  EXPECT_FALSE(has_noted()) << "the process lives";
  ::kill(predecessor, SIGKILL);
  EXPECT_EQ(noted(), "0 1 2 3 leader unblocked") << "though nobody has waited for the process yet";
  // The other end of the pipe was nobody's but the process's.
  EXPECT_EQ(::read(ready[0], &byte, 1), 0);
  ::close(ready[0]);
  int status = 0;
  ASSERT_EQ(::waitpid(predecessor, &status, 0), predecessor);
  EXPECT_TRUE(WIFSIGNALED(status)) << WEXITSTATUS(status);
}

TEST_F(SuccessorTest, a_program_that_is_not_there_is_an_error) {
  EXPECT_EQ(start_successor(place_ + "/none", {"none"}).error(), ENOENT);
  EXPECT_EQ(::waitpid(-1, nullptr, __WALL), -1) << "nothing is left to be waited for";
}

TEST_F(SuccessorTest, who_gets_the_children_of_others_has_none) {
  ASSERT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
  EXPECT_EQ(start().error(), EPERM);
  ASSERT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 0), 0);
}

}  // namespace
}  // namespace spw::platform
