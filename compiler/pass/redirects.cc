#include "pass/redirects.h"

#include "llvm/IR/InstrTypes.h"

namespace spw::pass {

using namespace llvm;

namespace {

constexpr const char* kRedirected[] = {
#define SPW_REDIRECT(name) #name,
#include "abi/calls.def"
};

void redirect(Function& from) {
  Module& module = *from.getParent();
  const std::string name = ("__spw_" + from.getName() + "_v1").str();
  auto* to = module.getFunction(name);
  if (!to) {
    to = Function::Create(from.getFunctionType(), from.getLinkage(), from.getAddressSpace(), name, &module);
    to->copyAttributesFrom(&from);
    // The runtime's function is no builtin and reads and writes tables of its own.
    to->removeFnAttr(Attribute::AllocKind);
    to->removeFnAttr("alloc-family");
    to->removeFnAttr(Attribute::Memory);
    to->removeFnAttr(Attribute::Builtin);
    to->setDSOLocal(false);
  }
  from.replaceAllUsesWith(to);
  for (User* user : to->users()) {
    auto* call = dyn_cast<CallBase>(user);
    if (!call || call->getCalledOperand() != to) continue;
    call->removeFnAttr(Attribute::Memory);
    call->removeFnAttr(Attribute::Builtin);
  }
  from.eraseFromParent();
}

}  // namespace

unsigned redirect_functions(Module& module) {
  unsigned count = 0;
  for (const char* name : kRedirected) {
    Function* function = module.getFunction(name);
    if (!function || !function->isDeclaration()) continue;
    redirect(*function);
    ++count;
  }
  return count;
}

}  // namespace spw::pass
