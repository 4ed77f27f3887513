// The plugin's door: where in LLVM's pipelines the pass runs.
//
// Last in the pipeline of one module, at every level. With link-time optimisation the drivers load the plugin
// into the linker instead of the compiler: full LTO then runs it last at link time, ThinLTO last in each
// backend. (ThinLTO's compile step would run "last" before vectorisation, and the optimiser would then work
// on translated code.)
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Passes/PassPlugin.h"
#include "pass/instrument.h"

namespace {

using namespace llvm;

void add_pass(ModulePassManager& passes, OptimizationLevel) { passes.addPass(spw::pass::InstrumentPass()); }

void register_callbacks(PassBuilder& builder) {
  builder.registerOptimizerLastEPCallback(add_pass);
  builder.registerFullLinkTimeOptimizationLastEPCallback(add_pass);
  builder.registerPipelineParsingCallback(
      [](StringRef name, ModulePassManager& passes, ArrayRef<PassBuilder::PipelineElement>) {
        if (name != "spillway") return false;
        passes.addPass(spw::pass::InstrumentPass());
        return true;
      });
}

}  // namespace

extern "C" LLVM_ATTRIBUTE_WEAK __attribute__((visibility("default"))) PassPluginLibraryInfo
llvmGetPassPluginInfo() {
  return {LLVM_PLUGIN_API_VERSION, "spillway", "1", register_callbacks};
}
