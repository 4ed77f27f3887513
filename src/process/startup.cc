#include "process/startup.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "access/context.h"
#include "base/atomic.h"
#include "base/check.h"
#include "files/path_patterns.h"
#include "libc/aio/shadow.h"
#include "libc/alloc/rules.h"
#include "libc/io/buffered.h"
#include "libc/map/mapping.h"
#include "libc/map/marks.h"
#include "libc/process/forks.h"
#include "libc/signals/fault_signal.h"
#include "libc/signals/signal_lock.h"
#include "libc/system_calls/dispatch.h"
#include "platform/own_addresses.h"
#include "platform/record_locks.h"
#include "platform/shared_mapping.h"
#include "platform/thread.h"
#include "process/closing.h"
#include "process/durable_process.h"
#include "process/engine_choice.h"
#include "process/fatal.h"
#include "process/fault_handler.h"
#include "process/forked_child.h"
#include "store/engine/engine.h"
#include "store/file_store.h"

extern "C" int __spw_hint_table_error;  // of libspillway_first.so

namespace spw::process {

namespace {

Atomic<Runtime*> g_runtime{nullptr};
pthread_mutex_t g_making = PTHREAD_MUTEX_INITIALIZER;
thread_local bool t_making = false;
access::Context g_context;
Options* g_options = nullptr;
const LoadedCode* g_code = nullptr;
const Result<EngineKind>* g_choice = nullptr;  // of the engine, for g_options as they are

void read_options() {
  std::vector<std::string> warnings;
  Result<Options> options = options_of_process(&warnings);
  if (!options) fatal(kExitUsage, options.status().message());
  for (const std::string& line : warnings) warn(line);
  g_options = new Options(std::move(*options));
}

bool admit_fault(const Fault& fault) {
  Runtime* runtime = g_runtime.load_acquire();
  return runtime && runtime->admit_fault(fault);
}

[[noreturn]] void cannot_read(const std::string& path, uint64_t offset_bytes) {
  fatal(kExitFailure, "cannot read " + path + " at " + std::to_string(offset_bytes) +
                          ", which the program has mapped: the device failed, or the file is shorter now");
}

// A mapped file that the kernel serves ends with a line of ours, as
// one does that the cache serves, unless the program wants the signal. So does a persistent region.
void explain_bus_error(uintptr_t address, bool is_own) {
  if (!libc::is_left_to_kernel(SIGBUS)) return;
  InRuntime guard;
  DurableProcess::explain_bus_error(address);
  Runtime* runtime = g_runtime.load_acquire();
  if (is_own || runtime == nullptr) return;
  if (page_cache::Mappings* reads = runtime->mapped_reads())
    if (const auto mapping = reads->table().find(address))
      cannot_read(files::path_of(mapping->file->fd()), mapping->offset_bytes + (address - mapping->begin));
  if (!runtime->manages_other_reads()) return;
  if (const auto mapping = platform::read_only_shared_mapping_at(address))
    cannot_read(mapping->path, mapping->offset_bytes);
}

// While a process forks, its thread is inside the runtime: handlers of signals wait, which might touch managed memory.
std::optional<InRuntime> g_forks_inside;  // under g_making
// Whoever is making the runtime has made it.
void before_fork() {
  if (files::FileCalls* calls = libc::file_calls()) calls->before_fork();
  InRuntime guard;
  pthread_mutex_lock(&g_making);
  g_forks_inside.emplace();
  Runtime* const runtime = g_runtime.load_acquire();
  if (runtime == nullptr) return;
  libc::lock_mappings_for_fork();
  runtime->lock_for_fork();
}
void after_fork_in_parent() {
  InRuntime guard;
  if (Runtime* runtime = g_runtime.load_acquire()) {
    runtime->unlock_after_fork();
    libc::unlock_mappings_after_fork();
    let_children_go();
  }
  g_forks_inside.reset();
  pthread_mutex_unlock(&g_making);
}

Status take_bus_errors() { return install_fault_handler(SIGBUS, &admit_fault, &explain_bus_error); }

Status take_faults() {
  for (const int signal : {SIGBUS, SIGSYS}) libc::keep_unblocked(signal);
  if (Status status = take_bus_errors(); !status) return status;
  return libc::prepare_dispatch();
}

BlockId block_at(uintptr_t address) {
  return BlockId((address - SPW_MANAGED_BASE) / g_context.regions->block_bytes());
}

// Where the parts that a child has of its own are made.
bool pin_made_blocks(uintptr_t begin, uint64_t bytes) {
  PinnedRanges& pinned = g_runtime.load_acquire()->pinned();
  return pinned.pin(block_at(begin), bytes / g_context.regions->block_bytes()).is_ok();
}
bool pin_blocks(uintptr_t begin, uint64_t bytes) {
  await_parts_of_child();
  return pin_made_blocks(begin, bytes);
}
void unpin_blocks(uintptr_t begin, uint64_t bytes) {
  await_parts_of_child();
  PinnedRanges& pinned = g_runtime.load_acquire()->pinned();
  (void)pinned.unpin(block_at(begin), bytes / g_context.regions->block_bytes()).is_ok();
}

void parts_of_child_made(Runtime& made) {
  g_context.mapped_reads = made.mapped_reads();
  access::Context context = g_context;
  context.pins.pin = &pin_made_blocks;
  libc::hold_what_is_inherited(context);
}

void go_on_in_child(Runtime& runtime, bool is_watched, bool starts_at_once) {
  access::kernel_reaches_no_more();
  g_context.mapped_reads = nullptr;
  if (g_options->faults == Faults::kThreads)
    if (Status status = take_faults(); !status) fatal(kExitFailure, status.message());
  if (is_watched) {
    libc::threads_serve_faults_from_now_on();
    libc::dispatch_if_wanted();
  }
  child_begins(runtime, is_watched && starts_at_once, &parts_of_child_made);
  libc::mappings_in_child();
}

// `by_libc`: which has put its own locks in order, so that a thread can be started.
void begin_in_child(bool by_libc) {
  platform::Thread::in_child();
  InRuntime guard;
  libc::signals_forked();
  libc::shadows_forked();
  libc::dispatch_forked();
  libc::use_file_calls(nullptr);
  DurableProcess::forked();
  platform::record_locks_in_child();
  store::engines_in_child();
  g_forks_inside.reset();
  pthread_mutex_unlock(&g_making);
  Runtime* const runtime = g_runtime.load_acquire();
  if (runtime == nullptr) return;
  const auto how = runtime->forked();
  if (how != access::Engine::InChild::kRefused)
    return go_on_in_child(*runtime, how == access::Engine::InChild::kWatched, by_libc);
  libc::unlock_mappings_after_fork();
  let_children_go();
  libc::set_allocation_rules({});
  access::note_forked();
}
void after_fork_in_child() { begin_in_child(true); }
void after_other_fork_in_child() { begin_in_child(false); }

Runtime* make_runtime() {
  SPW_CHECK(g_options);
  if (!*g_choice) fatal(kExitUsage, g_choice->status().message());
  platform::own_addresses().reserve();
  auto made = Runtime::create(*g_options, **g_choice, *g_code);
  if (!made) fatal(kExitUsage, made.status().message());
  Runtime* runtime = made->release();  // lives as long as the process
  Status status = install_fault_handler(SIGSEGV, &admit_fault, &explain_bus_error);
  if (status && (g_options->faults != Faults::kThreads || runtime->mapped_reads() != nullptr))
    status = take_bus_errors();
  if (status && g_options->faults != Faults::kThreads && runtime->is_in_place())
    status = libc::prepare_dispatch();
  if (!status) fatal(kExitUsage, status.message());
  return runtime;
}

Result<std::unique_ptr<store::Store>> open_file_store(int fd, bool) {
  Result<std::unique_ptr<store::FileStore>> opened =
      store::FileStore::open_descriptor(fd, files::path_of(fd));
  if (!opened) return opened.status();
  return std::unique_ptr<store::Store>(std::move(*opened));
}

bool maps_file(int fd) {
  if (g_options->map_files == kMapFilesByProgram) return g_code->is_recompiled();
  const std::string path = files::path_of(fd);
  return !path.empty() && files::matches_any(g_options->map_files, path);
}

void connect(Runtime& runtime) {
  access::Context& context = g_context;
  context.heap = &runtime.heap();
  context.regions = &runtime.regions();
  context.access = &runtime.engine();
  context.memory_bytes = g_options->memory_bytes;
  context.open_file_store = &open_file_store;
  context.in_place = runtime.is_in_place();
  context.in_place_at_first = runtime.engine().has_view();
  if (runtime.is_in_place()) {
    context.maps_file = &maps_file;
    context.pins = {&pin_blocks, &unpin_blocks, &await_parts_of_child};
  }
  context.spills_in_clear = g_options->encrypt != Switch::kOn;
  context.mapped_reads = runtime.mapped_reads();
  context.manages_other_reads = runtime.manages_other_reads();
  context.warn = &warn;
  access::set_context(&context);
}

// With the mapped engine every allocation of the process may be managed; the engine is made, or refused, by the first
// that is.
void decide_what_is_managed() {
  g_choice = new Result<EngineKind>(choose_engine(g_options->engine, *g_code, !g_options->buffer.empty()));
  const bool whole_process = !*g_choice || **g_choice == EngineKind::kMapped;
  libc::set_allocation_rules({g_options->threshold_bytes, g_options->quota_bytes, whole_process});
}

// The first file that is to be buffered makes the runtime.
files::Descriptors* make_descriptors() {
  Runtime* runtime = ensure_runtime();
  return runtime == nullptr ? nullptr : &runtime->descriptors();
}

const OptionInfo* find_option(std::string_view name) {
  for (const OptionInfo& info : option_infos())
    if (info.name == name) return &info;
  return nullptr;
}

// The program's libstdc++ puts memory by for exceptions when it is initialised, of a size that would be managed and
// make an engine for every program in C++. So it comes first; that is what opening a library does which is loaded,
// but not initialised yet.
void initialise_libstdcxx() { (void)dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_NOLOAD); }

// Of what exit(3) calls this comes near the end, behind what the program has asked for and behind the destructors of
// libraries, ours too; in a process that has opened this library by itself it comes before those. An exit() within
// exit() goes on with the calls that are left, and with another status.
void exit_ends(int status, void*) {
  Runtime* const runtime = g_runtime.load_acquire();
  if (runtime == nullptr || runtime->write_files_at_end()) return;
  if (const int code = exit_code_after(status, false); code != status) std::exit(code);
}

// Also before _exit().
void without_runtime_ends() {
  if (g_runtime.load_acquire() == nullptr && g_options->quiet == Switch::kOff) tell_of_others();
}

__attribute__((constructor)) void library_loaded() {
  const int before = errno;
  initialise_libstdcxx();
  read_options();
  begin_closing();
  TreeCap::keep_inherited();
  g_code = new LoadedCode(loaded_code());
  // Something else may have the addresses (the address sanitizer has): only code with hints cannot do without.
  if (__spw_hint_table_error != 0 && g_code->has_hints)
    fatal(kExitUsage,
          Status(__spw_hint_table_error, "cannot map the table of residency hints at its fixed address")
              .message());
  libc::actions_become_ours();
  libc::keep_unblocked(SIGSEGV);
  if (g_options->faults != Faults::kThreads)
    for (const int signal : {SIGBUS, SIGSYS}) libc::keep_unblocked(signal);
  decide_what_is_managed();
  pthread_atfork(&before_fork, &after_fork_in_parent, &after_fork_in_child);
  if (::on_exit(&exit_ends, nullptr) != 0) warn("the end of the program cannot be told of lost writes");
  libc::flush_at_quick_exit();
  libc::set_end_handler(&without_runtime_ends);
  libc::set_fork_handlers({&before_fork, &after_fork_in_parent, &after_other_fork_in_child});
  access::set_initialiser([] { ensure_runtime(); });
  if (!g_options->buffer.empty())
    libc::use_file_calls(new files::FileCalls(&make_descriptors, g_options->buffer, &warn));
  errno = before;
}

__attribute__((destructor)) void process_ends() {
  if (Runtime* runtime = g_runtime.load_acquire()) return runtime->finish();
  if (!g_options->memory_is_auto) tell_if_over(g_options->memory_bytes);
  without_runtime_ends();
}

}  // namespace

