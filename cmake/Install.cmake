# SPDX-License-Identifier: Apache-2.0
#
# What `cmake --install` puts in place: libraries, headers (C and C++), cltool with its man pages
# and completions of shells, the CMake package clgraph::clgraph and clgraph.pc. All of it may be
# moved as a whole afterwards.

include(CMakePackageConfigHelpers)

# clg_install_library(TARGET EXPORT): the library, described by EXPORT.cmake.
set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/clgraph")
function(clg_install_library target export)
  install(TARGETS ${target} EXPORT ${export}
    LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
    ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
    RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
  install(EXPORT ${export} NAMESPACE clgraph:: DESTINATION "${package_dir}")
endfunction()
if(BUILD_SHARED_LIBS)
  clg_install_library(clgraph clgraphTargets)
else()
  clg_install_library(clgraph clgraphStaticTargets)
endif()
if(TARGET clgraph_static)
  clg_install_library(clgraph_static clgraphStaticTargets)
endif()
if(export_definition AND BUILD_SHARED_LIBS)
  install(FILES "${export_definition}" DESTINATION "${CMAKE_INSTALL_LIBDIR}")
endif()
if(TARGET clgraph-compile)
  install(TARGETS clgraph-compile RUNTIME DESTINATION "${helper_folder}")
endif()
if(TARGET clgraph-images)
  install(TARGETS clgraph-images LIBRARY DESTINATION "${helper_folder}" COMPONENT images)
endif()
if(TARGET clgraph_ort)
  install(TARGETS clgraph_ort LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}") # beside libclgraph
endif()
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/clgraph"
  DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
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

configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/clgraphConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/clgraphConfig.cmake" INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/clgraphConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/clgraphConfig.cmake"
  "${PROJECT_BINARY_DIR}/clgraphConfigVersion.cmake" DESTINATION "${package_dir}")

# What programs link with a static library.
set(pc_requires_private "")
set(pc_libs_private "")
if(TARGET clgraph_static OR NOT BUILD_SHARED_LIBS)
  set(pc_requires_private "Requires.private: libpcre2-8 jansson libutf8proc zlib")
  set(pc_libs_private "Libs.private: ${CMAKE_THREAD_LIBS_INIT}")
  foreach(need IN LISTS CMAKE_DL_LIBS library_math)
    string(APPEND pc_libs_private " -l${need}")
  endforeach()
endif()
set(pkgconfig_dir "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
# The prefix as seen from the .pc file: the installed tree may be moved.
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX
  BASE_DIRECTORY "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig" OUTPUT_VARIABLE prefix_from_pc)
configure_file("${PROJECT_SOURCE_DIR}/cmake/clgraph.pc.in" "${PROJECT_BINARY_DIR}/clgraph.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/clgraph.pc" DESTINATION "${pkgconfig_dir}")
