// ioctl, fcntl and prctl, under their ordinary names: what their last argument points to follows from the request.
//
// A structure that holds pointers of its own (SIOCGIFCONF, SG_IO) is copied without what these point to, so those must
// be plain. A request that is not known here is passed on as it is.
#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>

#include "libc/entry.h"
#include "libc/io/buffered.h"
#include "libc/io/descriptors.h"
#include "libc/io/native_argument.h"
#include "libc/io/requests.h"
#include "libc/system_calls/system_calls.h"
#include "platform/record_locks.h"

using namespace spw::libc;

namespace {

constexpr size_t kThreadNameBytes = 16;

// `call`: fcntl or fcntl64, which take the same structure here.
template <class Call>
int control(Call* call, int fd, int command, void* argument) {
  if (!takes_a_lock(command)) return call(fd, command, argument);
  if (command == F_SETLK || command == F_SETLKW) spw::platform::note_record_lock();
  return call(fd, command, static_cast<struct flock*>(Native(static_cast<struct flock*>(argument))));
}

// Of a buffered file: what is left to read, by its size and the place, which we know better than the kernel. False: it
// is none.
bool is_left_to_read(FileCalls& calls, int fd, void* argument) {
  const int64_t size = calls.size(fd), place = calls.seek(fd, 0, SEEK_CUR);
  if (size < 0 || place < 0) return false;
  const Native<int> left(static_cast<int*>(argument));
  *static_cast<int*>(left) = static_cast<int>(size - place);
  return true;
}

// What other requests ask of a file, or of two, they ask of the kernel's, which have to have what was written.
void prepare_buffered_files(FileCalls& calls, int fd, unsigned long request, void* argument) {
  if (request == FS_IOC_FIEMAP || request == FIBMAP) return (void)calls.flush(fd);
  if (calls.has(fd)) calls.give_back(fd);
  if (request == FICLONE) (void)calls.flush(static_cast<int>(reinterpret_cast<intptr_t>(argument)));
  if (request != FICLONERANGE) return;
  const Native<const file_clone_range> range(static_cast<file_clone_range*>(argument));
  (void)calls.flush(static_cast<int>(static_cast<const file_clone_range*>(range)->src_fd));
}

// True: it is answered.
bool is_of_buffered_file(int fd, unsigned long request, void* argument) {
  switch (request) {
    case FIONREAD:
    case FICLONE:
    case FICLONERANGE:
    case FIDEDUPERANGE:
    case FS_IOC_FIEMAP:
    case FIBMAP:
      break;
    default:
      return false;
  }
  FileCalls* calls = descriptor_calls();
  if (calls == nullptr) return false;
  if (request == FIONREAD) return is_left_to_read(*calls, fd, argument);
  prepare_buffered_files(*calls, fd, request, argument);
  return false;
}

}  // namespace

#define SPW_LAST_ARGUMENT(before)       \
  va_list more;                         \
  va_start(more, before);               \
  void* argument = va_arg(more, void*); \
  va_end(more);

SPW_ENTRY int ioctl(int fd, unsigned long request, ...) noexcept {
  SPW_LAST_ARGUMENT(request)
  if (is_of_buffered_file(fd, request, argument)) return 0;
  const size_t bytes = kernel_cannot_reach(argument) ? ioctl_bytes(request, argument) : 0;
  if (bytes == 0) return real().ioctl(fd, request, argument);
  return real().ioctl(fd, request, static_cast<void*>(Native<void>::of_bytes(argument, bytes)));
}
SPW_ENTRY int fcntl(int fd, int command, ...) {
  SPW_LAST_ARGUMENT(command)
  return control(files_or_real().fcntl, fd, command, argument);
}
SPW_ENTRY int fcntl64(int fd, int command, ...) {
  SPW_LAST_ARGUMENT(command)
  return control(files_or_real().fcntl64, fd, command, argument);
}
SPW_ENTRY int prctl(int option, ...) noexcept {
  unsigned long words[4];
  va_list more;
  va_start(more, option);
  for (unsigned long& word : words) word = va_arg(more, unsigned long);
  va_end(more);
  if (is_refused_control(option)) return static_cast<int>(fail(EINVAL));
  auto* name = reinterpret_cast<char*>(words[0]);
  if (option == PR_SET_NAME) return real().prctl(option, static_cast<const char*>(Text(name)), 0ul, 0ul, 0ul);
  if (option == PR_GET_NAME)
    return real().prctl(option, static_cast<char*>(Native(name, kThreadNameBytes)), 0ul, 0ul, 0ul);
  return real().prctl(option, words[0], words[1], words[2], words[3]);
}
