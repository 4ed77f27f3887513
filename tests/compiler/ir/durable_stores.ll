; RUN: %opt -passes=spillway,verify -spw-engine=none -spw-durable -S %s | %filecheck %s
; Stores of every kind are announced in front, if they go to the range of persistent memory; nothing else is written.
target triple = "x86_64-pc-linux-gnu"
; CHECK: @__spw_durable_range_v1 = external global { i64, i64 }
; CHECK-NOT: @__spw_abi
; CHECK-NOT: @__spw_hints

define void @scalar(ptr %p, i32 %v) {
; CHECK-LABEL: define void @scalar
; CHECK-NEXT: [[TESTED:%.*]] = freeze ptr %p
; CHECK-NEXT: [[BITS:%.*]] = ptrtoint ptr [[TESTED]] to i64
; CHECK-NEXT: [[FIRST:%.*]] = load i64, ptr @__spw_durable_range_v1, align 8, !nosanitize
; CHECK-NEXT: [[DISTANCE:%.*]] = sub i64 [[BITS]], [[FIRST]]
; CHECK-NEXT: [[BYTES:%.*]] = load i64, ptr getelementptr inbounds {{.*}}@__spw_durable_range_v1{{.*}}, align 8, !nosanitize
; CHECK-NEXT: [[HIT:%.*]] = icmp ult i64 [[DISTANCE]], [[BYTES]]
; CHECK-NEXT: br i1 [[HIT]], label %[[CALL:.*]], label %[[GO:.*]], !prof [[UNLIKELY:!.*]]
; CHECK: [[CALL]]:
; CHECK-NEXT: call preserve_mostcc void @__spw_durable_store_v1(ptr %p, i64 4)
; CHECK-NEXT: br label %[[GO]]
; CHECK: [[GO]]:
; CHECK-NEXT: store i32 %v, ptr %p
; CHECK-NEXT: ret void
  store i32 %v, ptr %p
  ret void
}

; Loads, and stores through another address space, are left alone.
define i32 @loads(ptr %p, ptr addrspace(257) %segment) {
; CHECK-LABEL: define i32 @loads
; CHECK-NOT: spw
; CHECK: ret i32
  %v = load i32, ptr %p
  store i32 %v, ptr addrspace(257) %segment
  ret i32 %v
}

define void @sizes(ptr %p, ptr %q, ptr %r, ptr %s, <4 x double> %v, { i64, i32 } %w) {
; CHECK-LABEL: define void @sizes
; CHECK: @__spw_durable_store_v1(ptr %p, i64 32)
; CHECK: store <4 x double>
; CHECK: @__spw_durable_store_v1(ptr %q, i64 16)
; CHECK: store { i64, i32 }
; CHECK: @__spw_durable_store_v1(ptr %r, i64 1)
; CHECK: store i1
; CHECK: @__spw_durable_store_v1(ptr %s, i64 8)
; CHECK: store volatile i64
  store <4 x double> %v, ptr %p
  store { i64, i32 } %w, ptr %q
  store i1 true, ptr %r
  store volatile i64 1, ptr %s
  ret void
}

; Also where a compare-and-swap may fail.
define i64 @atomics(ptr %p, ptr %q, ptr %r) {
; CHECK-LABEL: define i64 @atomics
; CHECK: @__spw_durable_store_v1(ptr %p, i64 8)
; CHECK: atomicrmw
; CHECK: @__spw_durable_store_v1(ptr %q, i64 4)
; CHECK: cmpxchg
; CHECK: @__spw_durable_store_v1(ptr %r, i64 8)
; CHECK: store atomic
  %a = atomicrmw add ptr %p, i64 1 monotonic
  %b = cmpxchg ptr %q, i32 1, i32 2 monotonic monotonic
  store atomic i64 %a, ptr %r release, align 8
  ret i64 %a
}

