// Which engine a store takes when the kernel refuses some. Refusals are made with a seccomp filter in a child process.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "store/engine/aio_engine.h"
#include "store_fixture.h"

namespace spw::store {
namespace {

// Makes the given system calls fail with EPERM from here on, in this process.
bool forbid(std::vector<uint32_t> calls) {
  std::vector<sock_filter> filter = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  for (uint32_t call : calls) {
    filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1));
    filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM));
  }
  filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// In a child: what a spill store describes itself as, whether a write and a read through its queue agree, and whether
// naming the forbidden engine is refused. Exit status 0, or the number of the step that failed.
int run_in_child(const std::string& directory, std::vector<uint32_t> calls, std::string_view expected,
                 IoEngineKind forbidden) {
  pid_t child = ::fork();
  if (child == 0) {
    if (!forbid(calls)) ::_exit(77);
    auto store = FileStore::open_spill(directory);
    if (!store || (*store)->describe().find(expected) == std::string::npos) ::_exit(1);
    auto queue = (*store)->open_queue(4);
    if (!queue) ::_exit(2);
    Buffer written(kUnit, 9), read(kUnit);
    for (Op op : {Op::kWrite, Op::kRead}) {
      Request request = transfer_of(op, 0, op == Op::kWrite ? written : read);
      Request* pointer = &request;
      if ((*queue)->submit({&pointer, 1}) != 1) ::_exit(3);
      Completion done[1];
      while ((*queue)->reap(done) == 0) (*queue)->wait(UINT64_MAX);
      if (done[0].error != 0) ::_exit(4);
    }
    if (!(written == read)) ::_exit(5);
    FileOptions options;
    options.engine = forbidden;
    auto named = FileStore::open_spill(directory, options);
    if (!named) ::_exit(6);
    ::_exit((*named)->open_queue(4).status().error() == EPERM ? 0 : 7);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 100;
}

class EngineChoice : public ::testing::Test {
 protected:
  void SetUp() override { directory_ = make_scratch_directory(); }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  void expect(std::vector<uint32_t> calls, std::string_view engine, IoEngineKind forbidden) {
    int outcome = run_in_child(directory_, std::move(calls), engine, forbidden);
    if (outcome == 77) GTEST_SKIP() << "no seccomp filters here";
    EXPECT_EQ(outcome, 0);
  }
  std::string directory_;
};

TEST_F(EngineChoice, libaio_is_taken_and_io_uring_not_missed) {
  expect({SYS_io_uring_setup}, "libaio", IoEngineKind::kUring);
}

TEST_F(EngineChoice, without_libaio_threads_are_taken) {
  expect({SYS_io_setup}, "threads", IoEngineKind::kAio);
}

TEST(EngineName, round_trips_and_refuses_others) {
  for (IoEngineKind kind :
       {IoEngineKind::kAuto, IoEngineKind::kUring, IoEngineKind::kAio, IoEngineKind::kThreads}) {
    auto parsed = parse_engine(engine_name(kind));
    ASSERT_TRUE(parsed);
    EXPECT_EQ(*parsed, kind);
  }
  EXPECT_EQ(parse_engine("uring").status().error(), EINVAL);
}

bool is_done(IoQueue& queue, Op op, uint64_t block, Buffer& buffer) {
  Request request = transfer_of(op, block * kUnit, buffer);
  Request* pointer = &request;
  if (queue.submit({&pointer, 1}) != 1) return false;
  Completion done[1];
  while (queue.reap(done) == 0) queue.wait(UINT64_MAX);
  return done[0].error == 0;
}

// One request through a queue of the store.
bool reads_by_queue(Store& store) {
  auto queue = store.open_queue(4);
  Buffer read(kUnit);
  return queue && is_done(**queue, Op::kRead, 0, read);
}

// A process that transfers little ends without a context, which would hold it up.
TEST_F(EngineChoice, a_context_is_taken_once_that_pays) {
  if (!AioContext::exist()) GTEST_SKIP() << "no asynchronous I/O here: " << std::strerror(errno);
  engines_in_child();  // as if nothing had been transferred in this process
  auto store = FileStore::open_spill(directory_);
  ASSERT_TRUE(store);
  auto queue = (*store)->open_queue(4), other = (*store)->open_queue(4);
  ASSERT_TRUE(queue && other);
  unsigned steps = 0;
  const auto goes_on = [&](IoQueue& by) {
    Buffer written(kUnit, steps + 1), read(kUnit);
    return is_done(by, Op::kWrite, steps % 7, written) && is_done(by, Op::kRead, steps++ % 7, read) &&
           written == read;
  };
  while (!AioContext::is_one_there() && 2 * steps <= AioEngine::kStepsWithout) ASSERT_TRUE(goes_on(**queue));
  EXPECT_EQ(2 * steps, AioEngine::kStepsWithout);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(goes_on(**queue) && goes_on(**other));
}

// A queue may have threads though the store began with a ring: that is what is left where descriptors are short.
TEST_F(EngineChoice, a_forked_child_reads_by_workers_of_its_own) {
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
  GTEST_SKIP() << "the thread sanitizer allows no threads in a child of a process that had some";
#endif
#endif
  FileOptions options;
  options.engine = IoEngineKind::kThreads;
  auto store = FileStore::open_spill(directory_, options);
  ASSERT_TRUE(store);
  ASSERT_TRUE(reads_by_queue(**store));  // now its workers run
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);  // it used to wait for its parent's
    (*store)->in_child();
    ::_exit(reads_by_queue(**store) ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_TRUE(reads_by_queue(**store));
}

}  // namespace
}  // namespace spw::store
