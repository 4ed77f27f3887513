# Every outside library, found once. docs/DEPENDENCIES.md says why each.
find_package(Threads REQUIRED)
# The archive: the runtime has to load where there is no liburing.so.
find_library(SPW_LIBURING liburing.a REQUIRED)
find_path(SPW_LIBNBD_INCLUDE libnbd.h REQUIRED)
find_package(fmt REQUIRED)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
if(SPILLWAY_TESTS)
  find_package(GTest REQUIRED)
  find_package(benchmark REQUIRED)
endif()
