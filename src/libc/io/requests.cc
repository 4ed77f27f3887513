#include "libc/io/requests.h"

#include <linux/fs.h>
#include <net/if.h>
#include <sys/ioctl.h>

namespace spw::libc {

namespace {
constexpr size_t kKernelTermiosBytes = 36;  // struct termios of <asm/termbits.h>, which is not libc's
}  // namespace

size_t ioctl_bytes(unsigned long request) {
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

}  // namespace spw::libc
