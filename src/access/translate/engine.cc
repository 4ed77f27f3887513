#include "access/translate/engine.h"

#include <algorithm>
#include <utility>

#include "access/version_switch.h"
#include "base/check.h"
#include "base/in_runtime.h"
#include "base/units.h"
#include "platform/memory.h"

// What inlined code sees before its thread has a translator: one entry that matches nothing.
static __spw_satc_entry g_no_entry;
extern "C" {
__attribute__((visibility("default"),
               tls_model("initial-exec"))) thread_local __spw_thread __spw_thread_v1 = {&g_no_entry, 0, 0};
}

namespace spw::access {

namespace {

// The entry points are C functions without a context: they find the engine here. Written once at start.
Atomic<TranslatedEngine*> g_engine{nullptr};
// Of the thread outside of handlers; nullptr before its first access, and while a handler runs.
thread_local Translator* t_translator = nullptr;

// [0]: the thread's own; [n]: that of a handler that interrupts n - 1 others, which runs on stacks[n - 1].
struct Levels {
  Translator* translators[kHandlersDeepMax + 1];
  access::HandlerStack stacks[kHandlersDeepMax];
  int level;
};
constinit thread_local Levels t_levels{};

PinBudget::For user_of(int level) { return level == 0 ? PinBudget::For::kThread : PinBudget::For::kHandlers; }

// Aliases are pins like any other: a sixteenth of a partition at most.
uint32_t alias_slots(const cache::SharedCache& cache, const EngineOptions& options) {
  if (!options.frames) return 0;
  constexpr uint32_t kSlotsMin = 8;
  return std::clamp(cache.frames_per_partition() / 16, kSlotsMin, kAliasSlotsMax);
}

void hide_table() {
  __spw_thread_v1.direct = &g_no_entry;
  __spw_thread_v1.direct_mask_bytes = 0;
}

void return_to(int level) {
  t_levels.level = level;
  if (level > 0) return;
  t_translator = t_levels.translators[0];
  t_translator ? t_translator->present() : hide_table();
}

void note_left_handlers(uintptr_t stack_pointer) {
  int level = t_levels.level;
  while (level > 0 && t_levels.stacks[level - 1].is_left(stack_pointer)) --level;
  if (level != t_levels.level) return_to(level);
}

void reset_thread() {
  t_translator = nullptr;
  t_levels = {};
  __spw_thread_v1 = {&g_no_entry, 0, 0};
}

}  // namespace

TranslatedEngine::TranslatedEngine(cache::SharedCache& cache, const EngineOptions& options,
                                   void (*fatal)(const Status&))
    : Engine(&cache),
      config_{&cache,   options.block_shift, cache.partition_map(), fatal,
              &budget_, &satc_bytes_,        options.satc},
      budget_(cache.frames_per_partition(), cache.partition_map().count(), options.expected_threads,
              alias_slots(cache, options) + kHeldWindowsMax),
      view_ends_(options.view_ends) {
  if (uint32_t slots = alias_slots(cache, options)) aliases_.emplace(config_, *options.frames, slots);
  if (aliases_ && options.blocks) view_.emplace(cache, *options.blocks, *options.frames, options.block_shift);
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
  return make_translator();
}

Translator& TranslatedEngine::entered() {
  if (t_translator) [[likely]]
    return *t_translator;
  InRuntime guard;
  note_left_handlers(reinterpret_cast<uintptr_t>(__builtin_frame_address(0)));
  return translator();
}

Translator& TranslatedEngine::make_translator() {
  InRuntime guard;
  const int level = t_levels.level;
  Translator*& made = t_levels.translators[level];
  if (made) return *made;
  if (forked_) config_.fatal(access::touched_in_child());
  Result<SatcShape> shape = budget_.acquire(user_of(level));
  if (!shape) config_.fatal(shape.status());
  Result<cache::Client*> client = config_.cache->open_client();
  if (!client) config_.fatal(client.status());
  TranslatorConfig config = config_;
  if (level > 0) {
    config.budget = nullptr;
    config.levels = SatcLevels::kNone;
  }
  made = new Translator(config, **client, *shape, __spw_thread_v1);
  if (level == 0) {
    t_translator = made;
    note_thread();
  }
  pthread_setspecific(key_, &t_levels);
  return *made;
}

int TranslatedEngine::handler_begins(const access::HandlerStack& stack) {
  InRuntime guard;
  note_left_handlers(stack.interrupted);
  if (t_levels.level == kHandlersDeepMax) return -1;
  t_levels.stacks[t_levels.level++] = stack;
  t_translator = nullptr;
  hide_table();
  return t_levels.level;
}

void TranslatedEngine::handler_ends(int level) {
  InRuntime guard;
  if (t_levels.level >= level) return_to(level - 1);
}

void TranslatedEngine::thread_ended(void*) {
  if (TranslatedEngine* engine = g_engine.load_acquire()) engine->close_thread();
}

void TranslatedEngine::note_thread() {
  std::lock_guard lock(live_mutex_);
  live_.push_back({&__spw_thread_v1, 0});
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
  pthread_setspecific(key_, nullptr);
  close_thread();
}

void TranslatedEngine::close_thread() {
  if (forked_) return;
  InRuntime guard;
  forget_thread();
  const Levels ended = t_levels;
  reset_thread();
  for (int level = 0; level <= kHandlersDeepMax; ++level) {
    Translator* translator = ended.translators[level];
    if (!translator) continue;
    translator->flush();
    SatcShape shape = translator->shape();
    config_.cache->close_client(&translator->client());
    delete translator;
    budget_.release(shape, user_of(level));
  }
}

// ---- The resident view ----

uint64_t TranslatedEngine::metadata_bytes() const {
  return satc_bytes_.load_relaxed() + (view_ ? view_->metadata_bytes() : 0);
}

void TranslatedEngine::watch() {
  if (!has_view() || forked_) return;
  access::VersionSwitch::set(true);
  if (view_ends_) view_ends_();
  if (Status status = view_->end(translator().client()); !status) config_.fatal(status);
}

void TranslatedEngine::grow(BlockId, uint64_t, uint64_t live_bytes, bool) {
  if (view_ && !access::surely_fits(live_bytes, config_.cache->frame_limit(), config_.block_shift)) watch();
}

void TranslatedEngine::give_up_view() {
  if (TranslatedEngine* engine = g_engine.load_acquire()) engine->watch();
}

bool TranslatedEngine::admit_to_view(uintptr_t address, bool store) {
  if (!has_view() || forked_) return false;
  InRuntime guard;
  auto admission = view_->admit(translator().client(), address, store);
  if (!admission) config_.fatal(admission.status());
  if (*admission == ResidentView::Admission::kFull) watch();
  if (*admission != ResidentView::Admission::kServed) return false;
  telemetry::count(telemetry::Counter::view_faults);
  return true;
}

void TranslatedEngine::withdraw_from_view(BlockId first, uint64_t blocks) {
  if (!has_view() || forked_) return;
  if (Status status = view_->withdraw(translator().client(), first, blocks); !status) config_.fatal(status);
}

void TranslatedEngine::before_flush(BlockId first, uint64_t blocks) { withdraw_from_view(first, blocks); }

// ---- Foreign code ----

bool TranslatedEngine::admit_fault(uintptr_t address, bool store, bool) {
  if (forked_) config_.fatal(access::touched_in_child());
  if (!aliases_) return false;
  InRuntime guard;
  telemetry::count(telemetry::Counter::foreign_faults);
  Status status = aliases_->admit(translator().client(), address, store);
  if (!status) config_.fatal(status);
  return true;
}

bool TranslatedEngine::withdraw(BlockId first, uint64_t blocks) {
  const unsigned shift = config_.block_shift;
  withdraw_from_view(first, blocks);
  if (aliases_ && !forked_)
    aliases_->withdraw(translator().client(), SPW_MANAGED_BASE + (first.value << shift), blocks << shift);
  translator().drop(first, blocks);
  return false;
}

access::Engine::InChild TranslatedEngine::forked() {
  forked_ = true;
  reset_thread();
  return InChild::kRefused;
}

access::Window TranslatedEngine::pin(uintptr_t address, size_t max_bytes, cache::Access access) {
  return entered().open_window(address, max_bytes, access);
}

void TranslatedEngine::unpin(const access::Window&) {}

bool TranslatedEngine::copy_few(void* to, const void* from, size_t bytes) {
  entered().copy_few(to, from, bytes);
  return true;
}

access::Window TranslatedEngine::hold(uintptr_t address, size_t max_bytes, cache::Access access) {
  Translator& own = translator();
  if (own.free_windows() == 0) return {};
  if (held_windows_.fetch_add_relaxed(1) >= kHeldWindowsMax) {
    held_windows_.fetch_sub_relaxed(1);
    return {};
  }
  return own.pin_window(address, max_bytes, access);
}

bool TranslatedEngine::release(const access::Window& window) {
  if (!translator().unpin_window(window)) return false;
  held_windows_.fetch_sub_relaxed(1);
  return true;
}

}  // namespace spw::access

// The out-of-line entry points of abi.h. trampolines.S keeps the registers that preserve_most promises and comes here.
namespace {

spw::access::Translator& entered(spw::telemetry::Counter counter) {
  spw::access::TranslatedEngine* engine = spw::access::g_engine.load_acquire();
  SPW_CHECK(engine);  // an address in managed space before there is a managed space
  spw::access::Translator& translator = engine->entered();
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
