#include "store/claim/known_contents.h"

#include <cstring>

#include "base/units.h"

namespace spw::store {

namespace {

using std::literals::operator""sv;

struct Signature {
  uint64_t offset_bytes;
  std::string_view bytes;
  std::string_view what;
};

constexpr std::string_view kExt = "an ext2, ext3 or ext4 filesystem";
constexpr std::string_view kSwap = "swap space";
constexpr std::string_view kLvm = "a volume of LVM";
constexpr std::string_view kRaid = "a part of a RAID";
constexpr std::string_view kGpt = "a partition table (GPT)";
constexpr std::string_view kZfs = "a part of a ZFS pool";
constexpr std::string_view kFat = "a FAT filesystem";
constexpr std::string_view kRaidMagic = "\xFC\x4E\x2B\xA9"sv;

// The most telling first: boot sectors, which several have, come last.
constexpr Signature kAtBegin[] = {
    {0x438, "\x53\xEF"sv, kExt},
    {0, "XFSB"sv, "an XFS filesystem"},
    {0x10040, "_BHRfS_M"sv, "a btrfs filesystem"},
    {0x400, "\x10\x20\xF5\xF2"sv, "an F2FS filesystem"},
    {0x1018, "\xC6\x85\x73\xF6\x4E\x1A\x45\xCA\x82\x65\xF5\x7F\x48\xBA\x6D\x81"sv, "a part of a bcache"},
    {0x1018, "\xC6\x85\x73\xF6\x66\xCE\x90\xA9\xD9\x6A\x60\xCF\x80\x3D\xF7\xEF"sv, "a bcachefs filesystem"},
    {4086, "SWAPSPACE2"sv, kSwap},
    {4086, "SWAP-SPACE"sv, kSwap},
    {65526, "SWAPSPACE2"sv, kSwap},
    {0, "LUKS\xBA\xBE"sv, "an encrypted volume (LUKS)"},
    {0, "SKUL\xBA\xBE"sv, "an encrypted volume (LUKS)"},
    {0x218, "LVM2 001"sv, kLvm},
    {0x18, "LVM2 001"sv, kLvm},
    {0x418, "LVM2 001"sv, kLvm},
    {0x618, "LVM2 001"sv, kLvm},
    {0, kRaidMagic, kRaid},
    {0x1000, kRaidMagic, kRaid},
    {0, "hsqs"sv, "a squashfs filesystem"},
    {0x8001, "CD001"sv, "an ISO 9660 filesystem"},
    {0, "DURABLE1"sv, "a persistent region of Spillway"},
    {3, "NTFS    "sv, "an NTFS filesystem"},
    {3, "EXFAT   "sv, "an exFAT filesystem"},
    {0x52, "FAT32   "sv, kFat},
    {0x36, "FAT1"sv, kFat},
    {0x200, "EFI PART"sv, kGpt},
    {0x1000, "EFI PART"sv, kGpt},
    {0x1FE, "\x55\xAA"sv, "a partition table or a boot sector"},
};

bool has(std::span<const std::byte> bytes, uint64_t offset, std::string_view signature) {
  return offset + signature.size() <= bytes.size() &&
         std::memcmp(bytes.data() + offset, signature.data(), signature.size()) == 0;
}

// The ring of uberblocks in a label of ZFS, which is 256 KiB long; of either byte order.
bool has_zfs_label(std::span<const std::byte> bytes, uint64_t label) {
  constexpr uint64_t kRing = 128 * kKiB, kLabelBytes = 256 * kKiB;
  for (uint64_t at = label + kRing; at < label + kLabelBytes; at += kKiB)
    if (has(bytes, at, "\x0C\xB1\xBA\x00\x00\x00\x00\x00"sv) ||
        has(bytes, at, "\x00\x00\x00\x00\x00\xBA\xB1\x0C"sv))
      return true;
  return false;
}

}  // namespace

std::string_view known_at_begin(std::span<const std::byte> begin) {
  constexpr uint64_t kLabelBytes = 256 * kKiB;
  for (const uint64_t label : {uint64_t{0}, kLabelBytes})
    if (has_zfs_label(begin, label)) return kZfs;
  for (const Signature& each : kAtBegin)
    if (has(begin, each.offset_bytes, each.bytes)) return each.what;
  return "";
}

std::string_view known_at_end(std::span<const std::byte> end, uint64_t device_bytes) {
  constexpr uint64_t kLabelBytes = 256 * kKiB, kRaidUnit = 64 * kKiB;
  const uint64_t begins = device_bytes - end.size();
  const auto at = [&](uint64_t offset) { return offset - begins; };
  if (device_bytes < 4 * kLabelBytes || end.size() < 4 * kLabelBytes) return "";
  for (const uint64_t sector : {uint64_t{512}, uint64_t{4096}})
    if (has(end, end.size() - sector, "EFI PART"sv)) return kGpt;
  const uint64_t labels = round_down(device_bytes, kLabelBytes);
  for (const uint64_t label : {labels - 2 * kLabelBytes, labels - kLabelBytes})
    if (label >= begins && has_zfs_label(end, at(label))) return kZfs;
  // md's format 0.90 in the last whole 64 KiB but one, 1.0 at least 8 KiB before the end.
  for (const uint64_t place :
       {round_down(device_bytes, kRaidUnit) - kRaidUnit, round_down(device_bytes - 8 * kKiB, 4 * kKiB)})
    if (has(end, at(place), kRaidMagic) || has(end, at(place), "\xA9\x2B\x4E\xFC"sv)) return kRaid;
  return "";
}

}  // namespace spw::store
