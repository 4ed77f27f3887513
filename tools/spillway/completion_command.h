// The one part of completion that knows the parser, apart from commands.h, which does not.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace spw::tool {

// Prints the script for `shell`, one of kShells (completion.h), with all that `app` takes. The exit code.
int print_completion(const CLI::App& app, const std::string& shell);

}  // namespace spw::tool
