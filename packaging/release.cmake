# How what is released is built: `cmake -C packaging/release.cmake`. One list for all packages, so that they can be made of
# one tree and the compiler's cache serves each of them.
#
# clang 19, as the release preset: what is shipped is what `./dev test` has run, and the pass needs that compiler anyway.
set(CMAKE_C_COMPILER clang-19 CACHE STRING "" FORCE)
set(CMAKE_CXX_COMPILER clang++-19 CACHE STRING "" FORCE)
set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "" FORCE)
set(SPILLWAY_COMPILER ON CACHE BOOL "" FORCE)
set(SPILLWAY_TESTS OFF CACHE BOOL "" FORCE)
# No path of the machine that built it, in debug information or messages. Not Debian's hardening flags: the runtime stands
# before libc in other people's programs, and handles faults on stacks and in threads where no canary is set up yet.
cmake_path(GET CMAKE_CURRENT_LIST_DIR PARENT_PATH source)
foreach(language C CXX ASM)
  set(CMAKE_${language}_FLAGS "-ffile-prefix-map=${source}/=" CACHE STRING "" FORCE)
endforeach()
foreach(kind EXE SHARED MODULE)
  set(CMAKE_${kind}_LINKER_FLAGS "-Wl,-z,relro,-z,now" CACHE STRING "" FORCE)
endforeach()
