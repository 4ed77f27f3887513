; RUN: %opt -passes=spillway,verify -spw-engine=mapped -spw-reach=0 -S %s | %filecheck %s
; RUN: %opt -passes=spillway,verify -spw-engine=mapped -spw-reach=0 -spw-polls=0 -S %s | %filecheck %s --check-prefix=NOPOLL
; RUN: %opt -passes=spillway,verify -spw-engine=mapped -spw-reach=0 -spw-versions=0 -S %s | %filecheck %s --check-prefix=ONE
; Two versions of a function, and where the plain one goes over to the hinted one.
target triple = "x86_64-pc-linux-gnu"

; A loop without a bound asks at each iteration, in both versions. What its other blocks use comes from both.
define i64 @chase(ptr %p, i64 %k) {
; CHECK-LABEL: define i64 @chase
; CHECK: entry:
; CHECK-NEXT: %slot = alloca i64
; CHECK-NEXT: [[SWITCH:%.*]] = load volatile i8, ptr inttoptr (i64 2147450880 to ptr)
; CHECK-NEXT: [[SET:%.*]] = icmp ne i8 [[SWITCH]], 0
; CHECK-NEXT: br i1 [[SET]], label %[[HINTED:.*]], label %[[PLAIN:.*]], !prof
; CHECK: [[PLAIN]]:
; CHECK: [[X_PLAIN:%.*]] = mul i64 %k, 3
; CHECK: loop.plain:
; CHECK-NEXT: [[BOTH_PLAIN:%.*]] = phi i64 {{.*}}[ [[X_PLAIN]], %[[PLAIN]] ]
; CHECK-NEXT: [[NODE_PLAIN:%.*]] = phi ptr {{.*}}[ %node, %loop ]
; CHECK: load volatile i8
; CHECK: br i1 {{.*}}, label %loop, label %[[REST:.*]], !prof
; CHECK: [[REST]]:
; CHECK-NOT: __spw_hint
; CHECK: icmp eq i64 {{.*}}, [[BOTH_PLAIN]]
; CHECK: ret i64
; CHECK: [[HINTED]]:
; CHECK: [[X:%.*]] = mul i64 %k, 3
; CHECK: loop:
; CHECK-DAG: [[BOTH:%.*]] = phi i64 [ [[BOTH_PLAIN]], %loop.plain ], {{.*}}[ [[X]], %[[HINTED]] ]
; CHECK-DAG: phi ptr [ %p, %[[HINTED]] ], {{.*}}[ [[NODE_PLAIN]], %loop.plain ]
; CHECK: load volatile i8
; CHECK: [[CLEAR:%.*]] = xor i1 {{.*}}, true
; CHECK-NEXT: br i1 [[CLEAR]], label %loop.plain, label {{.*}}, !prof
; CHECK: @__spw_hint_load_v1
; CHECK: icmp eq i64 {{.*}}, [[BOTH]]
; CHECK: ret i64
; NOPOLL-LABEL: define i64 @chase
; NOPOLL-COUNT-1: load volatile i8
; NOPOLL-NOT: load volatile i8
; NOPOLL: ret i64
; ONE-LABEL: define i64 @chase
; ONE-NOT: load volatile i8
; ONE: ret i64
entry:
  %slot = alloca i64
  %x = mul i64 %k, 3
  br label %loop
loop:
  %node = phi ptr [ %p, %entry ], [ %next, %loop ]
  %next = load ptr, ptr %node
  %q = getelementptr i8, ptr %next, i64 8000
  %v = load i64, ptr %q
  %c = icmp eq i64 %v, %x
  br i1 %c, label %done, label %loop
done:
  ret i64 %v
}

