; RUN: %not %opt -passes=spillway -spw-versions=0 -S %s 2>&1 | %filecheck %s
; CHECK: spillway: only x86-64 can be instrumented, not aarch64-linux-gnu
target triple = "aarch64-linux-gnu"
