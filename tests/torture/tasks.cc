// Threads that work on one group each, and children.
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "operations.h"

namespace torture {

namespace {

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

void start_threads(Context& context) {
  const uint64_t operations = 1 + context.random.below(60);
  context.log->in("operations", static_cast<int64_t>(operations));
  context.log->calls();
  // What is locked counts for the whole process.
  context.log->result("munlockall", munlockall());
  static Work of_threads[kGroups];
  pthread_t threads[kGroups];
  for (unsigned group = 0; group < kGroups; ++group) {
    char key[32];
    std::snprintf(key, sizeof key, "%llu.t%u.", static_cast<unsigned long long>(context.number), group);
    of_threads[group] = {Log(context.log->descriptor(), key),
                         context.number,
                         {'t', static_cast<char>('0' + group), 0},
                         context.random.next(),
                         1u << group,
                         operations};
    if (pthread_create(&threads[group], nullptr, work, &of_threads[group]) != 0) {
      std::perror("mmtorture: a thread");
      std::exit(98);
    }
  }
  for (unsigned group = 0; group < kGroups; ++group) {
    pthread_join(threads[group], nullptr);
    context.log->hex("thread", of_threads[group].log.hash());
  }
}

// Tells its sum by a pipe, since the exit status is short.
[[noreturn]] void be_a_child(Context& context, int told, uint64_t operations) {
  char key[32];
  std::snprintf(key, sizeof key, "%llu.c.", static_cast<unsigned long long>(context.number));
  Log log(context.log->descriptor(), key);
  const uint64_t seed = context.random.next();
  for (uint64_t number = 0; number < operations; ++number) {
    if (is_kept(context.number, "c", number)) run_operation(log, number, seed, context.groups, true);
  }
  const uint64_t hash = log.hash();
  _exit(write(told, &hash, sizeof hash) == sizeof hash ? 7 : 8);
}

void have_a_child(Context& context) {
  const uint64_t operations = context.random.below(60);
  context.log->in("operations", static_cast<int64_t>(operations));
  context.log->calls();
  static int depth = 0;
  if (depth >= 2) return;
  int told[2];
  if (pipe(told) != 0) return context.log->word("no_pipe");
  const pid_t child = fork();
  if (child == 0) {
    ++depth;
    be_a_child(context, told[1], operations);
  }
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

}  // namespace

const Operation task_operations[] = {
    {"start_threads", 1, start_threads, true},
    {"have_a_child", 1, have_a_child, true},
    {nullptr, 0, nullptr, false},
};

}  // namespace torture
