// What a user can choose, read from SPILLWAY_ environment variables. options.inc lists every option once; the
// runtime reads its options through parse_environment(), and `spillway run` uses the same functions before it
// starts a program.
//
// Invariants of Options that parse_environment() returned:
//   block_bytes is a power of two in [4 KiB, 2 MiB];  memory_bytes >= kCapFramesMin * block_bytes
//   quota_bytes <= memory_bytes;  low_percent <= high_percent
//   store, where it is a directory, and stats_file are absolute paths (stats_file may be empty)
// Errors: EINVAL, whose message() is one complete line for the user: which variable, its value, what is
// accepted and an example. Whether the store's directory exists and can be written is for the one who opens
// it to say. Threads: pure functions of their arguments (and of the working directory, for relative paths).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/units.h"

namespace spw::process {

// Fewer frames than this cannot hold what one thread may pin while others go on.
inline constexpr uint64_t kCapFramesMin = 256;
// With --block auto; misses bring neighbours along as they pay (cache/fault_around.h).
inline constexpr uint64_t kAutoBlockBytes = 4 * kKiB;

// The enumerators stand in the order of the choices in options.inc.
enum class EngineKind : uint8_t { kAuto, kTranslated, kMapped };
// Options::map_files when it was not set.
inline constexpr std::string_view kMapFilesByProgram = "(by program)";

enum class DelegationChoice : uint8_t { kAuto, kCombining, kDedicated };
enum class Levels : uint8_t { kView, kAll, kPrivate, kDirect, kShared, kOwner };
// The values of durable::Technique.
enum class Durable : uint8_t { kEager, kLazy, kTable, kAdaptive, kFixed, kNone };
// The values of platform::LineInstruction.
enum class DurableFlush : uint8_t { kAuto, kClwb, kClflushopt, kClflush };
enum class Curve : uint8_t { kOff, kSample, kOn };
enum class Switch : uint8_t { kOff, kOn };
enum class Compress : uint8_t { kAuto, kOff, kLz4, kZstd };
enum class Flush : uint8_t { kAuto, kDirect, kBackground };
enum class MappedReads : uint8_t { kAuto, kKernel, kCache };
enum class OnRefusedChild : uint8_t { kEnd, kGoOn };
enum class ExtentUse : uint8_t { kAuto, kOff };
enum class Faults : uint8_t { kAuto, kThreads, kSignals };
enum class IoChoice : uint8_t { kAuto, kIoUring, kLibaio, kThreads };
enum class StatsKind : uint8_t { kOff, kText, kJson };

struct StatsTarget {
  StatsKind kind = StatsKind::kOff;
  std::string file;  // kJson only
};

struct Options {
  uint64_t memory_bytes = 0;  // with memory_is_auto: the most that the cap may become
  bool memory_is_auto = false;
  std::string store;
  uint64_t block_bytes = 0;
  bool block_is_auto = false;
  EngineKind engine = EngineKind::kAuto;
  std::string policy;
  uint64_t threshold_bytes = 0;
  uint64_t quota_bytes = 0;
  uint64_t servers = 0;
  uint64_t nodes = 0;
  DelegationChoice delegation = DelegationChoice::kAuto;
  Levels levels = Levels::kView;
  IoChoice io = IoChoice::kAuto;
  uint64_t readahead_blocks = 0;
  // The mapped engine's.
  Faults faults = Faults::kAuto;
  ExtentUse extents = ExtentUse::kAuto;
  uint64_t pollers = 0;
  uint64_t fillers = 0;
  uint64_t evictors = 0;
  uint64_t low_percent = 0;
  uint64_t high_percent = 0;
  std::string map_files;
  std::string buffer;  // patterns, as map_files
  Flush flush = Flush::kAuto;
  uint64_t dirty_percent = 0;
  uint64_t buffer_after_calls = 0;
  uint64_t flush_after_s = 0;
  Switch checksums = Switch::kOn;
  Switch encrypt = Switch::kOff;
  Compress compress = Compress::kOff;
  Durable durable = Durable::kAdaptive;
  uint64_t durable_lines = 0;
  uint64_t durable_burst = 0;
  DurableFlush durable_flush = DurableFlush::kAuto;
  Curve curve = Curve::kSample;
  MappedReads mapped_reads = MappedReads::kAuto;
  OnRefusedChild on_refused_child = OnRefusedChild::kEnd;
  std::string trace_file;  // absolute; "": none
  StatsTarget stats;
  Switch quiet = Switch::kOff;
};

enum class OptionId : unsigned {
#define SPW_OPTION(name, ...) name,
#include "process/options.inc"
#undef SPW_OPTION
};

// Who has to know of an option. In the order in which they are shown.
enum class OptionPage : uint8_t { essential, tuning, measuring };

enum class ValueKind : uint8_t {
  kSize,
  kPowerOfTwoSize,
  kCount,
  kChoice,
  kChoiceOrFile,
  kStore,
  kPatterns,
  kFile,
  kReportTarget
};

// What a value may be. `least` and `most` bound sizes and counts; `choices` are parted by '|'.
struct Accepts {
  ValueKind kind = ValueKind::kSize;
  uint64_t least = 0;
  uint64_t most = 0;
  std::string_view choices;
};

struct OptionInfo {
  OptionId id;
  std::string_view name;
  OptionPage page;
  Accepts accepts;
  std::string_view fallback;
  std::string_view example;
  std::string_view help;
  std::string_view doc;
};

// In the order of options.inc.
std::span<const OptionInfo> option_infos();

// "map-files" -> "SPILLWAY_MAP_FILES".
std::string environment_variable(std::string_view option_name);
// Whether a value of --store names a store ("sparse:/mnt/a?size=64G", store/open_store.h) and not a directory.
bool is_store_name(std::string_view store);
// Whether a value of --policy names a shared library.
bool is_file_name(std::string_view value);
// "a size from 8.0 MiB to 16.0 TiB", "one of auto, translated, mapped".
std::string accepted_values(const Accepts& accepts);
// The candidate that `word` most likely meant, as a slip of the finger or as its beginning; "" when none is near. Both
// without what all candidates begin with ("--", "SPILLWAY_").
std::string_view nearest_word(std::string_view word, std::span<const std::string_view> candidates);

// Stores `value` in the member that belongs to `info`. `source` is what the user wrote it in: "--memory",
// "SPILLWAY_MEMORY".
Status set_option(Options& options, const OptionInfo& info, std::string_view source, std::string_view value);

// Options from "NAME=value" strings (a nullptr ends them), with every fallback worked out. An empty value
// counts as unset. A SPILLWAY_ variable that is no option adds a line to `warnings`.
Result<Options> parse_environment(const char* const* environment, uint64_t memory_available_bytes,
                                  std::vector<std::string>* warnings);

// parse_environment() of this process's environment and what memory this machine has for it
// now: the smaller of what is available and the control group's limit. `first`: "NAME=value"
// strings that win over the environment's. In a program with rights of its own (AT_SECURE) the
// environment is somebody else's: none of its SPILLWAY_ variables count, which is one warning.
Result<Options> options_of_process(std::vector<std::string>* warnings,
                                   std::span<const std::string> first = {});

}  // namespace spw::process
