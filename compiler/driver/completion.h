// Scripts by which shells complete the wrappers' own options, and have clang's completed by clang.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace spw::driver {

// `clang`: what completes its own options. Nothing: there is no script for such a shell.
std::optional<std::string> completion_script(std::string_view shell, const std::string& clang);

}  // namespace spw::driver
