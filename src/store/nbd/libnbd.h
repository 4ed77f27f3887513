// libnbd, loaded when the first NBD store is opened: a program that
// uses none does not carry it and what it needs (TLS, XML).
//
// Threads: as libnbd's functions: any, one handle in one thread at a time here. Lifetime: once loaded, never unloaded.
#pragma once

#include <libnbd.h>

#include "base/status.h"

namespace spw::store {

// The functions that are used, by their names without "nbd_".
#define SPW_LIBNBD_FUNCTIONS(F) \
  F(create)                     \
  F(close)                      \
  F(get_error)                  \
  F(get_errno)                  \
  F(set_export_name)            \
  F(set_pread_initialize)       \
  F(supports_tls)               \
  F(set_tls)                    \
  F(set_tls_certificates)       \
  F(set_tls_psk_file)           \
  F(set_tls_username)           \
  F(aio_connect_tcp)            \
  F(aio_connect_unix)           \
  F(aio_is_ready)               \
  F(aio_is_dead)                \
  F(aio_is_closed)              \
  F(aio_get_fd)                 \
  F(aio_get_direction)          \
  F(aio_notify_read)            \
  F(aio_notify_write)           \
  F(aio_disconnect)             \
  F(aio_pread)                  \
  F(aio_pwrite)                 \
  F(aio_zero)                   \
  F(aio_flush)                  \
  F(get_size)                   \
  F(get_block_size)             \
  F(is_read_only)               \
  F(can_multi_conn)             \
  F(can_flush)                  \
  F(can_zero)

struct Libnbd {
  // ENOPKG where libnbd is not installed.
  static Result<Libnbd> load();

#define SPW_LIBNBD_MEMBER(name) decltype(&::nbd_##name) name = nullptr;
  SPW_LIBNBD_FUNCTIONS(SPW_LIBNBD_MEMBER)
#undef SPW_LIBNBD_MEMBER
};

}  // namespace spw::store
