# `cmake --install build/release --prefix DIR`: the tool, the drivers, the runtime, the pass, the C header and the manual pages.
# The drivers look for the runtime and the pass in ../lib beside themselves, so bin and lib keep their places.
install(TARGETS spillway_tool RUNTIME DESTINATION bin)
install(TARGETS spillway LIBRARY DESTINATION lib)
if(SPW_BUILD_COMPILER)
  install(TARGETS spillway-clang RUNTIME DESTINATION bin)
  install(CODE [[file(CREATE_LINK spillway-clang $ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/bin/spillway-clang++ SYMBOLIC)]])
  install(TARGETS spillway_pass LIBRARY DESTINATION lib)
endif()
install(DIRECTORY include/spillway DESTINATION include)
install(FILES docs/man/spillway.1 docs/man/spillway-clang.1 DESTINATION share/man/man1)
