; RUN: %opt -passes=spillway -spw-versions=0 -spw-trust-alignment -S %s | %filecheck %s
; RUN: %opt -passes=spillway -spw-versions=0 -spw-merge=0 -spw-trust-alignment -S %s | %filecheck %s --check-prefix=NOMERGE
target triple = "x86_64-pc-linux-gnu"

; Three accesses within 24 bytes: one translation for the store of all, and one each in the slow copy.
define i64 @near(ptr %p) {
; CHECK-LABEL: define i64 @near
; CHECK: [[LOW:%.*]] = getelementptr i8, ptr {{.*}}, i64 -8
; CHECK: add i64 {{.*}}, 23
; CHECK: getelementptr inbounds i8, ptr %spw.entry, i64 4
; CHECK: spw.found:
; CHECK: [[DELTA:%spw.delta]] = phi i64 [ 0, {{.*}} ]
; CHECK: [[RAW:%spw.raw.*]] = getelementptr i8, ptr [[LOW]], i64 [[DELTA]]
; CHECK: spw.fast:
; CHECK-NEXT: getelementptr i8, ptr [[RAW]], i64 8
; CHECK: getelementptr i8, ptr [[RAW]], i64 0
; CHECK: getelementptr i8, ptr [[RAW]], i64 16
; CHECK: spw.join:
; CHECK: phi i64
; CHECK: call preserve_mostcc ptr @__spw_store_v1(ptr {{.*}}, i64 24)
; CHECK-DAG: call preserve_mostcc ptr @__spw_store_v1(ptr {{.*}}, i64 8)
; CHECK-DAG: call preserve_mostcc ptr @__spw_load_v1(ptr {{.*}}, i64 8)
; CHECK-DAG: call preserve_mostcc ptr @__spw_load_v1(ptr {{.*}}, i64 8)
; NOMERGE-LABEL: define i64 @near
; NOMERGE-NOT: spw.fast
  %q = getelementptr i8, ptr %p, i64 8
  %a = load i64, ptr %q
  store i64 %a, ptr %p
  %r = getelementptr i8, ptr %p, i64 16
  %b = load i64, ptr %r
  ret i64 %b
}

; A call may free, and may translate: nothing is shared across it.
define i64 @call_between(ptr %p) {
; CHECK-LABEL: define i64 @call_between
; CHECK-NOT: spw.fast
; CHECK: ret i64
  %a = load i64, ptr %p
  call void @other()
  %q = getelementptr i8, ptr %p, i64 8
  %b = load i64, ptr %q
  ret i64 %b
}

; Not in one block: the second may never happen, and its address lie nowhere.
define i64 @conditional(ptr %p, i1 %c) {
; CHECK-LABEL: define i64 @conditional
; CHECK-NOT: spw.fast
; CHECK: ret i64
  %a = load i64, ptr %p
  br i1 %c, label %then, label %done
then:
  %q = getelementptr i8, ptr %p, i64 8
  %b = load i64, ptr %q
  ret i64 %b
done:
  ret i64 %a
}

define i64 @far(ptr %p) {
; CHECK-LABEL: define i64 @far
; CHECK-NOT: spw.fast
; CHECK: ret i64
  %a = load i64, ptr %p
  %q = getelementptr i8, ptr %p, i64 600
  %b = load i64, ptr %q
  ret i64 %b
}

; Small code is asked for: no copies.
define i64 @small(ptr %p) optsize {
; CHECK-LABEL: define i64 @small
; CHECK-NOT: spw.fast
; CHECK: ret i64
  %a = load i64, ptr %p
  %q = getelementptr i8, ptr %p, i64 8
  %b = load i64, ptr %q
  ret i64 %b
}
declare void @other()
