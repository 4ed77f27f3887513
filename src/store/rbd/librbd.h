// librbd and librados, loaded when the first store on a Ceph cluster is opened: a program that uses none does not carry
// them and the dozens of libraries that they need.
//
// Threads: as the functions of both: any. Lifetime: once loaded, never unloaded.
#pragma once

#include <rados/librados.h>
#include <rbd/librbd.h>

#include "base/status.h"

namespace spw::store {

// The functions that are used, by their names without "rados_" and "rbd_".
#define SPW_LIBRADOS_FUNCTIONS(F) \
  F(create)                       \
  F(conf_read_file)               \
  F(conf_parse_env)               \
  F(conf_set)                     \
  F(connect)                      \
  F(shutdown)                     \
  F(cluster_fsid)                 \
  F(cluster_stat)                 \
  F(get_instance_id)              \
  F(blocklist_add)                \
  F(ioctx_create)                 \
  F(ioctx_destroy)                \
  F(set_pool_full_try)

#define SPW_LIBRBD_FUNCTIONS(F) \
  F(open)                       \
  F(open_read_only)             \
  F(close)                      \
  F(create4)                    \
  F(image_options_create)       \
  F(image_options_set_uint64)   \
  F(image_options_destroy)      \
  F(resize)                     \
  F(remove)                     \
  F(list2)                      \
  F(image_spec_list_cleanup)    \
  F(watchers_list)              \
  F(watchers_list_cleanup)      \
  F(stat)                       \
  F(get_features)               \
  F(metadata_get)               \
  F(metadata_set)               \
  F(lock_acquire)               \
  F(lock_get_owners)            \
  F(lock_get_owners_cleanup)    \
  F(lock_break)                 \
  F(list_lockers)               \
  F(aio_create_completion)      \
  F(aio_get_return_value)       \
  F(aio_release)                \
  F(aio_readv)                  \
  F(aio_writev)                 \
  F(aio_write_zeroes)           \
  F(aio_flush)

struct Librbd {
  // ENOPKG where one of the two is not installed.
  static Result<Librbd> load();

  struct {
#define SPW_LIBRADOS_MEMBER(name) decltype(&::rados_##name) name = nullptr;
    SPW_LIBRADOS_FUNCTIONS(SPW_LIBRADOS_MEMBER)
#undef SPW_LIBRADOS_MEMBER
  } rados;
  struct {
#define SPW_LIBRBD_MEMBER(name) decltype(&::rbd_##name) name = nullptr;
    SPW_LIBRBD_FUNCTIONS(SPW_LIBRBD_MEMBER)
#undef SPW_LIBRBD_MEMBER
  } rbd;
};

}  // namespace spw::store
