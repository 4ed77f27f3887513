; RUN: %opt -passes=spillway,verify -spw-engine=mapped -spw-reach=0 -spw-versions=0 -S %s | %filecheck %s
; RUN: %opt -passes=spillway,verify -spw-engine=mapped -spw-reach=0 -spw-versions=0 -spw-hint-hoist=0 -S %s | %filecheck %s --check-prefix=NOHOIST
; The hint of an address that does not change in a loop stands before it, if every iteration uses the address.
target triple = "x86_64-pc-linux-gnu"

define void @invariant(ptr %p, i64 %n) {
; CHECK-LABEL: define void @invariant
; NOHOIST-LABEL: define void @invariant
; NOHOIST: inner:
; NOHOIST: @__spw_hint_store_v1(ptr %p)
; NOHOIST: ret void
entry:
; CHECK: entry:
; CHECK: [[SAME:%.*]] = freeze ptr %p
; CHECK: and i64 {{.*}}, 140737488355327
; CHECK: @__spw_hint_store_v1(ptr [[SAME]])
; CHECK: outer:
; CHECK-NOT: __spw_hint
; CHECK: ret void
  br label %outer
outer:
  %i = phi i64 [ 0, %entry ], [ %i.next, %latch ]
  br label %inner
inner:
  %j = phi i64 [ 0, %outer ], [ %j.next, %inner ]
  store volatile i64 %j, ptr %p
  %j.next = add i64 %j, 1
  %c = icmp ult i64 %j.next, %n
  br i1 %c, label %inner, label %latch
latch:
  %i.next = add i64 %i, 1
  %d = icmp ult i64 %i.next, %n
  br i1 %d, label %outer, label %done
done:
  ret void
}

; What an iteration may not touch can be any address.
define void @conditional(ptr %p, i64 %n, i1 %yes) {
; CHECK-LABEL: define void @conditional
; CHECK: entry:
; CHECK-NEXT: br label %loop
; CHECK: then:
; CHECK: @__spw_hint_store_v1(ptr %p)
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %latch ]
  br i1 %yes, label %then, label %latch
then:
  store volatile i64 %i, ptr %p
  br label %latch
latch:
  %i.next = add i64 %i, 1
  %c = icmp ult i64 %i.next, %n
  br i1 %c, label %loop, label %done
done:
  ret void
}
