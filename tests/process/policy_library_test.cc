// Files that are loaded as eviction policies and are none: each is one line, and never a crash of the loader.
// SPW_FLIP_STEP=N: a bit of each Nth byte is flipped instead of each 64th.
#include "process/policy_library.h"

#include <elf.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "process/fatal.h"

namespace spw::process {
namespace {

namespace fs = std::filesystem;
constexpr unsigned kLoadLimitS = 20;  // a loader that goes in circles
constexpr size_t kStep = 64;

struct Outcome {
  int code = -1;  // -N: ended by signal N
  std::string said;
  bool is_loaded() const { return code == 0 && said.empty(); }
  bool is_refused() const {
    return code == kExitUsage && said.starts_with("spillway: the eviction policy ") &&
           std::count(said.begin(), said.end(), '\n') == 1;
  }
};
std::ostream& operator<<(std::ostream& out, const Outcome& outcome) {
  return out << "code " << outcome.code << ": " << outcome.said;
}

class PolicyLibrary : public testing::Test {
 protected:
  void SetUp() override {
    path_ = testing::TempDir() + "policy_library_test." + std::to_string(::getpid()) + ".so";
    std::ifstream file(SPW_POLICY_FILE, std::ios::binary);
    whole_.assign(std::istreambuf_iterator<char>(file), {});
    ASSERT_GT(whole_.size(), 4096u);
  }
  void TearDown() override { fs::remove(path_); }

  // In a process of its own, as a program does it; then `use` of it.
  using Use = void (*)(PolicyFactory& make);
  static Outcome load(const std::string& path, Use use = [](PolicyFactory&) {}) {
    int pipe[2];
    EXPECT_EQ(::pipe(pipe), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      ::dup2(pipe[1], 2);
      ::alarm(kLoadLimitS);
      auto policy = load_policy(path);
      if (!policy) fatal(kExitUsage, policy.status().message());
      use(*policy);
      ::_exit(0);
    }
    ::close(pipe[1]);
    Outcome outcome;
    char text[512];
    for (ssize_t got; (got = ::read(pipe[0], text, sizeof text)) > 0;)
      outcome.said.append(text, static_cast<size_t>(got));
    ::close(pipe[0]);
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    outcome.code = WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
    return outcome;
  }
  Outcome load_contents(const std::string& contents) const {
    fs::remove(path_);  // what another process has mapped does not change
    std::ofstream(path_, std::ios::binary) << contents;
    return load(path_);
  }
  void expect_refused(const std::string& contents, const std::string& words) const {
    const Outcome outcome = load_contents(contents);
    EXPECT_TRUE(outcome.is_refused() && outcome.said.find(words) != std::string::npos) << outcome;
  }

