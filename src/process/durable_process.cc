#include "process/durable_process.h"

#include <pthread.h>

#include <atomic>

#include "abi/durable.h"
#include "base/in_runtime.h"
#include "durable/region_file.h"
#include "libc/waits/lock_watch.h"
#include "process/fatal.h"
#include "process/options.h"
#include "process/startup.h"

// Of libspillway.so, where its programs find it.
__attribute__((visibility("default"))) struct spw_durable_range __spw_durable_range_v1;

namespace spw::process {

namespace {

Atomic<DurableProcess*> g_process{nullptr};
Atomic<bool> g_forked{false};
thread_local durable::Thread* t_thread = nullptr;

[[noreturn]] void stop(const Status& status) {
  fatal(kExitFailure,
        "a durable section cannot go on: " + status.message() +
            "; what had been committed is safe, and this section is undone when the region is opened again");
}

constexpr libc::LockWatch kWatch{[](const void* lock) { g_process.load_acquire()->acquired(lock); },
                                 [](const void* lock) { g_process.load_acquire()->releasing(lock); }};

void thread_ended(void* thread) {
  InRuntime guard;
  const std::unique_ptr<durable::Thread> part(static_cast<durable::Thread*>(thread));
  t_thread = nullptr;  // whatever ends after this has a part of its own, and comes here again
  DurableProcess* process = g_process.load_acquire();
  if (process == nullptr || g_forked.load_relaxed()) return;
  if (Status status = process->regions().ended(*part); !status) warn(status.message());
}

Status forked_child() {
  return Status::sentence(ECHILD,
                          "a forked child has no persistent regions: their memory is its parent's alone");
}

Result<durable::CombinerOptions> combiner_of(const DurableProcess::Settings& settings) {
  const Options& options = process_options();
  durable::CombinerOptions defaults;
  defaults.technique = static_cast<durable::Technique>(options.durable);
  defaults.fixed_size = static_cast<uint32_t>(options.durable_lines);
  defaults.burst_writes = settings.burst_stores != 0 ? settings.burst_stores : options.durable_burst;
  defaults.profiles = settings.profiles;
  if (settings.technique.empty()) return defaults;
  return durable::parse_technique(settings.technique, defaults);
}

}  // namespace

DurableProcess::DurableProcess() { pthread_key_create(&key_, &thread_ended); }

DurableProcess& DurableProcess::get() {
  static DurableProcess* const process = [] {
    auto* made = new DurableProcess;  // threads may use it until the process is gone
    g_process.store_release(made);
    return made;
  }();
  return *process;
}

Status DurableProcess::usable() { return g_forked.load_relaxed() ? forked_child() : Status(); }

DurableProcess* DurableProcess::current() { return g_process.load_acquire(); }

durable::Thread& DurableProcess::this_thread() {
  if (t_thread == nullptr) [[unlikely]] {
    t_thread = new durable::Thread;
    pthread_setspecific(key_, t_thread);
  }
  return *t_thread;
}

Result<unsigned> DurableProcess::open(const std::string& path, const Settings& settings) {
  if (g_forked.load_relaxed()) return forked_child();
  durable::PersistentRegion::Options options;
  if (settings.domain == "pmem")
    options.file.domain = durable::DomainKind::kPmem;
  else if (settings.domain == "block")
    options.file.domain = durable::DomainKind::kBlock;
  else if (!settings.domain.empty() && settings.domain != "auto")
    return Status::sentence(EINVAL, "domain \"" + settings.domain + "\": it is auto, pmem or block");
  auto combiner = combiner_of(settings);
  if (!combiner) return combiner.status();
  options.combiner = *combiner;
  options.file.flush = static_cast<platform::LineInstruction>(process_options().durable_flush);
  options.file.may_create = !settings.must_exist;
  if (settings.capacity_bytes != 0) options.file.layout.capacity_bytes = settings.capacity_bytes;
  if (settings.threads != 0) options.file.layout.slots = settings.threads;
  std::lock_guard lock(mutex_);
  if (Status status = expect_bus_errors(); !status) return status;
  auto region = durable::PersistentRegion::open(path, options);
  if (!region) return region.status();
  auto number = regions_.add(std::move(*region));
  if (!number) return number.status();
  publish_range();
  libc::set_lock_watch(&kWatch);
  return number;
}

Status DurableProcess::close(unsigned region) {
  std::lock_guard lock(mutex_);
  if (Status status = regions_.remove(this_thread(), region); !status) return status;
  publish_range();
  return {};
}

// As abi/durable.h has it: while any region is open `first` stays, and `bytes` only grows.
void DurableProcess::publish_range() {
  spw_durable_range& range = __spw_durable_range_v1;
  std::atomic_ref(range.first).store(durable::kAddressFirst, std::memory_order_release);
  const uintptr_t end = regions_.end_address();
  const uint64_t before = std::atomic_ref(range.bytes).load(std::memory_order_relaxed);
  std::atomic_ref(range.bytes)
      .store(end == 0 ? 0 : std::max(before, end - durable::kAddressFirst), std::memory_order_release);
}

void DurableProcess::acquired(const void* lock) {
  InRuntime guard;
  if (g_forked.load_relaxed()) return;
  if (Status status = regions_.acquired(this_thread(), lock); !status) stop(status);
}

void DurableProcess::releasing(const void* lock) {
  InRuntime guard;
  if (g_forked.load_relaxed()) return;
  if (Status status = regions_.releasing(this_thread(), lock); !status) stop(status);
}

void DurableProcess::before_store(uintptr_t address, size_t bytes) {
  InRuntime guard;
  if (bytes == 0) return;
  Status status = regions_.before_store(this_thread(), address, bytes);
  if (status) [[likely]]
    return;
  if (regions_.find(address) != durable::kRegionsMax) stop(status);  // else it is between two regions
}

void DurableProcess::explain_bus_error(uintptr_t address) {
  DurableProcess* const process = current();
  const unsigned number = process == nullptr ? durable::kRegionsMax : process->regions_.find(address);
  if (number == durable::kRegionsMax) return;
  const durable::PersistentRegion& region = *process->regions_.region(number);
  fatal(kExitFailure, "cannot reach " + region.path() + " at " + std::to_string(address - region.base()) +
                          ", an open persistent region: the device failed, or the file is shorter now");
}

void DurableProcess::forked() {
  g_forked.store_relaxed(true);
  if (DurableProcess* process = current()) process->regions_.forked();
  libc::set_lock_watch(nullptr);
  __spw_durable_range_v1.bytes = 0;
}

}  // namespace spw::process

// Called by code that the pass has instrumented, by way of the entry point that keeps its registers.
extern "C" __attribute__((visibility("hidden"))) void spw_durable_before_store(void* address, size_t bytes) {
  if (spw::process::DurableProcess* process = spw::process::DurableProcess::current())
    process->before_store(reinterpret_cast<uintptr_t>(address), bytes);
}