; A loop that counts to a bound asks once a chunk, and goes over to the start of the other's chunk.
define <2 x i64> @counted(ptr %p, i64 %n) {
; CHECK-LABEL: define <2 x i64> @counted
; CHECK: icmp ugt i64 {{.*}}, 1022
; CHECK: br i1 {{.*}}, label %[[LONG:.*]], label %{{.*}}, !prof
; CHECK: [[LONG]]:
; CHECK: load volatile i8
; CHECK: br i1 {{.*}}, label %[[DISPATCH:.*]], label
; CHECK: loop.plain:
; CHECK-NOT: load volatile
; CHECK: [[DISPATCH]]:
; CHECK: phi i64 {{.*}}%[[LONG]] ]
; CHECK: load volatile i8
; CHECK: xor
; CHECK-NEXT: br i1 {{.*}}, label %spw.dispatch{{.*}}, label {{.*}}, !prof
; CHECK: loop:
; CHECK-NOT: load volatile
; CHECK: ret <2 x i64>
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %loop ]
  %s = phi <2 x i64> [ zeroinitializer, %entry ], [ %t, %loop ]
  %q = getelementptr i64, ptr %p, i64 %i
  %v = load <2 x i64>, ptr %q, align 8
  %t = add <2 x i64> %s, %v
  %i.next = add i64 %i, 2
  %c = icmp eq i64 %i.next, %n
  br i1 %c, label %done, label %loop
done:
  ret <2 x i64> %t
}

; So does one that counts until it has passed a bound. Nothing is left where the first iteration passes it.
define i64 @passes(ptr %p, i64 %n) {
; CHECK-LABEL: define i64 @passes
; CHECK: spw.dispatch{{.*}}:
; CHECK: [[FROM:%.*]] = add i64 {{.*}}, 3
; CHECK-NEXT: [[PASSED:%.*]] = icmp uge i64 [[FROM]], %n
; CHECK-NEXT: [[LEFT:%.*]] = sub i64 %n, [[FROM]]
; CHECK-NEXT: select i1 [[PASSED]], i64 0, i64 [[LEFT]]
; CHECK: icmp ugt i64 {{.*}}, 1533
; CHECK: [[END:%.*]] = add i64 {{.*}}, %spw.way
; CHECK: loop.plain:
; CHECK-NOT: load volatile
; CHECK: [[MORE:%.*]] = icmp ult i64 {{.*}}, [[END]]
; CHECK-NEXT: br i1 [[MORE]], label %loop.plain, label %[[DONE:.*]]
; CHECK: [[DONE]]:
; CHECK-NEXT: [[STOP:%.*]] = icmp uge i64 {{.*}}, %n
; CHECK-NEXT: br i1 [[STOP]]
; CHECK: ret i64
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %loop ]
  %at = phi i64 [ 1, %entry ], [ %v, %loop ]
  %q = getelementptr i64, ptr %p, i64 %at
  %v = load i64, ptr %q
  store i64 %i, ptr %q
  %i.next = add i64 %i, 3
  %c = icmp ult i64 %i.next, %n
  br i1 %c, label %loop, label %done
done:
  ret i64 %v
}

; Downwards and signed; what goes the other way, or asks whether it is equal as well, is not cut.
define void @ways(ptr %p, i32 %n) {
; CHECK-LABEL: define void @ways
; CHECK: icmp sle i32 {{.*}}, %n
; CHECK: icmp sgt i32 {{.*}}, %spw.end
; CHECK: away.plain:
; CHECK: load volatile i8
; CHECK: icmp slt i32
; CHECK: equal.plain:
; CHECK: load volatile i8
; CHECK-NOT: spw.end
; CHECK: icmp sle i32 {{.*}}, %n
; CHECK-NEXT: br i1 {{.*}}, label %equal.plain
; CHECK: ret void
entry:
  br label %down
down:
  %i = phi i32 [ 1000, %entry ], [ %i.next, %down ]
  %q = getelementptr i64, ptr %p, i32 %i
  store i32 %i, ptr %q
  %i.next = add i32 %i, -2
  %c = icmp sgt i32 %i.next, %n
  br i1 %c, label %down, label %away
away:
  %j = phi i32 [ 1000, %down ], [ %j.next, %away ]
  %r = getelementptr i64, ptr %p, i32 %j
  store i32 %j, ptr %r
  %j.next = add i32 %j, -2
  %d = icmp slt i32 %j.next, %n
  br i1 %d, label %away, label %equal
equal:
  %k = phi i32 [ 0, %away ], [ %k.next, %equal ]
  %s = getelementptr i64, ptr %p, i32 %k
  store i32 %k, ptr %s
  %k.next = add i32 %k, 2
  %e = icmp sle i32 %k.next, %n
  br i1 %e, label %equal, label %done
done:
  ret void
}

