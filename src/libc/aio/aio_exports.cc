// Asynchronous I/O under its ordinary names.
#include <aio.h>

#include "libc/aio/aio.h"
#include "libc/entry.h"

using namespace spw::libc;

// A program that was compiled for long offsets names the others, which are the same where offsets are long anyway.
static_assert(sizeof(aiocb) == sizeof(aiocb64) && sizeof(off_t) == sizeof(off64_t));
static aiocb* same(aiocb64* block) { return reinterpret_cast<aiocb*>(block); }

SPW_ENTRY int aio_read(aiocb* block) noexcept { return aio_transfer(block, true); }
SPW_ENTRY int aio_read64(aiocb64* block) noexcept { return aio_transfer(same(block), true); }
SPW_ENTRY int aio_write(aiocb* block) noexcept { return aio_transfer(block, false); }
SPW_ENTRY int aio_write64(aiocb64* block) noexcept { return aio_transfer(same(block), false); }
SPW_ENTRY int aio_fsync(int operation, aiocb* block) noexcept { return aio_sync(operation, block); }
SPW_ENTRY int aio_fsync64(int operation, aiocb64* block) noexcept { return aio_sync(operation, same(block)); }
SPW_ENTRY int lio_listio(int mode, aiocb* const list[], int count, sigevent* event) noexcept {
  return aio_list(mode, list, count, event);
}
SPW_ENTRY int lio_listio64(int mode, aiocb64* const list[], int count, sigevent* event) noexcept {
  return aio_list(mode, reinterpret_cast<aiocb* const*>(list), count, event);
}
SPW_ENTRY int aio_error(const aiocb* block) noexcept { return aio_state(block); }
SPW_ENTRY int aio_error64(const aiocb64* block) noexcept {
  return aio_state(reinterpret_cast<const aiocb*>(block));
}
SPW_ENTRY ssize_t aio_return(aiocb* block) noexcept { return aio_result(block); }
SPW_ENTRY ssize_t aio_return64(aiocb64* block) noexcept { return aio_result(same(block)); }
SPW_ENTRY int aio_suspend(const aiocb* const list[], int count, const timespec* timeout) {
  return aio_wait(list, count, timeout);
}
SPW_ENTRY int aio_suspend64(const aiocb64* const list[], int count, const timespec* timeout) {
  return aio_wait(reinterpret_cast<const aiocb* const*>(list), count, timeout);
}
SPW_ENTRY int aio_cancel(int fd, aiocb* block) noexcept { return aio_abandon(fd, block); }
SPW_ENTRY int aio_cancel64(int fd, aiocb64* block) noexcept { return aio_abandon(fd, same(block)); }
