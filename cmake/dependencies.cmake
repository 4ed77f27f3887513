# Every outside library, found once. docs/DEPENDENCIES.md says why each.
find_package(Threads REQUIRED)
# The archive: the runtime has to load where there is no liburing.so.
find_library(SPW_LIBURING liburing.a REQUIRED)
find_path(SPW_LIBNBD_INCLUDE libnbd.h REQUIRED)
find_path(SPW_IPSEC_MB_INCLUDE intel-ipsec-mb.h)
if(NOT SPW_IPSEC_MB_INCLUDE)
  message(STATUS "intel-ipsec-mb.h was not found (libipsec-mb-dev): --encrypt will say that this build has no encryption")
endif()
# The archives, as the tool loads anywhere, too. Without them it has no --metrics.
find_library(SPW_LIBEVENT_EXTRA libevent_extra.a)
find_library(SPW_LIBEVENT_CORE libevent_core.a)
find_path(SPW_LIBEVENT_INCLUDE event2/http.h)
if(NOT SPW_LIBEVENT_EXTRA OR NOT SPW_LIBEVENT_CORE OR NOT SPW_LIBEVENT_INCLUDE)
  message(STATUS "No libevent with its archives (Debian: libevent-dev): spillway run will have no --metrics")
endif()
# Archives, too: the tool has to load where there is no libncursesw.so, or another one.
find_library(SPW_NCURSES libncursesw.a)
find_library(SPW_TINFO libtinfo.a)
find_path(SPW_NCURSES_INCLUDE curses.h)
if(NOT (SPW_NCURSES AND SPW_TINFO AND SPW_NCURSES_INCLUDE))
  message(STATUS "ncurses was not found (libncurses-dev): spillway top will show plain text only")
endif()
find_package(fmt REQUIRED)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
if(SPILLWAY_TESTS)
  find_package(GTest REQUIRED)
  find_package(benchmark REQUIRED)
endif()

# Names of functions and source lines for the tool: libdw and libelf, as archives, since the tool has to load where they are
# not there. What they need themselves differs from one distribution to the next (zstd); pkg-config tells.
find_package(PkgConfig REQUIRED)
pkg_check_modules(SPW_LIBDW REQUIRED libdw)
add_library(spw_libdw INTERFACE)
target_include_directories(spw_libdw SYSTEM INTERFACE ${SPW_LIBDW_INCLUDE_DIRS})
foreach(name ${SPW_LIBDW_STATIC_LIBRARIES})
  if(name MATCHES "^(pthread|dl|m|rt|c)$") # glibc's own
    continue()
  endif()
  find_library(SPW_ARCHIVE_${name} lib${name}.a REQUIRED HINTS ${SPW_LIBDW_STATIC_LIBRARY_DIRS})
  target_link_libraries(spw_libdw INTERFACE ${SPW_ARCHIVE_${name}})
endforeach()
