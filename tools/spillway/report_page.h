// The page that `spillway run --report FILE.html` writes: one file that needs no other and no network.
//
// Its parts lie in report/, and report/README.md says what is in the data. Threads: any.
#pragma once

#include <string>
#include <string_view>

namespace spw::tool {

// The whole page with the data, which is one JSON value in UTF-8, in its place. Strings in it may hold anything.
std::string report_page(std::string_view json);

}  // namespace spw::tool
