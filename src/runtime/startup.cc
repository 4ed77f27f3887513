#include "runtime/startup.h"

#include <pthread.h>

#include <string>
#include <vector>

#include "base/atomic.h"
#include "base/check.h"
#include "front/interpose/context.h"
#include "runtime/fatal.h"
#include "runtime/fault_handler.h"

namespace spw::runtime {

namespace {

Atomic<Runtime*> g_runtime{nullptr};
pthread_mutex_t g_making = PTHREAD_MUTEX_INITIALIZER;
thread_local bool t_making = false;
Options* g_options = nullptr;

void read_options() {
  std::vector<std::string> warnings;
  Result<Options> options = options_of_process(&warnings);
  if (!options) fatal(kExitUsage, options.status().message());
  for (const std::string& line : warnings) warn(line);
  g_options = new Options(std::move(*options));
}

bool admit_foreign(uintptr_t address, bool is_store) {
  Runtime* runtime = g_runtime.load_acquire();
  return runtime && runtime->engine().admit_foreign(address, is_store);
}

void before_fork() {
  if (Runtime* runtime = g_runtime.load_acquire()) runtime->lock_for_fork();
}
void after_fork_in_parent() {
  if (Runtime* runtime = g_runtime.load_acquire()) runtime->unlock_after_fork();
}
void after_fork_in_child() {
  if (Runtime* runtime = g_runtime.load_acquire()) runtime->forked();
}

Runtime* make_runtime() {
  SPW_CHECK(g_options);
  auto made = Runtime::create(*g_options);
  if (!made) fatal(kExitUsage, made.status().message());
  Runtime* runtime = made->release();  // lives as long as the process
  if (Status status = install_fault_handler(&admit_foreign); !status) fatal(kExitUsage, status.message());
  return runtime;
}

Result<std::unique_ptr<store::Store>> open_file_store(int fd, bool) {
  Result<std::unique_ptr<store::FileStore>> opened = store::FileStore::open_descriptor(fd, "a mapped file");
  if (!opened) return opened.status();
  return std::unique_ptr<store::Store>(std::move(*opened));
}

void connect(Runtime& runtime) {
  static interpose::InterposeContext context;
  context.heap = &runtime.heap();
  context.regions = &runtime.regions();
  context.access = &runtime.engine();
  context.threshold_bytes = g_options->threshold_bytes;
  context.quota_bytes = g_options->quota_bytes;
  context.open_file_store = &open_file_store;
  interpose::set_context(&context);
}

__attribute__((constructor)) void library_loaded() {
  read_options();
  pthread_atfork(&before_fork, &after_fork_in_parent, &after_fork_in_child);
  interpose::set_initialiser([] { ensure_runtime(); });
}

__attribute__((destructor)) void process_ends() {
  if (Runtime* runtime = g_runtime.load_acquire()) runtime->finish();
}

}  // namespace

Runtime* current_runtime() { return g_runtime.load_acquire(); }

Runtime* ensure_runtime() {
  if (Runtime* runtime = g_runtime.load_acquire()) return runtime;  // pairs with the release below
  if (t_making) return nullptr;
  pthread_mutex_lock(&g_making);
  Runtime* runtime = g_runtime.load_relaxed();
  if (!runtime) {
    t_making = true;
    runtime = make_runtime();
    connect(*runtime);
    g_runtime.store_release(runtime);
    t_making = false;
  }
  pthread_mutex_unlock(&g_making);
  return runtime;
}

}  // namespace spw::runtime
