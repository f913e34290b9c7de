# SPDX-License-Identifier: Apache-2.0
#
# What `cmake --install` puts in place: library, headers, cltool with its man pages and completions
# of shells, the CMake package clgraph::clgraph and clgraph.pc. All of it may be moved as a whole
# afterwards.

include(CMakePackageConfigHelpers)

install(TARGETS clgraph EXPORT clgraphTargets
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
  ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
  RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
if(TARGET clgraph-compile)
  if(WIN32)
    set(helper_folder "${CMAKE_INSTALL_BINDIR}") # beside clgraph.dll
  else()
    set(helper_folder "${CMAKE_INSTALL_LIBDIR}/clgraph")
  endif()
  install(TARGETS clgraph-compile RUNTIME DESTINATION "${helper_folder}")
endif()
if(TARGET clgraph_ort)
  install(TARGETS clgraph_ort LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}") # beside libclgraph
endif()
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/clgraph"
  DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" FILES_MATCHING PATTERN "*.h")
if(TARGET cltool)
  install(TARGETS cltool RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
endif()
if(TARGET cltool_manual AND NOT WIN32)
  set(share "${PROJECT_BINARY_DIR}/share")
  install(DIRECTORY "${share}/man/man1" DESTINATION "${CMAKE_INSTALL_MANDIR}" COMPONENT manual)
  foreach(folder bash-completion/completions zsh/site-functions fish/vendor_completions.d)
    install(DIRECTORY "${share}/${folder}/" DESTINATION "${CMAKE_INSTALL_DATADIR}/${folder}"
      COMPONENT manual)
  endforeach()
endif()

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/clgraph")
install(EXPORT clgraphTargets NAMESPACE clgraph:: DESTINATION "${package_dir}")
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/clgraphConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/clgraphConfig.cmake" INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/clgraphConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/clgraphConfig.cmake"
  "${PROJECT_BINARY_DIR}/clgraphConfigVersion.cmake" DESTINATION "${package_dir}")

set(pkgconfig_dir "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
# The prefix as seen from the .pc file: the installed tree may be moved.
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX
  BASE_DIRECTORY "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig" OUTPUT_VARIABLE prefix_from_pc)
configure_file("${PROJECT_SOURCE_DIR}/cmake/clgraph.pc.in" "${PROJECT_BINARY_DIR}/clgraph.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/clgraph.pc" DESTINATION "${pkgconfig_dir}")
