; RUN: %opt -passes=spillway -spw-engine=none -spw-durable -pass-remarks-missed=spillway -disable-output %s 2>&1 | %filecheck %s
; What stores without an announcement is said.
target triple = "x86_64-pc-linux-gnu"

define void @f(ptr %p, ptr %q) {
; CHECK: inline assembly gets a pointer that may be to persistent memory
; CHECK: this intrinsic may store to persistent memory
; CHECK-NOT: persistent
  call void asm sideeffect "incq ($0)", "r,~{memory}"(ptr %p)
  call void @llvm.x86.fxsave(ptr %p)
  call void asm sideeffect "incq $0", "=*m,*m,~{memory}"(ptr elementtype(i64) %p, ptr elementtype(i64) %p)
  %a = alloca i64
  call void asm sideeffect "incq ($0)", "r,~{memory}"(ptr %a)
  %v = call i64 asm "movq ($1), $0", "=r,r"(ptr %p) memory(read)
  %w = call <4 x i32> @llvm.masked.load.v4i32.p0(ptr %q, i32 4, <4 x i1> zeroinitializer, <4 x i32> zeroinitializer)
  call void @llvm.prefetch.p0(ptr %p, i32 0, i32 3, i32 1)
  ret void
}
declare void @llvm.x86.fxsave(ptr)
declare <4 x i32> @llvm.masked.load.v4i32.p0(ptr, i32, <4 x i1>, <4 x i32>)
declare void @llvm.prefetch.p0(ptr, i32, i32, i32)
