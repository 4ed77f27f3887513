#include "process/tree_cap.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "platform/own_descriptors.h"
#include "platform/proc_text.h"
#include "platform/raw_calls.h"

namespace spw::process {

using platform::ByteLock;

namespace {

constexpr uint64_t kMagic = 0x3265657254777053;  // "SpwTree2"
constexpr const char* kName = "spillway-tree";
// Below those of the runtime's own (platform/own_descriptors.h), above those of programs.
constexpr int kDescriptor = 700;
constexpr int64_t kStepShare = 64;
constexpr int64_t kTakenShareMin = 16;
// Of an equal share of the cap, what a member keeps whatever its pages' ages are.
constexpr int64_t kKeptShare = 2;
// Whose pages are so many times as old gives that many steps at once.
constexpr int64_t kMuchOlder = 8;
constexpr unsigned kLooksOfBeginner = 4;
constexpr uint64_t kAgeOfBeginnerNs = 1'000'000'000;
constexpr unsigned kCountEvery = 8;  // looks

struct Inherited {
  int fd = -1;
  int process = 0;  // which has the same under the same number
};

std::optional<Inherited> inherited() {
  const char* text = ::secure_getenv(kTreeVariable);
  if (text == nullptr) return std::nullopt;
  const std::string_view value(text);
  Inherited found;
  const auto fd = std::from_chars(value.begin(), value.end(), found.fd);
  if (fd.ec != std::errc() || fd.ptr == value.end() || *fd.ptr != ':') return std::nullopt;
  const auto process = std::from_chars(fd.ptr + 1, value.end(), found.process);
  if (process.ec != std::errc() || process.ptr != value.end()) return std::nullopt;
  return found;
}

bool is_ledger(int fd) {
  uint64_t magic = 0;
  return platform::raw::pread(fd, &magic, sizeof magic, 0) == sizeof magic && magic == kMagic;
}

std::string path_of(const std::string& process, int fd) {
  return "/proc/" + process + "/fd/" + std::to_string(fd);
}

// The slot whose byte this open file description has locked, by its file in /proc/PID/fdinfo; -1: none.
int locked_slot(const std::string& info) {
  auto text = platform::read_small_file(info);
  const size_t lock = text ? text->find("OFDLCK") : std::string::npos;
  if (lock == std::string::npos) return -1;
  unsigned begin = 0, end = 0;
  // "OFDLCK ADVISORY  WRITE -1 00:01:191861 3 3"
  if (std::sscanf(text->c_str() + lock, "OFDLCK %*s %*s %*s %*s %u %u", &begin, &end) != 2) return -1;
  return begin == end && begin < kTreeProcessesMax ? static_cast<int>(begin) : -1;
}

}  // namespace

// An Account, a word at a time.
struct TreeCap::Noted {
  static constexpr size_t kWords = sizeof(Account) / sizeof(uint64_t);
  Atomic<uint64_t> words[kWords];

