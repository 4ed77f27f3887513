; RUN: %opt -passes=spillway,verify -spw-engine=mapped -spw-reach=0 -spw-versions=0 -S %s | %filecheck %s
; RUN: %opt -passes=spillway,verify -spw-engine=mapped -spw-reach=0 -spw-versions=0 -spw-hint-merge=0 -S %s | %filecheck %s --check-prefix=NOMERGE
; RUN: %opt -passes=spillway,verify -spw-engine=mapped -spw-reach=0 -spw-versions=0 -spw-hint-dominated=0 -S %s | %filecheck %s --check-prefix=NODOM
; One hint for accesses near each other, in a block and where one dominates the other.
target triple = "x86_64-pc-linux-gnu"

; The later store makes the hint one for a store. A call between changes nothing.
define i64 @near(ptr %p) {
; CHECK-LABEL: define i64 @near
; CHECK: icmp ne i8
; CHECK: call preserve_mostcc void @__spw_hint_store_v1(ptr %p)
; CHECK-NOT: __spw_hint
; CHECK: ret i64
; NOMERGE-LABEL: define i64 @near
; NOMERGE: @__spw_hint_load_v1(ptr %p)
; NOMERGE: @__spw_hint_store_v1(ptr %q)
; NOMERGE: @__spw_hint_load_v1(ptr %r)
; NOMERGE: ret i64
  %a = load i64, ptr %p
  call void @other()
  %q = getelementptr i8, ptr %p, i64 8
  store i64 %a, ptr %q
  %r = getelementptr i8, ptr %p, i64 -1000
  %b = load i64, ptr %r
  ret i64 %b
}

define i64 @far(ptr %p) {
; CHECK-LABEL: define i64 @far
; CHECK: @__spw_hint_load_v1(ptr %p)
; CHECK: @__spw_hint_load_v1(ptr %q)
; CHECK: ret i64
  %a = load i64, ptr %p
  %q = getelementptr i8, ptr %p, i64 4096
  %b = load i64, ptr %q
  ret i64 %b
}

; The same index, a base that is only known at run time.
define i64 @index(ptr %p, i64 %i) {
; CHECK-LABEL: define i64 @index
; CHECK-COUNT-1: call preserve_mostcc void @__spw_hint
; CHECK-NOT: __spw_hint
; CHECK: ret i64
  %q = getelementptr i64, ptr %p, i64 %i
  %a = load i64, ptr %q
  %j = add i64 %i, 1
  %r = getelementptr i64, ptr %p, i64 %j
  %b = load i64, ptr %r
  %c = add i64 %a, %b
  ret i64 %c
}

define void @dominated(ptr %p, i1 %c) {
; CHECK-LABEL: define void @dominated
; CHECK: @__spw_hint_load_v1(ptr %p)
; CHECK: then:
; CHECK-NOT: __spw_hint_load
; CHECK: @__spw_hint_store_v1(ptr %r)
; CHECK: ret void
; NODOM-LABEL: define void @dominated
; NODOM: then:
; NODOM: @__spw_hint_load_v1(ptr %q)
; NODOM: ret void
entry:
  %a = load i64, ptr %p
  br i1 %c, label %then, label %done
then:
  %q = getelementptr i8, ptr %p, i64 8
  %b = load i64, ptr %q
  br label %done
done:
; A load's hint elsewhere does not stand for a store.
  %r = getelementptr i8, ptr %p, i64 16
  store i64 %a, ptr %r
  ret void
}

; Neither dominates the other.
define i64 @beside(ptr %p, i1 %c) {
; CHECK-LABEL: define i64 @beside
; CHECK-COUNT-2: call preserve_mostcc void @__spw_hint_load_v1
; CHECK: ret i64
  br i1 %c, label %then, label %else
then:
  %a = load i64, ptr %p
  ret i64 %a
else:
  %b = load i64, ptr %p
  ret i64 %b
}
declare void @other()
