// Links our versions of libstdc++'s functions on nodes (compiler/library)
// into a module that calls them, so that they are instrumented with it.
#pragma once

#include "llvm/IR/Module.h"
#include "pass/options.h"

namespace spw::pass {

// A function that the module defines itself is left alone. `durable`: stores are announced, too.
void link_library_code(llvm::Module& module, EngineKind engine, bool durable);

}  // namespace spw::pass