  Account load() const {
    uint64_t all[kWords];
    for (size_t i = 0; i < kWords; ++i) all[i] = words[i].load_relaxed();
    return std::bit_cast<Account>(all);
  }
  void store(const Account& account) {
    const auto all = std::bit_cast<std::array<uint64_t, kWords>>(account);
    for (size_t i = 0; i < kWords; ++i) words[i].store_relaxed(all[i]);
  }
};
struct TreeCap::Slot {
  Atomic<int64_t> granted{0};
  Atomic<uint64_t> held{0};
  Atomic<uint64_t> age{0};
  Atomic<uint32_t> is_taken{0};
  Atomic<uint32_t> wants{0};
  Noted noted;
};
struct TreeCap::Ledger {
  uint64_t magic;
  uint64_t cap_bytes;
  Atomic<int64_t> free;
  Atomic<uint32_t> slots;  // that were ever taken: the first ones
  Atomic<uint32_t> has_told;
  Atomic<uint32_t> joins;
  Atomic<uint64_t> resident_most, needs_most;  // of all members at one time
  Noted ended;  // totals of those whose slots were taken back; under their slots' locks
  Slot slot[kTreeProcessesMax];
};
constinit const uint64_t TreeCap::kLedgerBytes = round_up(sizeof(Ledger), kMmuPageBytes);

namespace {
// Who is full with less than it is granted has a limit of its own.
bool needs_more(const TreeMember& mine, uint64_t cap) {
  const auto held = static_cast<int64_t>(mine.held);
  return held > mine.granted ||
         (mine.is_full && mine.granted - held < static_cast<int64_t>(cap) / kStepShare);
}
}  // namespace

int64_t share_change(const TreeMember& mine, const TreeOthers& others) {
  const auto cap = static_cast<int64_t>(others.cap), held = static_cast<int64_t>(mine.held);
  const int64_t step = cap / kStepShare, fair = cap / others.members;
  const bool needs = needs_more(mine, others.cap);
  const bool is_older = others.want && mine.age / 5 * 4 > others.youngest;
  if (needs && others.free > 0 && (!is_older || mine.granted < fair / kKeptShare))
    return std::min(others.free, std::max({cap / kTakenShareMin, mine.granted / 4, held - mine.granted}));
  if (!others.want && others.free >= 0) return 0;
  if (!needs) return -std::max<int64_t>(mine.granted - held - step, 0);
  if (others.free < 0 && mine.granted > fair)
    return -std::min({mine.granted - fair, -others.free, kMuchOlder * step});
  if (!is_older) return 0;
  const bool is_much_older = mine.age / static_cast<uint64_t>(kMuchOlder) > others.youngest;
  return -std::clamp<int64_t>(mine.granted - fair / kKeptShare, 0, is_much_older ? kMuchOlder * step : step);
}

// Of which all is free.
Result<platform::File> TreeCap::make_ledger(uint64_t cap_bytes) {
  auto made = platform::create_memory_file(kName, kLedgerBytes);
  if (!made) return made;
  auto shared = platform::map_file(*made, 0, kLedgerBytes, platform::Protection::kReadWrite);
  if (!shared) return shared.status();
  auto* ledger = reinterpret_cast<Ledger*>(shared->data());
  ledger->magic = kMagic;
  ledger->cap_bytes = cap_bytes;
  ledger->free.store_relaxed(static_cast<int64_t>(cap_bytes));
  return made;
}

Status TreeCap::make_for_children(uint64_t cap_bytes) {
  auto made = make_ledger(cap_bytes);
  if (!made) return made.status();
  const int fd = ::fcntl(made->fd(), F_DUPFD, kDescriptor);  // stays open in what is executed
  if (fd < 0) return Status(errno, "cannot keep what the processes of a run share");
  const std::string value = std::to_string(fd) + ":" + std::to_string(::getpid());
  ::setenv(kTreeVariable, value.c_str(), 1);
  return {};
}

void TreeCap::keep_inherited() {
  if (const auto from = inherited(); from && is_ledger(from->fd)) platform::know_descriptor(from->fd);
}

Result<platform::File> TreeCap::inherited_ledger() {
  const auto from = inherited();
  if (!from) return Status(ENOENT, "the run has no ledger");
  auto file = platform::open_file(path_of("self", from->fd), O_RDWR);
  if (file && is_ledger(file->fd())) return file;
  file = platform::open_file(path_of(std::to_string(from->process), from->fd), O_RDWR);
  if (file && is_ledger(file->fd())) return file;
  return Status(ENOENT, "the run's ledger is not to be had");
}

bool TreeCap::is_root() {
  const auto from = inherited();
  return !from || from->process == ::getpid();
}

Result<TreeCap> TreeCap::look_on() {
  auto file = inherited_ledger();
  if (!file) return file.status();
  auto tree = map_file(*file);
  if (tree) tree->file_ = platform::File();
  return tree;
}

Result<TreeCap> TreeCap::join(uint64_t cap_bytes) {
  if (auto file = inherited_ledger()) return join_file(*file);
  auto own = make_ledger(cap_bytes);
  if (!own) return own.status();
  return join_file(*own);
}

Status TreeCap::read_ledger(const std::string& path, int slot, TreeShare& share) {
  auto file = platform::open_file(path, O_RDONLY);
  if (!file) return file.status();
  // Read, not mapped: it may become shorter at any moment.
  std::vector<uint64_t> copy(kLedgerBytes / sizeof(uint64_t));
  const ssize_t bytes = platform::raw::pread(file->fd(), copy.data(), kLedgerBytes, 0);
  const auto* ledger = reinterpret_cast<const Ledger*>(copy.data());
  if (bytes != static_cast<ssize_t>(kLedgerBytes) || ledger->magic != kMagic)
    return Status(EPROTO, "what the processes of a run share is of another version");
  share.cap_bytes = ledger->cap_bytes;
  share.free_bytes = ledger->free.load_relaxed();
  share.is_member = slot >= 0;
  if (!share.is_member) return {};
  const Slot& taken = ledger->slot[slot];
  share.granted_bytes = taken.granted.load_relaxed();
  share.held_bytes = taken.held.load_relaxed();
  share.wants = taken.wants.load_relaxed() != 0;
  return {};
}

// A process may have several ledgers open: what it inherited, its own description of that, and an outer run's. The one
// that it has a slot in is its own; without one, the one that was opened last.
Result<TreeShare> TreeCap::share_of(uint64_t process) {
  const std::string place = "/proc/" + std::to_string(process);
  const std::string wanted = std::string("/memfd:") + kName + " (deleted)";
  DIR* const descriptors = ::opendir((place + "/fd").c_str());
  const Status none(ENOENT, "process " + std::to_string(process) + " is in no run");
  if (descriptors == nullptr) return none;
  int found = -1, found_slot = -1;
  while (const dirent* entry = ::readdir(descriptors)) {
    char target[64];
    const ssize_t bytes = ::readlinkat(::dirfd(descriptors), entry->d_name, target, sizeof target);
    if (bytes <= 0 || std::string_view(target, static_cast<size_t>(bytes)) != wanted) continue;
    const int fd = std::atoi(entry->d_name), slot = locked_slot(place + "/fdinfo/" + entry->d_name);
    if (found_slot >= 0 || (slot < 0 && fd < found)) continue;
    found = fd;
    found_slot = slot;
  }
  ::closedir(descriptors);
  struct stat seen{};
  const std::string path = path_of(std::to_string(process), found);
  if (found < 0 || ::stat(path.c_str(), &seen) != 0) return none;
  TreeShare share;
  share.run = seen.st_ino;
  if (Status status = read_ledger(path, found_slot, share); !status) return status;
  return share;
}

Result<TreeCap> TreeCap::join_as_child() const { return join_file(file_); }

Result<TreeCap> TreeCap::map_file(const platform::File& inherited) {
  TreeCap joined;
  auto size = platform::file_size(inherited);
  if (!size) return size.status();
  if (*size < sizeof(Ledger)) return Status(EINVAL, "what the processes of a run share is another file");
  auto file = platform::open_again(inherited);
  if (!file) return file.status();
  auto shared = platform::map_file(*file, 0, kLedgerBytes, platform::Protection::kReadWrite);
  if (!shared) return shared.status();
  joined.file_ = std::move(*file);
  joined.shared_ = std::move(*shared);
  return joined;
}

Result<TreeCap> TreeCap::join_file(const platform::File& inherited) {
  auto joined = map_file(inherited);
  if (!joined) return joined;
  if (Status status = joined->take_slot(); !status) return status;
  return joined;
}

void TreeCap::note(const Account& mine_now) {
  mine().noted.store(mine_now);
  Account all;
  const uint32_t slots = std::min(ledger().slots.load_relaxed(), kTreeProcessesMax);
  for (unsigned i = 0; i < slots; ++i) {
    const Account one = ledger().slot[i].noted.load();
    all.resident_bytes += one.resident_bytes;
    all.needs_bytes += one.needs_bytes;
  }
  const auto raise = [](Atomic<uint64_t>& most, uint64_t now) {
    uint64_t before = most.load_relaxed();
    while (before < now && !most.cas_strong_acq_rel(before, now)) {
    }
  };
  raise(ledger().resident_most, all.resident_bytes);
  raise(ledger().needs_most, all.needs_bytes);
}

uint64_t TreeCap::resident_bytes() const {
  uint64_t bytes = 0;
  const uint32_t slots = std::min(ledger().slots.load_relaxed(), kTreeProcessesMax);
  for (unsigned i = 0; i < slots; ++i) bytes += ledger().slot[i].noted.load().resident_bytes;
  return bytes;
}

TreeCap::Account TreeCap::account() const {
  Account all = ledger().ended.load();
  const uint32_t slots = std::min(ledger().slots.load_relaxed(), kTreeProcessesMax);
  for (unsigned i = 0; i < slots; ++i) all.totals += ledger().slot[i].noted.load().totals;
  all.resident_bytes = ledger().resident_most.load_relaxed();
  all.needs_bytes = ledger().needs_most.load_relaxed();
  return all;
}

bool TreeCap::is_alone() const { return members_ == 1 && ledger().joins.load_relaxed() == joins_; }
int64_t TreeCap::free_bytes() const { return ledger().free.load_relaxed(); }
bool TreeCap::is_first_to_tell() { return ledger().has_told.exchange_acquire(1) == 0; }
TreeCap::Slot& TreeCap::mine() const { return ledger().slot[slot_]; }
uint64_t TreeCap::cap_bytes() const { return ledger().cap_bytes; }
int64_t TreeCap::granted() const { return mine().granted.load_relaxed(); }

// What a process that ended had. By who has the slot's lock.
void TreeCap::take_back(Slot& slot) {
  ledger().free.fetch_add_relaxed(slot.granted.load_relaxed());
  slot.granted.store_relaxed(0);
  slot.held.store_relaxed(0);
  const Account account = slot.noted.load();
  slot.noted.store({});
  for (size_t i = 0; i < sizeof(telemetry::RunTotals) / sizeof(uint64_t); ++i)
    ledger().ended.words[i].fetch_add_relaxed(
        std::bit_cast<std::array<uint64_t, sizeof(telemetry::RunTotals) / sizeof(uint64_t)>>(
            account.totals)[i]);
}

Status TreeCap::take_slot() {
  Ledger& all = ledger();
  (void)platform::lock_byte(file_, kTreeProcessesMax, ByteLock::kExclusive, true);
  for (slot_ = 0; slot_ < kTreeProcessesMax; ++slot_)
    if (platform::lock_byte(file_, slot_, ByteLock::kExclusive)) break;
  const bool is_taken = slot_ < kTreeProcessesMax;
  if (is_taken) {
    take_back(mine());
    mine().wants.store_relaxed(1);
    mine().age.store_relaxed(kAgeOfBeginnerNs);
    mine().is_taken.store_relaxed(1);
    uint32_t slots = all.slots.load_relaxed();
    while (slots <= slot_ && !all.slots.cas_strong_acq_rel(slots, slot_ + 1)) {
    }
    change(std::max(all.free.load_relaxed(), kLeastBytes));
    all.joins.fetch_add_relaxed(1);
  }
  (void)platform::lock_byte(file_, kTreeProcessesMax, ByteLock::kNone);
  if (!is_taken) return Status(EMFILE, "too many processes share one cap");
  (void)look_at_others();
  return {};
}

void TreeCap::change(int64_t bytes) {
  ledger().free.fetch_add_relaxed(-bytes);
  mine().granted.fetch_add_relaxed(bytes);
}

// The lock of the parent's slot is the parent's alone from now on, which it loses when it ends. Between fork and exec
// nothing may be called that takes a lock.
void TreeCap::forked() {
  char path[48];
  std::snprintf(path, sizeof path, "/proc/thread-self/fd/%d", file_.fd());
  const long own = ::syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC);
  if (own < 0) return;
  (void)::syscall(SYS_dup3, own, file_.fd(), O_CLOEXEC);
  ::syscall(SYS_close, own);
}

