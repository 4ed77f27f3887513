#include "pass/library_code.h"

#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/Linker/Linker.h"
#include "llvm/Support/MemoryBuffer.h"
#include "pass/options.h"

// Of library_bitcode.S.
extern "C" const char spw_library_bitcode_begin[], spw_library_bitcode_end[];

namespace spw::pass {

using namespace llvm;

namespace {

struct LibraryFunction {
  const char* name;
  const char* ours;
};
constexpr LibraryFunction kFunctions[] = {
#define SPW_LIBRARY_FUNCTION(name, ours) {#name, #ours},
#include "compiler/library/functions.inc"
#undef SPW_LIBRARY_FUNCTION
};

void replace(Function& from, StringRef name) {
  Module& module = *from.getParent();
  FunctionCallee to = module.getOrInsertFunction(name, from.getFunctionType());
  from.replaceAllUsesWith(to.getCallee());
  from.eraseFromParent();
}

const char* name_of(EngineKind engine) {
  switch (engine) {
    case EngineKind::kMapped:
      return "_mapped";
    case EngineKind::kTranslated:
      return "_translated";
    case EngineKind::kNone:
      return "_none";
  }
  llvm_unreachable("an engine without a name");
}

// Every module that uses one has it; the linker keeps one of them for each way of instrumenting, as their code differs.
void share(Function& function, EngineKind engine, bool durable) {
  function.setName(function.getName() + name_of(engine) + (durable ? "_durable" : "") + "_v1");
  function.setLinkage(GlobalValue::LinkOnceODRLinkage);
  function.setVisibility(GlobalValue::HiddenVisibility);
  function.setComdat(function.getParent()->getOrInsertComdat(function.getName()));
}

}  // namespace

void link_library_code(Module& module, EngineKind engine, bool durable) {
  bool is_needed = false;
  for (const LibraryFunction& known : kFunctions) {
    Function* function = module.getFunction(known.name);
    if (!function || !function->isDeclaration() || function->use_empty()) continue;
    replace(*function, known.ours);
    is_needed = true;
  }
  if (!is_needed) return;
  const StringRef bitcode(spw_library_bitcode_begin,
                          static_cast<size_t>(spw_library_bitcode_end - spw_library_bitcode_begin));
  auto library = parseBitcodeFile(MemoryBufferRef(bitcode, "library"), module.getContext());
  if (!library) report_fatal_error(library.takeError());
  (*library)->setDataLayout(module.getDataLayout());
  (*library)->setTargetTriple(module.getTargetTriple());
  // Its functions use nothing that these tell of (the size of wchar_t, ...), and linking would compare them.
  if (NamedMDNode* flags = (*library)->getModuleFlagsMetadata()) (*library)->eraseNamedMetadata(flags);
  if (Linker::linkModules(module, std::move(*library), Linker::Flags::LinkOnlyNeeded))
    report_fatal_error("spillway: the library's code cannot be linked");
  for (const LibraryFunction& known : kFunctions)
    if (Function* function = module.getFunction(known.ours); function && !function->isDeclaration())
      share(*function, engine, durable);
}

}  // namespace spw::pass
