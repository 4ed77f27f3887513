; RUN: %opt -passes=spillway,verify -spw-engine=none -spw-durable -S %s | %filecheck %s
; RUN: %opt -passes=spillway,verify -spw-engine=translated -spw-durable -spw-versions=0 -S %s | %filecheck --check-prefix=TRANSLATED %s
; What functions of the C library store.
target triple = "x86_64-pc-linux-gnu"

define void @bytes(ptr %to, ptr %from, i64 %n) {
; CHECK-LABEL: define void @bytes
; CHECK: @__spw_durable_store_v1(ptr {{.*}}, i64 %n)
; CHECK: call ptr @__memcpy_chk
; CHECK: @__spw_durable_store_v1(ptr {{.*}}, i64 %n)
; CHECK: call ptr @strncpy
; CHECK: [[PRODUCT:%.*]] = mul i64 %n, 12
; CHECK: @__spw_durable_store_v1(ptr {{.*}}, i64 [[PRODUCT]])
; CHECK: call i64 @fread
; CHECK: @__spw_durable_store_v1(ptr %to, i64 16)
; CHECK: call void @__atomic_store_16
; CHECK-NOT: spw
; CHECK: ret void
; TRANSLATED-LABEL: define void @bytes
; TRANSLATED: @__spw_durable_store_v1(ptr {{.*}}, i64 %n)
; TRANSLATED: call ptr @__spw___memcpy_chk_v1(ptr %to
  %a = call ptr @__memcpy_chk(ptr %to, ptr %from, i64 %n, i64 -1)
  %b = call ptr @strncpy(ptr %to, ptr %from, i64 %n)
  %c = call i64 @fread(ptr %to, i64 %n, i64 12, ptr %from)
  call void @__atomic_store_16(ptr %to, i128 0, i32 5)
  %d = call i64 @strlen(ptr %to)
  ret void
}

; How long a string is, is asked for persistent memory only.
define void @strings(ptr %to, ptr %from, i64 %n) {
; CHECK-LABEL: define void @strings
; CHECK: [[HIT:%.*]] = icmp ult
; CHECK: br i1 [[HIT]], label %[[ASK:.*]], label %[[GO:.*]], !prof
; CHECK: [[ASK]]:
; CHECK: [[LENGTH:%.*]] = call i64 @strlen(ptr %from)
; CHECK: [[BYTES:%.*]] = add i64 [[LENGTH]], 1
; CHECK: @__spw_durable_store_v1(ptr {{.*}}, i64 [[BYTES]])
; CHECK: [[GO]]:
; CHECK: call ptr @strcpy
; TRANSLATED-LABEL: define void @strings
; TRANSLATED: call i64 @__spw_strlen_v1(ptr %from)
; TRANSLATED: call ptr @__spw_strcpy_v1(ptr %to
  %a = call ptr @strcpy(ptr %to, ptr %from)
; CHECK: [[BOUND:%.*]] = call i64 @strnlen(ptr %from, i64 %n)
; CHECK: [[THERE:%.*]] = call i64 @strlen(ptr %to)
; CHECK: [[END:%.*]] = getelementptr i8, ptr %to, i64 [[THERE]]
; CHECK: [[APPENDED:%.*]] = add i64 [[BOUND]], 1
; CHECK: freeze ptr [[END]]
; CHECK: @__spw_durable_store_v1(ptr {{.*}}, i64 [[APPENDED]])
; CHECK: call ptr @strncat
  %b = call ptr @strncat(ptr %to, ptr %from, i64 %n)
  ret void
}

; A function of the program's own, and one of another type.
define internal void @read(i32 %file, ptr %p, i64 %n) {
  ret void
}
define void @others(ptr %p, i64 %n) {
; CHECK-LABEL: define void @others
; CHECK-NOT: spw
; CHECK: ret void
  call void @read(i32 0, ptr %p, i64 %n)
  call void @recv(ptr %p)
  ret void
}

; Nodes of libstdc++'s lists are linked by code of ours, which announces.
define void @list(ptr %node, ptr %at) {
; CHECK-LABEL: define void @list
; CHECK: call void @__spw_list_hook_none_durable_v1
  call void @_ZNSt8__detail15_List_node_base7_M_hookEPS0_(ptr %node, ptr %at)
  ret void
}
; CHECK: define linkonce_odr hidden void @__spw_list_hook_none_durable_v1
; CHECK: @__spw_durable_store_v1
declare ptr @__memcpy_chk(ptr, ptr, i64, i64)
declare ptr @strncpy(ptr, ptr, i64)
declare ptr @strcpy(ptr, ptr)
declare ptr @strncat(ptr, ptr, i64)
declare i64 @fread(ptr, i64, i64, ptr)
declare i64 @strlen(ptr)
declare void @recv(ptr)
declare void @__atomic_store_16(ptr, i128, i32)
declare void @_ZNSt8__detail15_List_node_base7_M_hookEPS0_(ptr, ptr)