// Who finds himself alone puts right what processes lost that were killed between taking and being given.
void TreeCap::put_right() {
  if (members_ != 1 || !platform::lock_byte(file_, kTreeProcessesMax, ByteLock::kExclusive)) return;
  bool is_alone = true;
  for (unsigned i = 0; i < std::min(ledger().slots.load_relaxed(), kTreeProcessesMax); ++i)
    is_alone = is_alone && (i == slot_ || !platform::is_byte_locked(file_, i));
  if (is_alone) ledger().free.store_relaxed(static_cast<int64_t>(cap_bytes()) - granted());
  (void)platform::lock_byte(file_, kTreeProcessesMax, ByteLock::kNone);
}

void TreeCap::begin(uint64_t held_bytes) {
  const int64_t lacking = static_cast<int64_t>(held_bytes) + kLeastBytes - granted();
  mine().held.store_relaxed(held_bytes);
  if (members_ > 1 && lacking > 0) change(lacking);
}

TreeOthers TreeCap::look_at_others() {
  Ledger& all = ledger();
  const bool counts = looks_++ % kCountEvery == 0;
  joins_ = all.joins.load_relaxed();
  TreeOthers others;
  others.cap = all.cap_bytes;
  const uint32_t slots = std::min(all.slots.load_relaxed(), kTreeProcessesMax);
  unsigned members = 1;
  for (unsigned i = 0; i < slots; ++i) {
    Slot& slot = all.slot[i];
    if (i == slot_ || slot.is_taken.load_relaxed() == 0) continue;
    if (counts && platform::lock_byte(file_, i, ByteLock::kExclusive)) {
      take_back(slot);
      slot.is_taken.store_relaxed(0);
      (void)platform::lock_byte(file_, i, ByteLock::kNone);
      continue;
    }
    ++members;
    if (slot.wants.load_relaxed() == 0) continue;
    others.want = true;
    others.youngest = std::min(others.youngest, slot.age.load_relaxed());
  }
  others.members = members_ = members;
  if (counts) put_right();
  others.free = all.free.load_relaxed();
  return others;
}

