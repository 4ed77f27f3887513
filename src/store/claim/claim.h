// Whose a device or an export is that data is to be spilled to. What a store to spill to overwrites has to be ours to
// overwrite, so a header stands at its beginning, and nothing is ever spilled there.
//
//     0          the header: kClaimMagic, who spills here as text, zeros, 8 bytes of a sum of all that (4 KiB in all)
//     4 KiB      zeros
//     1 MiB      what is spilled; the store's offset 0
//
// ours   the header's sum is right, and zeros follow up to 1 MiB: whoever has made something else of the device since
//        has changed that part of it
// blank  zeros up to 1 MiB, and nothing known at the end
// Everything else is somebody's and refused, unless the name says that it may be overwritten. What is spilled itself
// may look like anything, so the rest is not looked at.
//
// Threads: before the store is used. Limits: devices and exports of more than 2 MiB.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "store/engine/progress.h"
#include "store/store.h"

namespace spw::store {

inline constexpr uint64_t kClaimBytes = uint64_t{1} << 20;
inline constexpr std::string_view kClaimMagic = "SPILLWAY-SPILL 1\n";

enum class Overwrite : uint8_t { kNo, kYes };
// The parameter by which a name says so: "overwrite=yes".
inline constexpr std::string_view kOverwriteParameter = "overwrite";
// Of what stands behind "overwrite="; `whole`: the name, for messages.
Result<Overwrite> overwrite_of(const std::string* value, const std::string& whole);

// `store`, whose requests go to `target`, is this process's alone, or as near to that as its kind allows. Refuses what
// is not ours or blank, writes the header, and leaves what follows it to the store. `name`: for messages.
Status claim(Store& store, Target& target, const std::string& name, Overwrite overwrite);

// For descriptions, so that offsets in messages can be found: ", from 1 MiB on", or "" for a target that begins at 0.
std::string begins_at(const Target& target);

}  // namespace spw::store
