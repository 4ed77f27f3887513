; RUN: %opt -passes=spillway,verify -spw-durable -spw-engine=translated -spw-versions=0 -S %s | %filecheck --check-prefix=TRANSLATED %s
; RUN: %opt -passes=spillway,verify -spw-durable -spw-engine=mapped -S %s | %filecheck --check-prefix=MAPPED %s
; RUN: %opt -passes=spillway,verify -spw-engine=none -S %s | %filecheck --check-prefix=NOTHING %s
; The test is on the program's address, whatever the engine does with it, and takes nothing from what the engine does.
target triple = "x86_64-pc-linux-gnu"
; NOTHING-NOT: spw

define void @store(ptr %p, i8 %v) {
; TRANSLATED-LABEL: define void @store
; TRANSLATED: call preserve_mostcc void @__spw_durable_store_v1(ptr %p, i64 1)
; TRANSLATED: call preserve_mostcc ptr @__spw_store_v1(ptr %p, i64 1)
; MAPPED-LABEL: define void @store
; MAPPED: call preserve_mostcc void @__spw_durable_store_v1(ptr %p, i64 1)
; MAPPED: call preserve_mostcc ptr @__spw_reach_store_v1(ptr %p, i64 1)
; MAPPED: store i8 %v, ptr %spw.raw
  store i8 %v, ptr %p
  ret void
}

; An announcement translates nothing: a segment and a loop's window go on across it.
define void @loop(ptr %p, ptr %q, i64 %n) {
; TRANSLATED-LABEL: define void @loop
; TRANSLATED: spw.dispatch
; Both versions announce.
; MAPPED-LABEL: define void @loop
; MAPPED-COUNT-2: call preserve_mostcc void @__spw_durable_store_v1
; MAPPED: ret void
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %to = getelementptr i64, ptr %p, i64 %i
  store i64 %i, ptr %to, align 8
  %next = add i64 %i, 1
  %more = icmp ne i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}
