; RUN: %opt -passes=spillway -spw-versions=0 -S %s | %filecheck %s
; Atomics translate for store and keep their order; an atomic load translates for load.
target triple = "x86_64-pc-linux-gnu"

define i64 @all(ptr %p, i64 %v, i128 %w) {
; CHECK-LABEL: define i64 @all
; CHECK: load atomic i64, ptr %spw.raw{{[0-9]*}} acquire
; CHECK: store atomic i64 %v, ptr %spw.raw{{[0-9]*}} release
; CHECK: atomicrmw volatile add ptr %spw.raw{{[0-9]*}}, i64 %v seq_cst
; CHECK: cmpxchg weak ptr %spw.raw{{[0-9]*}}, i128 %w, i128 0 acq_rel monotonic, align 16
; CHECK-DAG: call preserve_mostcc ptr @__spw_load_v1(ptr %p, i64 8)
; CHECK-DAG: call preserve_mostcc ptr @__spw_store_v1(ptr %p, i64 16)
; CHECK-NOT: store_across
  %a = load atomic i64, ptr %p acquire, align 8
  fence seq_cst
  call void @other()
  store atomic i64 %v, ptr %p release, align 8
  call void @other()
  %b = atomicrmw volatile add ptr %p, i64 %v seq_cst
  call void @other()
  %c = cmpxchg weak ptr %p, i128 %w, i128 0 acq_rel monotonic, align 16
  ret i64 %a
}
declare void @other()
