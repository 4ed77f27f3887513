# Where an installation has what. GNUInstallDirs' variables, as usual: -DCMAKE_INSTALL_LIBDIR=lib/x86_64-linux-gnu is Debian's.
#
# The tool and the drivers find libraries from where they are themselves, so that an installation may be moved as a whole:
# SPW_LIBRARIES_FROM_PROGRAMS is the way from the one folder to the other, and
# SPW_PROGRAMS_FROM_LIBRARIES the one back.
include(GNUInstallDirs)
set(SPW_INSTALL_PRIVATEDIR ${CMAKE_INSTALL_LIBDIR}/spillway) # what nobody links with: the pass
set(SPW_INSTALL_CMAKEDIR ${CMAKE_INSTALL_LIBDIR}/cmake/Spillway)
# Debian's packages go to vendor-completions.
set(SPW_INSTALL_ZSHDIR ${CMAKE_INSTALL_DATADIR}/zsh/site-functions CACHE STRING "Where zsh finds completions of programs")
cmake_path(RELATIVE_PATH CMAKE_INSTALL_FULL_LIBDIR BASE_DIRECTORY ${CMAKE_INSTALL_FULL_BINDIR}
           OUTPUT_VARIABLE SPW_LIBRARIES_FROM_PROGRAMS)
cmake_path(RELATIVE_PATH CMAKE_INSTALL_FULL_BINDIR BASE_DIRECTORY ${CMAKE_INSTALL_FULL_LIBDIR}
           OUTPUT_VARIABLE SPW_PROGRAMS_FROM_LIBRARIES)
