#include "pass/eligible_functions.h"

#include "llvm/ADT/SmallPtrSet.h"

namespace spw::pass {

using namespace llvm;

namespace {

constexpr const char* kPlainSection = ".text.spillway_plain";

bool is_eligible(const Function& function) {
  return !function.isDeclaration() && !function.hasAvailableExternallyLinkage() &&
         !function.hasFnAttribute(Attribute::DisableSanitizerInstrumentation) &&
         !function.hasFnAttribute(Attribute::Naked) && !function.getSection().starts_with(kPlainSection);
}

}  // namespace

SmallVector<Function*, 0> eligible_functions(Module& module) {
  SmallPtrSet<const Function*, 4> resolvers;
  for (const GlobalIFunc& ifunc : module.ifuncs()) resolvers.insert(ifunc.getResolverFunction());
  SmallVector<Function*, 0> functions;
  for (Function& function : module)
    if (is_eligible(function) && !resolvers.contains(&function)) functions.push_back(&function);
  return functions;
}

}  // namespace spw::pass
