#include "libc/waits/futex_calls.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "libc/io/native_argument.h"
#include "libc/waits/waits.h"

namespace spw::libc {

using cache::Access;

namespace {

using Word = uint32_t;

bool takes_deadline(int command) {
  return command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET || command == FUTEX_LOCK_PI ||
         command == FUTEX_LOCK_PI2 || command == FUTEX_WAIT_REQUEUE_PI;
}
bool takes_second_word(int command) {
  return command == FUTEX_REQUEUE || command == FUTEX_CMP_REQUEUE || command == FUTEX_WAKE_OP ||
         command == FUTEX_CMP_REQUEUE_PI || command == FUTEX_WAIT_REQUEUE_PI;
}

bool only_looks(int command) {
  return command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET || command == FUTEX_WAKE ||
         command == FUTEX_WAKE_BITSET;
}

// Whoever wakes others may come when the word has been freed by one of them: then nobody sleeps there.
bool is_gone(const Word* word, int command) {
  return (command == FUTEX_WAKE || command == FUTEX_WAKE_BITSET) && is_in_frames(word) &&
         !context()->regions->is_live(reinterpret_cast<uintptr_t>(word), sizeof *word);
}

// Nobody is moved from one managed word to another, where his wait would name a frame that he has not pinned: all are
// woken instead, and look for themselves.
void wake_instead_of_moving(long (&arguments)[6]) {
  const int operation = static_cast<int>(arguments[1]), command = operation & FUTEX_CMD_MASK;
  if (command != FUTEX_REQUEUE && command != FUTEX_CMP_REQUEUE) return;
  if (command == FUTEX_REQUEUE) arguments[1] = (operation & ~FUTEX_CMD_MASK) | FUTEX_WAKE;
  arguments[2] = INT_MAX;
  arguments[3] = 0;
}

// Whether the kernel wants to be able to store to a word that it only looks at: it finds a futex that is not private by
// its page, and refuses one that it finds write-protected (as clean blocks are). Where the program may not store
// either, nobody does.
bool wants_it_writable(const Word* word, int operation) {
  return (operation & FUTEX_PRIVATE_FLAG) == 0 && reachable_bytes(word, sizeof *word, true) == sizeof *word;
}

// Compilers make a plain load of an addition of nothing.
void store_what_is_there(Word* word) {
  Word value = __atomic_load_n(word, __ATOMIC_RELAXED);
  (void)__atomic_compare_exchange_n(word, &value, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

// Where managed memory is at its own addresses and faults are the program's alone to serve, a word that was evicted
// meanwhile fails the call. So it is brought back, and asked for again.
template <class Call>
long with_word_there(Word* word, int operation, Call call) {
  constexpr int kTriesMax = 100;
  const int saved_errno = errno;
  for (int tries = 0;; ++tries) {
    const long result = call();
    if (result != -1 || errno != EFAULT || tries == kTriesMax || !kernel_cannot_reach(word) ||
        !context()->regions->is_live(reinterpret_cast<uintptr_t>(word), sizeof *word))
      return result;
    errno = saved_errno;
    if (only_looks(operation & FUTEX_CMD_MASK) && !wants_it_writable(word, operation))
      (void)*static_cast<const volatile Word*>(word);
    else
      store_what_is_there(word);
  }
}

}  // namespace

long call_futex(long (&given)[6]) {
  const int command = static_cast<int>(given[1]) & FUTEX_CMD_MASK;
  auto* word = reinterpret_cast<Word*>(given[0]);
  auto* second = reinterpret_cast<Word*>(given[4]);
  const size_t reached = reachable_bytes(word, sizeof(Word), !only_looks(command));
  if (reached < sizeof(Word) && !is_gone(word, command))  // EFAULT, by the kernel
    return real().syscall(SYS_futex, given[0], given[1], given[2], given[3], given[4], given[5]);
  if (is_in_frames(word) || (takes_second_word(command) && is_in_frames(second)))
    wake_instead_of_moving(given);
  Word none = 0;
  const InFrame<Word> first_there =
      in_frame(is_gone(word, command) ? &none : word, only_looks(command) ? Access::kRead : Access::kWrite);
  const InFrame<Word> second_there = in_frame(takes_second_word(command) ? second : &none);
  if (!is_gone(word, command)) word = first_there;
  if (takes_second_word(command)) second = second_there;
  return with_word_there(word, static_cast<int>(given[1]), [&] {
    if (!takes_deadline(command))
      return real().syscall(SYS_futex, word, given[1], given[2], given[3], second, given[5]);
    const Native<const timespec> until(reinterpret_cast<const timespec*>(given[3]));
    return real().syscall(SYS_futex, word, given[1], given[2], static_cast<const timespec*>(until), second,
                          given[5]);
  });
}

}  // namespace spw::libc
