// Values that name one place or several: "/mnt/a" or "/mnt/a,sparse:/mnt/b?size=1G,/mnt/c". A comma inside of a name of
// several is written %2C.
//
// A value is one place, commas and all, when it begins with "striped:", whose commas are its own, or when what it names
// is there: a directory, or the file behind a scheme ("file:/dev/disk/by-id/a,b").
//
// Threads: any; asks the filesystem when there is a comma. Limits: kPlacesMax, which who uses the names checks.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace spw::platform {

inline constexpr size_t kPlacesMax = 16;

// The names, at least one; of several each with its commas. One that is empty is there, too.
std::vector<std::string> split_places(std::string_view value);
// What split_places() takes apart, of two names or more.
std::string join_places(const std::vector<std::string>& names);

}  // namespace spw::platform
