; RUN: %opt -passes=spillway -spw-versions=0 -spw-trust-alignment -S %s | %filecheck %s
; RUN: %opt -passes=spillway -spw-versions=0 -S %s | %filecheck --check-prefix=MISTRUST %s
target triple = "x86_64-pc-linux-gnu"

define void @aligned(ptr %p, i32 %v) {
; CHECK-LABEL: define void @aligned
; The write tag is the second word of an entry.
; CHECK: [[ENTRY:%spw.entry]] = getelementptr
; CHECK: [[TAGP:%.*]] = getelementptr inbounds i8, ptr [[ENTRY]], i64 4
; CHECK: load i32, ptr [[TAGP]]
; CHECK: store i32 %v, ptr %spw.raw, align 4
; CHECK: call preserve_mostcc ptr @__spw_store_v1(ptr %p, i64 4)
; Where it says that it lies may not be where it does.
; MISTRUST-LABEL: define void @aligned
; MISTRUST: add i64 {{.*}}, 3
; MISTRUST: call preserve_mostcc void @__spw_store_across_v1(ptr %p, ptr {{.*}}, i64 4)
  store i32 %v, ptr %p, align 4
  ret void
}

; Only a byte lies in one granule for certain; the processor sees to vectors and atomics.
define void @certain(ptr %p, i8 %v, <4 x i32> %w, i64 %a) {
; MISTRUST-LABEL: define void @certain
; MISTRUST-NOT: store_across
; MISTRUST: ret void
; MISTRUST-NOT: store_across
  store i8 %v, ptr %p, align 1
  store <4 x i32> %w, ptr %p, align 16
  store atomic i64 %a, ptr %p seq_cst, align 8
  ret void
}
; MISTRUST-LABEL: define void @may_cross

; A store that can cross goes through memory when it misses, and the plain store is skipped.
define void @may_cross(ptr %p, double %v) {
; CHECK-LABEL: define void @may_cross
; CHECK: [[SLOT:%.*]] = alloca double
; CHECK: [[LAST:%.*]] = add i64 {{.*}}, 7
; CHECK: store double %v, ptr %spw.raw, align 2
; CHECK-NEXT: br label %[[DONE:.*]]
; CHECK: [[DONE]]:
; CHECK-NEXT: ret void
; CHECK: store double %v, ptr [[SLOT]]
; CHECK-NEXT: call preserve_mostcc void @__spw_store_across_v1(ptr %p, ptr [[SLOT]], i64 8)
; CHECK-NEXT: br label %[[DONE]]
  store double %v, ptr %p, align 2
  ret void
}

define void @aggregate(ptr %p, { i64, i32 } %v) {
; CHECK-LABEL: define void @aggregate
; CHECK: @__spw_store_across_v1(ptr %p, ptr {{.*}}, i64 16)
  store { i64, i32 } %v, ptr %p, align 8
  ret void
}

define void @wide(ptr %p, <32 x i64> %v) {
; CHECK-LABEL: define void @wide
; CHECK: call ptr @__spw_memcpy_v1(ptr %p, ptr {{.*}}, i64 256)
  store <32 x i64> %v, ptr %p, align 256
  ret void
}
