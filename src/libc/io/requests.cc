#include "libc/io/requests.h"

#include <linux/blkzoned.h>
#include <linux/btrfs.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/fsmap.h>
#include <net/if.h>
#include <sys/ioctl.h>

#include "libc/managed.h"
#include "libc/map/parts.h"

namespace spw::libc {

namespace {
constexpr size_t kKernelTermiosBytes = 36;  // struct termios of <asm/termbits.h>, which is not libc's

// A header that says how many elements follow it, which the size in the request's number leaves out.
template <class Header, class Element, class Count>
size_t with_array(const void* argument, Count Header::* count) {
  Header header{};
  if (reachable_bytes(argument, sizeof header, false) < sizeof header) return sizeof header;
  copy_bytes(&header, argument, sizeof header);
  return sizeof header + size_t{header.*count} * sizeof(Element);
}

size_t fixed_ioctl_bytes(unsigned long request) {
  if (_IOC_DIR(request) != _IOC_NONE) return _IOC_SIZE(request);
  switch (request) {
    case FIONREAD:
    case FIONBIO:
    case FIOASYNC:
    case TIOCOUTQ:
    case TIOCGPGRP:
    case TIOCSPGRP:
    case TIOCGSID:
    case TIOCMGET:
    case TIOCMSET:
    case BLKSSZGET:
    case BLKROGET:
      return sizeof(int);
    case BLKGETSIZE:
      return sizeof(long);
    case TIOCGWINSZ:
    case TIOCSWINSZ:
      return sizeof(winsize);
    case TCGETS:
    case TCSETS:
    case TCSETSW:
    case TCSETSF:
      return kKernelTermiosBytes;
    case SIOCGIFNAME:
    case SIOCGIFINDEX:
    case SIOCGIFFLAGS:
    case SIOCGIFADDR:
    case SIOCGIFNETMASK:
    case SIOCGIFBRDADDR:
    case SIOCGIFHWADDR:
    case SIOCGIFMTU:
      return sizeof(ifreq);
    default:
      return 0;
  }
}

}  // namespace

size_t ioctl_bytes(unsigned long request, const void* argument) {
  switch (request) {
    case FS_IOC_FIEMAP:
      return with_array<fiemap, fiemap_extent>(argument, &fiemap::fm_extent_count);
    case FS_IOC_GETFSMAP:
      return with_array<fsmap_head, fsmap>(argument, &fsmap_head::fmh_count);
    case FIDEDUPERANGE:
      return with_array<file_dedupe_range, file_dedupe_range_info>(argument, &file_dedupe_range::dest_count);
    case BLKREPORTZONE:
      return with_array<blk_zone_report, blk_zone>(argument, &blk_zone_report::nr_zones);
    case BTRFS_IOC_TREE_SEARCH_V2:
      return with_array<btrfs_ioctl_search_args_v2, char>(argument, &btrfs_ioctl_search_args_v2::buf_size);
    default:
      return fixed_ioctl_bytes(request);
  }
}

}  // namespace spw::libc
