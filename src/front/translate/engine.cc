#include "front/translate/engine.h"

#include <algorithm>

#include "base/check.h"
#include "base/units.h"
#include "platform/memory.h"

// What inlined code sees before its thread has a translator: one entry that matches nothing.
static __spw_satc_entry g_no_entry;
extern "C" {
__attribute__((visibility("default"),
               tls_model("initial-exec"))) thread_local __spw_thread __spw_thread_v1 = {&g_no_entry, 0, 0};
}

namespace spw::front {

namespace {

// The entry points are C functions without a context: they find the engine here. Written once at start.
Atomic<TranslatedEngine*> g_engine{nullptr};
thread_local Translator* t_translator = nullptr;

// Aliases are pins like any other: a sixteenth of a partition at most.
uint32_t alias_slots(const cache::SharedCache& cache, const EngineOptions& options) {
  if (!options.frames) return 0;
  constexpr uint32_t kSlotsMin = 8;
  return std::clamp(cache.frames_per_partition() / 16, kSlotsMin, kAliasSlotsMax);
}

void reset_thread_block() { __spw_thread_v1 = {&g_no_entry, 0, 0}; }

}  // namespace

TranslatedEngine::TranslatedEngine(cache::SharedCache& cache, const EngineOptions& options,
                                   void (*fatal)(const Status&))
    : config_{&cache,   options.block_shift, cache.partition_map(), fatal,
              &budget_, &satc_bytes_,        options.satc},
      budget_(cache.frames_per_partition(), cache.partition_map().count(), options.expected_threads,
              alias_slots(cache, options) + kHeldWindowsMax) {
  if (uint32_t slots = alias_slots(cache, options)) aliases_.emplace(config_, *options.frames, slots);
  SPW_CHECK(pthread_key_create(&key_, &TranslatedEngine::thread_ended) == 0);
  SPW_CHECK(g_engine.load_relaxed() == nullptr);
  g_engine.store_release(this);  // pairs with the acquire in the entry points: they see a whole engine
}

TranslatedEngine::~TranslatedEngine() {
  end_thread();
  g_engine.store_release(nullptr);
  pthread_key_delete(key_);
}

Translator& TranslatedEngine::translator() {
  if (t_translator) [[likely]]
    return *t_translator;
  return register_thread();
}

Translator& TranslatedEngine::register_thread() {
  if (forked_) config_.fatal(region::touched_in_child());
  Result<SatcShape> shape = budget_.acquire();
  if (!shape) config_.fatal(shape.status());
  Result<cache::Client*> client = config_.cache->open_client();
  if (!client) config_.fatal(client.status());
  t_translator = new Translator(config_, **client, *shape, __spw_thread_v1);
  {
    std::lock_guard lock(live_mutex_);
    live_.push_back({&__spw_thread_v1, 0});
  }
  pthread_setspecific(key_, t_translator);
  return *t_translator;
}

void TranslatedEngine::thread_ended(void* translator) {
  if (TranslatedEngine* engine = g_engine.load_acquire()) engine->close(static_cast<Translator*>(translator));
}

// The thread may go on counting: what it writes meanwhile is seen by the next, or not at all at the process's end.
void TranslatedEngine::LiveThread::settle() {
  const uint64_t hits = __atomic_load_n(&block->direct_hits, __ATOMIC_RELAXED);
  telemetry::count(telemetry::Counter::direct_hits, hits - counted);
  counted = hits;
}

void TranslatedEngine::settle_counters() {
  std::lock_guard lock(live_mutex_);
  for (LiveThread& thread : live_) thread.settle();
}

// This one, whose block is about to go.
void TranslatedEngine::forget_thread() {
  std::lock_guard lock(live_mutex_);
  const auto own = std::find_if(live_.begin(), live_.end(),
                                [](const LiveThread& thread) { return thread.block == &__spw_thread_v1; });
  if (own == live_.end()) return;
  own->settle();
  *own = live_.back();
  live_.pop_back();
}

void TranslatedEngine::end_thread() {
  if (!t_translator || forked_) return;
  pthread_setspecific(key_, nullptr);
  close(t_translator);
}

void TranslatedEngine::close(Translator* translator) {
  if (forked_) return;
  forget_thread();
  reset_thread_block();
  t_translator = nullptr;
  translator->flush();
  SatcShape shape = translator->shape();
  config_.cache->close_client(&translator->client());
  delete translator;
  budget_.release(shape);
}

bool TranslatedEngine::admit_fault(uintptr_t address, bool store) {
  if (!aliases_ || forked_) return false;
  telemetry::count(telemetry::Counter::foreign_faults);
  Status status = aliases_->admit(translator().client(), address, store);
  if (!status) config_.fatal(status);
  return true;
}

bool TranslatedEngine::withdraw(BlockId first, uint64_t blocks) {
  const unsigned shift = config_.block_shift;
  if (aliases_ && !forked_)
    aliases_->withdraw(translator().client(), SPW_MANAGED_BASE + (first.value << shift), blocks << shift);
  translator().drop(first, blocks);
  return false;
}

void TranslatedEngine::forked() {
  forked_ = true;
  t_translator = nullptr;
  __spw_thread_v1 = {&g_no_entry, 0, 0};
}

region::Window TranslatedEngine::pin(uintptr_t address, size_t max_bytes, cache::Access access) {
  return translator().open_window(address, max_bytes, access);
}

void TranslatedEngine::unpin(const region::Window&) {}

bool TranslatedEngine::copy_few(void* to, const void* from, size_t bytes) {
  translator().copy_few(to, from, bytes);
  return true;
}

region::Window TranslatedEngine::hold(uintptr_t address, size_t max_bytes, cache::Access access) {
  Translator& own = translator();
  if (own.free_windows() == 0) return {};
  if (held_windows_.fetch_add_relaxed(1) >= kHeldWindowsMax) {
    held_windows_.fetch_sub_relaxed(1);
    return {};
  }
  return own.pin_window(address, max_bytes, access);
}

bool TranslatedEngine::release(const region::Window& window) {
  if (!translator().unpin_window(window)) return false;
  held_windows_.fetch_sub_relaxed(1);
  return true;
}

}  // namespace spw::front

