; RUN: %opt -passes=spillway -spw-versions=0 -pass-remarks-missed=spillway -disable-output %s 2>&1 | %filecheck %s
; What stays untranslated is said.
target triple = "x86_64-pc-linux-gnu"

define void @f(ptr %p) {
; CHECK: inline assembly gets a pointer that may be managed
; CHECK: this intrinsic gets a pointer that may be managed
; CHECK-NOT: may be managed
  call void asm sideeffect "incq $0", "=*m,*m,~{memory}"(ptr elementtype(i64) %p, ptr elementtype(i64) %p)
  call void @llvm.x86.fxsave(ptr %p)
  %a = alloca i64
  call void asm sideeffect "incq $0", "=*m,*m,~{memory}"(ptr elementtype(i64) %a, ptr elementtype(i64) %a)
  call void @llvm.prefetch.p0(ptr %p, i32 0, i32 3, i32 1)
  ret void
}
declare void @llvm.x86.fxsave(ptr)
declare void @llvm.prefetch.p0(ptr, i32, i32, i32)