const Options& process_options() {
  if (g_options == nullptr) read_options();
  return *g_options;
}
Status expect_bus_errors() { return take_bus_errors(); }
Runtime* current_runtime() { return g_runtime.load_acquire(); }

Status override_option(std::string_view name, std::string_view value) {
  static std::vector<std::string>* set =
      new std::vector<std::string>;  // "SPILLWAY_BLOCK=64K", the latest first
  std::string plain(name);
  std::replace(plain.begin(), plain.end(), '_', '-');
  const OptionInfo* info = find_option(plain);
  if (!info) {
    std::string known;
    for (const OptionInfo& each : option_infos())
      known += (known.empty() ? "" : ", ") + std::string(each.name);
    return Status::sentence(EINVAL, "\"" + plain + "\" is not an option; the options are " + known);
  }
  Options scratch;
  if (Status status = set_option(scratch, *info, plain, value); !status) return status;
  pthread_mutex_lock(&g_making);
  Status status = Status::sentence(EBUSY, "options are set before managed memory is used");
  if (!g_runtime.load_relaxed() && g_options) {
    set->insert(set->begin(), environment_variable(plain) + "=" + std::string(value));
    std::vector<std::string> told_already;
    Result<Options> options = options_of_process(&told_already, *set);
    status = options.status();
    if (options) {
      *g_options = std::move(*options);
      decide_what_is_managed();
    } else {
      set->erase(set->begin());
    }
  }
  pthread_mutex_unlock(&g_making);
  return status;
}

Runtime* ensure_runtime() {
  if (Runtime* runtime = g_runtime.load_acquire()) {  // pairs with the release below
    await_parts_of_child();
    return runtime;
  }
  if (t_making) return nullptr;
  const int before = errno;
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
  errno = before;
  return runtime;
}

}  // namespace spw::process