  std::string path_, whole_;
};

TEST_F(PolicyLibrary, a_whole_one_is_loaded) { EXPECT_TRUE(load(SPW_POLICY_FILE).is_loaded()); }

TEST_F(PolicyLibrary, what_is_no_library_of_this_machine_is_refused) {
  expect_refused("", "it is no ELF file");
  expect_refused("#!/bin/sh\n", "it is no ELF file");
  expect_refused(std::string(5000, 'x'), "it is no ELF file");
  const auto with = [this](size_t at, const std::string& bytes) {
    std::string changed = whole_;
    return changed.replace(at, bytes.size(), bytes);
  };
  expect_refused(with(EI_CLASS, "\1"), "another processor");
  expect_refused(with(EI_DATA, "\2"), "another processor");
  expect_refused(with(offsetof(Elf64_Ehdr, e_machine), "\xb7"), "another processor");  // AArch64
  expect_refused(with(offsetof(Elf64_Ehdr, e_type), "\1"), "no shared library");       // an object file
  expect_refused(with(offsetof(Elf64_Ehdr, e_phoff), std::string(8, '\xff')), "cut short or damaged");
  EXPECT_TRUE(load(testing::TempDir()).is_refused());
  EXPECT_TRUE(load("/nowhere/mine.so").is_refused());
  fs::remove(path_);
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  const Outcome pipe = load(path_);
  EXPECT_TRUE(pipe.is_refused() && pipe.said.find("it is no file") != std::string::npos) << pipe;
}

TEST_F(PolicyLibrary, one_that_is_cut_anywhere_is_refused_until_all_that_is_loaded_is_there) {
  size_t refused = 0;
  bool was_loaded = false;
  for (size_t length = 0; length < whole_.size(); length += kStep) {
    const Outcome outcome = load_contents(whole_.substr(0, length));
    ASSERT_TRUE(outcome.is_refused() || outcome.is_loaded()) << length << ": " << outcome;
    ASSERT_FALSE(was_loaded && outcome.is_refused()) << length;
    was_loaded = outcome.is_loaded();
    refused += outcome.is_refused();
  }
  EXPECT_GT(refused, 100u);
}

// In the code, in names and in what is not loaded they may change nothing that shows.
TEST_F(PolicyLibrary, flipped_bits_anywhere_are_one_line_or_nothing) {
  const char* const asked = std::getenv("SPW_FLIP_STEP");
  const size_t step = asked == nullptr ? kStep : std::strtoull(asked, nullptr, 10);
  size_t refused = 0, loaded = 0;
  const auto flip = [&](size_t at, unsigned bits) {
    std::string changed = whole_;
    changed[at] = static_cast<char>(changed[at] ^ static_cast<char>(bits));
    const Outcome outcome = load_contents(changed);
    EXPECT_TRUE(outcome.is_refused() || outcome.is_loaded())
        << "byte " << at << " ^ " << bits << ": " << outcome;
    (outcome.is_loaded() ? loaded : refused) += 1;
  };
  for (size_t at = 0; at < whole_.size(); at += step) flip(at, 1u << at / step % 8);
  for (size_t at = 0; at < 1024; ++at) flip(at, 1u << at % 8);  // headers
  EXPECT_GT(refused, 100u);
  EXPECT_GT(loaded, 100u);
}

TEST_F(PolicyLibrary, one_whose_description_is_wrong_is_refused) {
  constexpr const char* kWords[] = {
      "has 16 bytes of",
      "is no struct spw_policy",
      "crashed while it was loaded",
      "crashed while it was loaded",
      "its name is not 1 to 63 bytes of a line",
      "crashed while it was loaded",
      "its name is not 1 to 63 bytes of a line",
      "a function that it has to have is missing",
      "in no library that is loaded",
  };
  for (size_t kind = 0; kind < std::size(kWords); ++kind) {
    const Outcome outcome = load(SPW_WRONG_POLICIES + std::to_string(kind) + ".so");
    EXPECT_TRUE(outcome.is_refused() && outcome.said.find(kWords[kind]) != std::string::npos)
        << kind << ", " << outcome;
  }
}

class Evictable final : public cache::FrameProbe {
 public:
  Verdict probe(uint32_t) override { return Verdict::kEvictable; }
};

// In frames that hold blocks 10, 11 and 12, and an empty one.
void ask_twice(PolicyFactory& make) {
  auto policy = make(4);
  Evictable frames;
  for (uint32_t frame = 0; frame < 3; ++frame) policy->on_insert(frame, BlockId(10 + frame));
  if (policy->next_candidate(frames) >= 3) ::_exit(3);
  policy->on_touch(0);
  if (policy->next_candidate(frames) >= 3) ::_exit(3);
}

TEST_F(PolicyLibrary, an_offer_that_cannot_be_ends_the_program_with_a_line) {
  EXPECT_TRUE(load(SPW_POLICY_FILE, ask_twice).is_loaded());
  const std::string wrong = SPW_WRONG_POLICIES;
  const Outcome again = load(wrong + "9.so", ask_twice), past_end = load(wrong + "10.so", ask_twice);
  EXPECT_TRUE(again.is_refused() && again.said.find("offered frame 0 of 4") != std::string::npos) << again;
  EXPECT_TRUE(past_end.is_refused() && past_end.said.find("offered frame 4 of 4") != std::string::npos)
      << past_end;
  auto none = load_policy(wrong + "11.so");
  ASSERT_TRUE(none);
  EXPECT_EQ((*none)(4), nullptr) << "its create() has no memory";
}

TEST_F(PolicyLibrary, the_programs_own_handlers_are_as_they_were) {
  struct sigaction before{}, after{};
  ASSERT_EQ(::sigaction(SIGSEGV, nullptr, &before), 0);
  ASSERT_TRUE(load_policy(SPW_POLICY_FILE));
  ASSERT_EQ(::sigaction(SIGSEGV, nullptr, &after), 0);
  EXPECT_EQ(before.sa_handler, after.sa_handler);
  constexpr int kRestorer = 0x04000000;  // of libc's own, in all that were set once
  EXPECT_EQ(before.sa_flags & ~kRestorer, after.sa_flags & ~kRestorer);
}

}  // namespace
}  // namespace spw::process
