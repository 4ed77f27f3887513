; RUN: %opt -passes=spillway,verify -spw-engine=none -spw-durable -S %s | %filecheck %s
; RUN: %opt -passes=spillway,verify -spw-engine=none -spw-durable -spw-durable-merge=0 -S %s | %filecheck --check-prefix=EACH %s
; Stores side by side are announced at once, at the first.
target triple = "x86_64-pc-linux-gnu"

define void @fields(ptr %p, i64 %v) {
; CHECK-LABEL: define void @fields
; CHECK: @__spw_durable_store_v1(ptr %p, i64 24)
; CHECK-NOT: spw
; CHECK: ret void
; EACH-LABEL: define void @fields
; EACH-COUNT-3: @__spw_durable_store_v1(ptr {{.*}}, i64 8)
; EACH: ret void
  store i64 %v, ptr %p
  %b = getelementptr i64, ptr %p, i64 1
  store i64 %v, ptr %b
  %c = getelementptr i64, ptr %p, i64 2
  %old = load i64, ptr %c
  store i64 %old, ptr %c
  ret void
}

; From the lowest, and no more than is stored.
define void @downwards(ptr %p, i64 %v) {
; CHECK-LABEL: define void @downwards
; CHECK: [[LOW:%.*]] = getelementptr i8, ptr {{.*}}, i64 -8
; CHECK: @__spw_durable_store_v1(ptr [[LOW]], i64 12)
; CHECK: @__spw_durable_store_v1(ptr %p, i64 2)
; CHECK-NOT: spw
; CHECK: ret void
  %c = getelementptr i64, ptr %p, i64 2
  store i32 0, ptr %c
  %b = getelementptr i64, ptr %p, i64 1
  store i64 %v, ptr %b
  store i16 0, ptr %p
  ret void
}

; Another announcement, a call, or an atomic access between them: each is announced on its own.
define void @between(ptr %p, ptr %q, i64 %v) {
; CHECK-LABEL: define void @between
; CHECK: @__spw_durable_store_v1(ptr %p, i64 8)
; CHECK: @__spw_durable_store_v1(ptr %q, i64 8)
; CHECK: @__spw_durable_store_v1(ptr %b, i64 8)
; CHECK: call void @unlocks()
; CHECK: @__spw_durable_store_v1(ptr %p, i64 8)
; CHECK: load atomic
; CHECK: @__spw_durable_store_v1(ptr %b, i64 8)
; CHECK: store i64
; CHECK: @__spw_durable_store_v1(ptr %p, i64 8)
; CHECK: atomicrmw
; CHECK: @__spw_durable_store_v1(ptr %b, i64 8)
; CHECK: store volatile i64
; CHECK: ret void
  %b = getelementptr i64, ptr %p, i64 1
  store i64 %v, ptr %p
  store i64 %v, ptr %q
  store i64 %v, ptr %b
  call void @unlocks()
  store i64 %v, ptr %p
  %f = load atomic i64, ptr %q acquire, align 8
  store i64 %f, ptr %b
  %g = atomicrmw add ptr %p, i64 1 monotonic
  store volatile i64 %g, ptr %b
  ret void
}
declare void @unlocks()
