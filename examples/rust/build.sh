#!/bin/sh
# Recompiles a Rust program by way of LLVM bitcode: build.sh SPILLWAY_CLANG SOURCE.rs OUTPUT [FLAG...]
#
# Link-time optimisation brings the standard library into the program's own module, so that its collections are
# instrumented too; panics abort, since nothing here unwinds. OUTPUT.native is the same program by rustc alone. Flags
# are spillway-clang's (-fspillway-engine=translated). SPILLWAY_CLANG has to be built for rustc's LLVM (`rustc
# --version --verbose`) or a newer one. For whole projects there is cargo spillway (rust/README.md).
set -e
[ $# -ge 3 ] || { echo "usage: build.sh SPILLWAY_CLANG SOURCE.rs OUTPUT [FLAG...]" >&2; exit 2; }
clang=$1 source=$2 output=$3
shift 3
rustc -O -C lto=fat -C codegen-units=1 -C panic=abort --emit="llvm-bc=$output.bc,link=$output.native" "$source"
# What compiled code calls by itself is in no bitcode: __rust_probestack, with rustc's LLVM before 16.
builtins=$(rustc --print target-libdir)
"$clang" -O2 -Wno-override-module "$@" "$output.bc" -o "$output" "$builtins"/libcompiler_builtins-*.rlib \
  -pthread -ldl -lm -lgcc_s
