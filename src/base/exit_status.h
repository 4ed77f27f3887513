// How the runtime ends a program that cannot go on, or whose end failed.
#pragma once

namespace spw {

// A bad option, store or cap: the user can mend it and start again.
inline constexpr int kExitUsage = 2;
// The machine failed underneath: a lasting I/O error, a full disk that stayed full, memory that the kernel refused, a
// file that could not be written at the end, a forked child that used managed memory.
inline constexpr int kExitFailure = 74;

// `code`, or kExitFailure where the program was content and its files are not whole.
inline int exit_code_after(int code, bool files_are_whole) {
  return code == 0 && !files_are_whole ? kExitFailure : code;
}

}  // namespace spw
