// Threads that work on one group each, and children.
#include <pthread.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "operations.h"

namespace torture {

namespace {

int depth = 0;

struct Work {
  Log log;
  uint64_t number;
  char who[4];
  uint64_t seed;
  unsigned groups;
  uint64_t operations;
};

void* work(void* given) {
  Work& of_thread = *static_cast<Work*>(given);
  for (uint64_t number = 0; number < of_thread.operations; ++number) {
    if (!is_kept(of_thread.number, of_thread.who, number)) continue;
    run_operation(of_thread.log, number, of_thread.seed, of_thread.groups, false);
  }
  return nullptr;
}

// Of some groups, one each.
class Threads {
 public:
  Threads(Context& context, uint64_t operations, unsigned groups);
  void join(Context& context);

 private:
  unsigned groups_;
  Work work_[kGroups];
  pthread_t threads_[kGroups];
};

Threads::Threads(Context& context, uint64_t operations, unsigned groups) : groups_(groups) {
  for (unsigned group = 0; group < kGroups; ++group) {
    if ((groups >> group & 1) == 0) continue;
    char key[32];
    std::snprintf(key, sizeof key, "%llu.t%u.", static_cast<unsigned long long>(context.number), group);
    work_[group] = {Log(context.log->descriptor(), key),
                    context.number,
                    {'t', static_cast<char>('0' + group), 0},
                    context.random.next(),
                    1u << group,
                    operations};
    if (pthread_create(&threads_[group], nullptr, work, &work_[group]) != 0) {
      std::perror("mmtorture: a thread");
      std::exit(98);
    }
  }
}

void Threads::join(Context& context) {
  for (unsigned group = 0; group < kGroups; ++group) {
    if ((groups_ >> group & 1) == 0) continue;
    pthread_join(threads_[group], nullptr);
    context.log->hex("thread", work_[group].log.hash());
  }
}

void start_threads(Context& context) {
  const uint64_t operations = 1 + context.random.below(60);
  context.log->in("operations", static_cast<int64_t>(operations));
  context.log->calls();
  // What is locked counts for the whole process, whatever thread locks it.
  context.log->result("munlockall", munlockall());
  Threads threads(context, operations, context.groups);
  threads.join(context);
}

// Tells its sum by a pipe, since the exit status is short.
[[noreturn]] void be_a_child(Context& context, const char* who, int told, uint64_t operations) {
  char key[32];
  std::snprintf(key, sizeof key, "%llu.%s.", static_cast<unsigned long long>(context.number), who);
  Log log(context.log->descriptor(), key);
  const uint64_t seed = context.random.next();
  for (uint64_t number = 0; number < operations; ++number) {
    if (is_kept(context.number, who, number)) run_operation(log, number, seed, context.groups, true);
  }
  const uint64_t hash = log.hash();
  _exit(write(told, &hash, sizeof hash) == sizeof hash ? 7 : 8);
}

// What a child tells, and how it ends.
void hear(Context& context, pid_t child, const int* told) {
  close(told[1]);
  uint64_t hash = 0;
  const ssize_t heard = child < 0 ? 0 : read(told[0], &hash, sizeof hash);
  close(told[0]);
  int status = 0;
  if (child > 0) waitpid(child, &status, 0);
  context.log->out("heard", heard);
  context.log->out("status", status);
  context.log->hex("child", hash);
}

void fork_child(Context& context, const char* who, uint64_t operations) {
  if (depth >= 2) return;
  int told[2];
  if (pipe(told) != 0) return context.log->word("no_pipe");
  const pid_t child = fork();
  if (child == 0) {
    ++depth;
    be_a_child(context, who, told[1], operations);
  }
  hear(context, child, told);
}

void have_a_child(Context& context) {
  const uint64_t operations = context.random.below(60);
  context.log->in("operations", static_cast<int64_t>(operations));
  context.log->calls();
  fork_child(context, "c0", operations);
}

// A child of one thread while the others go on: it has what that thread's group has, as it was.
void fork_beside_threads(Context& context) {
  const uint64_t operations = 1 + context.random.below(40);
  context.log->in("operations", static_cast<int64_t>(operations));
  context.log->calls();
  context.log->result("munlockall", munlockall());
  Threads others(context, operations, context.groups & ~1u);
  Context of_group{context.log, context.random, context.number, 1u & context.groups, true};
  fork_child(of_group, "c0", operations);
  fork_child(of_group, "c1", operations);
  others.join(context);
}

// What a child has of memory that was to be left out or wiped at a fork.
void fork_with_advice(Context& context) {
  Slot* slot = choose_slot(context.random, kOfMapped, context.groups);
  if (slot == nullptr) return context.log->calls();
  const Range range = choose_range(context.random, *slot, 64);
  static constexpr int kAdvice[] = {MADV_DONTFORK, MADV_WIPEONFORK, MADV_WIPEONFORK, MADV_KEEPONFORK,
                                    MADV_DOFORK};
  int advice = context.random.of(kAdvice);
  // Of the kernel's mappings a child lacks what it did not get, and has there what is mapped next, which may be the
  // runtime's: what it would read says nothing.
  if (advice == MADV_DONTFORK && slot->backing != Backing::kMemory) advice = MADV_DOFORK;
  log_range(context, range);
  context.log->in("advice", advice);
  context.log->calls();
  store_pages(context, range, false);
  context.log->result("madvise", madvise(range.begin(), range.bytes(), advice));
  int told[2];
  if (pipe(told) != 0) return context.log->word("no_pipe");
  const pid_t child = fork();
  if (child == 0) {
    Log log(-1, "");
    Context of_child{&log, context.random, context.number, context.groups, true};
    load_pages(of_child, range, true);
    const uint64_t hash = log.hash();
    _exit(write(told[1], &hash, sizeof hash) == sizeof hash ? 7 : 8);
  }
  hear(context, child, told);
  // A child would have a hole in a near slot, and something else might come there.
  if (advice == MADV_DONTFORK)
    context.log->result("again", madvise(range.begin(), range.bytes(), MADV_DOFORK));
  remark(range, context.number);
}

// A program that is started, which is looked at no closer.
void start_program(Context& context) {
  const bool by_vfork = context.random.percent(50);
  context.log->in("by_vfork", by_vfork);
  context.log->calls();
  char name[] = "/bin/true", *words[] = {name, nullptr}, *none[] = {nullptr};
  pid_t child = -1;
  if (by_vfork) {
    child = vfork();
    if (child == 0) {
      execve(name, words, none);
      _exit(9);
    }
  } else {
    context.log->out("posix_spawn", posix_spawn(&child, name, nullptr, nullptr, words, none));
  }
  int status = -1;
  if (child > 0) waitpid(child, &status, 0);
  context.log->out("status", status);
}

}  // namespace

bool is_a_child() { return depth > 0; }

const Operation task_operations[] = {
    {"start_threads", 1, start_threads, true},
    {"have_a_child", 1, have_a_child, true},
    {"fork_beside_threads", 1, fork_beside_threads, true},
    {"fork_with_advice", 2, fork_with_advice, true},
    {"start_program", 1, start_program, true},
    {nullptr, 0, nullptr, false},
};

}  // namespace torture