// The out-of-line entry points of abi.h. trampolines.S keeps the registers that preserve_most promises and
// comes here.
namespace {

spw::front::Translator& entered(spw::telemetry::Counter counter) {
  spw::front::TranslatedEngine* engine = spw::front::g_engine.load_acquire();
  SPW_CHECK(engine);  // an address in managed space before there is a managed space
  spw::front::Translator& translator = engine->translator();
  spw::telemetry::count(counter);
  return translator;
}

}  // namespace

extern "C" {

__attribute__((visibility("hidden"))) const void* spw_translate_load(uintptr_t address, size_t size) {
  auto& translator = entered(spw::telemetry::Counter::direct_misses);
  if (translator.crosses_block(address, size)) [[unlikely]]
    return translator.read_across(address, size);
  return translator.translate(address, false);
}

__attribute__((visibility("hidden"))) void* spw_translate_store(uintptr_t address, size_t size) {
  auto& translator = entered(spw::telemetry::Counter::direct_misses);
  SPW_CHECK(!translator.crosses_block(address, size));
  return translator.translate(address, true);
}

__attribute__((visibility("hidden"))) void* spw_translate_span(uintptr_t address, size_t size,
                                                               uint64_t store) {
  return entered(spw::telemetry::Counter::direct_misses).span(address, size, store != 0);
}

__attribute__((visibility("hidden"))) void spw_translate_store_across(uintptr_t address, const void* bytes,
                                                                      size_t size) {
  entered(spw::telemetry::Counter::direct_misses)
      .write_across(address, static_cast<const std::byte*>(bytes), size);
}

// Instrumented modules refer to this; a runtime of another version does not define it.
__attribute__((visibility("default"))) extern const char SPW_ABI_VERSION_SYMBOL;
const char SPW_ABI_VERSION_SYMBOL = SPW_ABI_VERSION;
}