; A counter that only counts runs to zero in each chunk: where it is then is known before.
define i64 @only_counts(ptr %p, i64 %n) {
; CHECK-LABEL: define i64 @only_counts
; CHECK: [[NOW:%.*]] = phi i64 [ 0, %spw.instrumented.plain ], [ %[[END:.*]], %spw.done
; CHECK: %[[END]] = add i64
; CHECK: [[BEFORE_END:%.*]] = sub i64 %[[END]], 1
; CHECK: [[FIRST:%.*]] = sub i64 [[NOW]], %[[END]]
; CHECK: loop.plain:
; CHECK: phi i64 [ [[FIRST]], %{{.*}} ]
; CHECK: = add i64
; CHECK-NEXT: icmp eq i64 {{.*}}, 0
; CHECK: icmp eq i64 %[[END]], %n
; CHECK: done.plain:
; CHECK-NEXT: phi i64 [ [[BEFORE_END]],
; CHECK: ret i64
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %loop ]
  %node = phi ptr [ %p, %entry ], [ %next, %loop ]
  %next = load ptr, ptr %node
  %i.next = add nuw nsw i64 %i, 1
  %c = icmp eq i64 %i.next, %n
  br i1 %c, label %done, label %loop
done:
  %last = phi i64 [ %i, %loop ]
  %v = load i64, ptr %next
  %sum = add i64 %v, %last
  ret i64 %sum
}

; Bodies that cannot be there twice, or were not to be optimised, have hints only.
define i64 @returns_twice(ptr %p) {
; CHECK-LABEL: define i64 @returns_twice
; CHECK-NOT: load volatile
; CHECK: @__spw_hint_load_v1
; CHECK-NOT: load volatile
; CHECK: ret i64
entry:
  %j = call i32 @setjmp(ptr %p)
  br label %loop
loop:
  %node = phi ptr [ %p, %entry ], [ %next, %loop ]
  %next = load ptr, ptr %node
  %c = icmp eq ptr %next, null
  br i1 %c, label %done, label %loop
done:
  ret i64 1
}
define i64 @address_taken(ptr %p, i64 %i) {
; CHECK-LABEL: define i64 @address_taken
; CHECK-NOT: load volatile
; CHECK: @__spw_hint_load_v1
; CHECK-NOT: load volatile
; CHECK: unreachable
  %l = load ptr, ptr %p
  indirectbr ptr %l, [label %a, label %a]
a:
  %v = load ptr, ptr %l
  indirectbr ptr %v, [label %a, label %b]
b:
  unreachable
}
define i64 @not_optimised(ptr %p) noinline optnone {
; CHECK-LABEL: define i64 @not_optimised
; CHECK-NOT: load volatile
; CHECK-COUNT-2: call preserve_mostcc void @__spw_hint_load_v1
; CHECK: ret i64
entry:
  br label %loop
loop:
  %node = phi ptr [ %p, %entry ], [ %next, %loop ]
  %next = load ptr, ptr %node
  %again = load ptr, ptr %node
  %c = icmp eq ptr %next, %again
  br i1 %c, label %done, label %loop
done:
  ret i64 1
}
declare i32 @setjmp(ptr) returns_twice

; OpenMP's runtime functions are convergent, which means nothing where threads do not run in step.
define void @barrier(ptr %p) {
; CHECK-LABEL: define void @barrier
; CHECK: load volatile i8
; CHECK: .plain:
; CHECK: call void @__kmpc_barrier
; CHECK: call void @__kmpc_barrier
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %at = getelementptr i64, ptr %p, i64 %i
  store i64 %i, ptr %at
  call void @__kmpc_barrier() #0
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, 100
  br i1 %more, label %loop, label %done
done:
  ret void
}
declare void @__kmpc_barrier() #0
attributes #0 = { convergent nounwind }