uint64_t TreeCap::held_by_all() const {
  uint64_t sum = 0;
  const uint32_t slots = std::min(ledger().slots.load_relaxed(), kTreeProcessesMax);
  for (unsigned i = 0; i < slots; ++i) sum += ledger().slot[i].held.load_relaxed();
  return sum;
}

int64_t TreeCap::look(uint64_t held_bytes, uint64_t brought_bytes, bool is_full, uint64_t now_ns) {
  constexpr double kSecondNs = 1e9, kNew = 0.25;
  if (last_ns_ != 0 && now_ns > last_ns_) {
    const double rate = static_cast<double>(brought_bytes - std::min(brought_bytes, last_brought_)) *
                        kSecondNs / static_cast<double>(now_ns - last_ns_);
    brought_a_second_ += kNew * (rate - brought_a_second_);
  }
  last_ns_ = now_ns;
  last_brought_ = brought_bytes;
  Slot& own = mine();
  const auto held = static_cast<int64_t>(held_bytes);
  // As much of it as is not held any more.
  if (const int64_t given = std::min(to_give_, own.granted.load_relaxed() - held); given > 0) {
    change(-given);
    to_give_ -= given;
  }
  // Who has only begun has brought in nothing so far, which says nothing.
  TreeMember now{own.granted.load_relaxed(), held_bytes,
                 looks_ < kLooksOfBeginner ? kAgeOfBeginnerNs : UINT64_MAX, is_full};
  if (brought_a_second_ >= 1 && looks_ >= kLooksOfBeginner)
    now.age = static_cast<uint64_t>(
        std::min(static_cast<double>(held_bytes) / brought_a_second_ * kSecondNs, 1e18));
  own.held.store_relaxed(held_bytes);
  // Memory that is not in frames cannot be had back: whoever has any gives.
  own.age.store_relaxed(held > now.granted && !is_full ? 0 : now.age);
  const TreeOthers others = look_at_others();
  const int64_t wanted = share_change(now, others);
  if (wanted > 0) change(wanted);
  to_give_ = wanted < 0 ? std::max(to_give_, -wanted) : 0;
  own.wants.store_relaxed(wanted <= 0 && needs_more(now, others.cap) ? 1 : 0);
  return own.granted.load_relaxed() - to_give_;
}

}  // namespace spw::process