; The destination; a length that is not known may be 0, and the address anything.
define void @memory(ptr %to, ptr %from, i64 %n, i32 %m) {
; CHECK-LABEL: define void @memory
; CHECK: @__spw_durable_store_v1(ptr %to, i64 24)
; CHECK: @llvm.memcpy
; CHECK: [[FROZEN:%.*]] = freeze ptr %to
; CHECK: ptrtoint ptr [[FROZEN]] to i64
; CHECK: @__spw_durable_store_v1(ptr [[FROZEN]], i64 %n)
; CHECK: @llvm.memmove
; CHECK: [[WIDE:%.*]] = zext i32 %m to i64
; CHECK: @__spw_durable_store_v1(ptr {{.*}}, i64 [[WIDE]])
; CHECK: @llvm.memset
; CHECK-NOT: spw
; CHECK: ret void
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 24, i1 false)
  call void @llvm.memmove.p0.p0.i64(ptr %to, ptr %from, i64 %n, i1 false)
  call void @llvm.memset.p0.i32(ptr %to, i8 0, i32 %m, i1 false)
  call void @llvm.memset.p0.i32(ptr %to, i8 0, i32 0, i1 false)
  ret void
}

; Results in memory; of several, each again behind it.
define void @assembly(ptr %p, ptr %q) {
; CHECK-LABEL: define void @assembly
; CHECK: @__spw_durable_store_v1(ptr %p, i64 8)
; CHECK: asm "incq $0"
; CHECK: @__spw_durable_store_v1(ptr %p, i64 8)
; CHECK: @__spw_durable_store_v1(ptr %q, i64 4)
; CHECK: asm "two"
; CHECK: @__spw_durable_store_v1(ptr %p, i64 8)
; CHECK: @__spw_durable_store_v1(ptr %q, i64 4)
; CHECK-NOT: spw
; CHECK: ret void
  call void asm "incq $0", "=*m,*m"(ptr elementtype(i64) %p, ptr elementtype(i64) %p)
  call void asm "two", "=*m,=*m"(ptr elementtype(i64) %p, ptr elementtype(i32) %q)
  call void asm "reads", "*m"(ptr elementtype(i64) %p)
  ret void
}

; What is not persistent for certain, and what its author excluded.
@g = external global [10 x i64]
define void @skipped(i64 %i, ptr byval(i64) %copy) {
; CHECK-LABEL: define void @skipped
; CHECK-NOT: spw
; CHECK: ret void
  %a = alloca [10 x i64]
  %e = getelementptr i64, ptr %a, i64 %i
  store i64 1, ptr %e
  call void @escape(ptr %a)
  store i64 2, ptr %e
  %f = getelementptr i64, ptr @g, i64 %i
  store i64 1, ptr %f
  store i64 1, ptr %copy
  call void @llvm.memset.p0.i64(ptr @g, i8 0, i64 80, i1 false)
  ret void
}
define void @excluded(ptr %p) disable_sanitizer_instrumentation {
; CHECK-LABEL: define void @excluded
; CHECK-NOT: spw
; CHECK: ret void
  store i64 1, ptr %p
  ret void
}

; Also without optimisation; and what the optimiser inferred of memory holds no longer.
define void @unoptimised(ptr %p) noinline optnone memory(write) {
; CHECK-LABEL: define void @unoptimised
; CHECK: @__spw_durable_store_v1(ptr %p, i64 8)
; CHECK: ret void
  store i64 1, ptr %p
  ret void
}
declare void @escape(ptr)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i32(ptr, i8, i32, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
; No mark is left.
; CHECK-NOT: spw.durable.mark
; CHECK: declare preserve_mostcc void @__spw_durable_store_v1(ptr, i64) #[[ATTRIBUTES:[0-9]+]]
; CHECK-NOT: memory(write)
; CHECK: attributes #[[ATTRIBUTES]] = {{.*}}nonlazybind
; CHECK: [[UNLIKELY]] = !{!"branch_weights", i32 1, i32 1048576}
