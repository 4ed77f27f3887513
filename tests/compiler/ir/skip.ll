; RUN: %opt -passes=spillway -spw-versions=0 -spw-trust-alignment -S %s | %filecheck %s
; RUN: %opt -passes=spillway -spw-versions=0 -spw-skip-unmanaged=0 -spw-trust-alignment -S %s | %filecheck %s --check-prefix=ALL
; Pointers that never point into managed space.
target triple = "x86_64-pc-linux-gnu"
@g = external global [10 x i64]
@t = external thread_local global i64
@vtable = external constant [4 x ptr]

define i64 @stack(i64 %i, i1 %c) {
; CHECK-LABEL: define i64 @stack
; CHECK-NOT: spw
; CHECK: ret i64
; ALL-LABEL: define i64 @stack
; ALL: __spw_store_v1
  %a = alloca [10 x i64]
  %b = alloca i64
  %e = getelementptr i64, ptr %a, i64 %i
  %q = select i1 %c, ptr %e, ptr %b
  store i64 %i, ptr %q
  %v = load i64, ptr %e
  ret i64 %v
}

define i64 @globals(i64 %i) {
; CHECK-LABEL: define i64 @globals
; CHECK-NOT: spw
; CHECK: ret i64
  %e = getelementptr i64, ptr @g, i64 %i
  %v = load i64, ptr %e
  %t = call ptr @llvm.threadlocal.address.p0(ptr @t)
  store i64 %v, ptr %t
  %error = call ptr @__errno_location()
  store i32 0, ptr %error
  ret i64 %v
}

define i64 @loop_over_stack(i64 %n) {
; CHECK-LABEL: define i64 @loop_over_stack
; CHECK-NOT: spw
; CHECK: ret i64
entry:
  %a = alloca [100 x i64]
  br label %loop
loop:
  %p = phi ptr [ %a, %entry ], [ %next, %loop ]
  %v = load i64, ptr %p
  %next = getelementptr i64, ptr %p, i64 1
  %c = icmp eq i64 %v, %n
  br i1 %c, label %done, label %loop
done:
  ret i64 %v
}

define i64 @maybe(i1 %c, ptr %p) {
; CHECK-LABEL: define i64 @maybe
; CHECK: __spw_load_v1
  %b = alloca i64
  %q = select i1 %c, ptr %b, ptr %p
  %v = load i64, ptr %q
  ret i64 %v
}

; The table is unmanaged, the object that points to it is not.
define void @virtual_call(ptr %object) {
; CHECK-LABEL: define void @virtual_call
; CHECK: call preserve_mostcc ptr @__spw_load_v1(ptr %object, i64 8)
; CHECK-NOT: __spw_load_v1
; CHECK-LABEL: define i64 @via_calls
  %table = load ptr, ptr %object, !tbaa !0
  %slot = getelementptr ptr, ptr %table, i64 2
  %function = load ptr, ptr %slot
  call void %function(ptr %object)
  ret void
}

; A local function whose every call passes the stack; recursion does not hide it.
define i64 @via_calls(ptr %managed) {
  %a = alloca i64
  %x = call i64 @only_stack(ptr %a, i64 3)
  %y = call i64 @both(ptr %a)
  %z = call i64 @both(ptr %managed)
  ret i64 %x
}
define internal i64 @only_stack(ptr %p, i64 %n) {
; CHECK-LABEL: define internal i64 @only_stack
; CHECK-NOT: spw
; CHECK: ret i64
  %v = load i64, ptr %p
  %q = getelementptr i8, ptr %p, i64 0
  %w = call i64 @only_stack(ptr %q, i64 %v)
  ret i64 %v
}
define internal i64 @both(ptr %p) {
; CHECK-LABEL: define internal i64 @both
; CHECK: __spw_load_v1
  %v = load i64, ptr %p
  ret i64 %v
}
define internal i64 @address_taken(ptr %p) {
; CHECK-LABEL: define internal i64 @address_taken
; CHECK: __spw_load_v1
  %v = load i64, ptr %p
  ret i64 %v
}
@pointer = global ptr @address_taken

define void @region(ptr %managed) {
  %shared = alloca i64
  call void (ptr, i32, ptr, ...) @__kmpc_fork_call(ptr @g, i32 2, ptr @outlined, ptr %shared, ptr %managed)
  ret void
}
define internal void @outlined(ptr noalias %thread, ptr noalias %team, ptr %shared, ptr %data) {
; CHECK-LABEL: define internal void @outlined
; CHECK: load i32, ptr %thread
; CHECK: load i64, ptr %shared
; CHECK: __spw_load_v1(ptr %data, i64 8)
; CHECK-NOT: __spw_load_v1
; CHECK: declare
  %t = load i32, ptr %thread
  %a = load i64, ptr %shared
  %b = load i64, ptr %data
  ret void
}
declare void @__kmpc_fork_call(ptr, i32, ptr, ...)
declare ptr @__errno_location()
declare ptr @llvm.threadlocal.address.p0(ptr)
!0 = !{!1, !1, i64 0}
!1 = !{!"vtable pointer", !2, i64 0}
!2 = !{!"Simple C++ TBAA"}
