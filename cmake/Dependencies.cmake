# SPDX-License-Identifier: Apache-2.0
#
# Everything that is not ours, each found in one place. Nothing is downloaded, nothing is copied
# into the tree. Headers alone: OpenCL, CLBlast, xxHash. Linked: PCRE2, zlib, jansson, utf8proc, stb,
# cmocka, and libjpeg, libpng, libwebp, libtiff and openjpeg where they are there.

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
find_package(ZLIB REQUIRED)
find_package(PkgConfig REQUIRED)

# clg_find_header(TARGET HEADER PACKAGE): an interface target for a library used by header alone.
function(clg_find_header target header package)
  find_path(${target}_INCLUDE_DIR "${header}")
  mark_as_advanced(${target}_INCLUDE_DIR)
  if(NOT ${target}_INCLUDE_DIR)
    message(FATAL_ERROR "${header} was not found; on Debian it is in the package ${package}")
  endif()
  add_library(${target} INTERFACE)
  target_include_directories(${target} SYSTEM INTERFACE "${${target}_INCLUDE_DIR}")
endfunction()

# clg_find_module(TARGET MODULE PACKAGE): a linked library that describes itself to pkg-config.
function(clg_find_module target module package)
  pkg_check_modules(${target} QUIET IMPORTED_TARGET ${module})
  if(NOT ${target}_FOUND)
    message(FATAL_ERROR "${module} was not found; on Debian it is in the package ${package}")
  endif()
  add_library(${target} INTERFACE)
  target_link_libraries(${target} INTERFACE PkgConfig::${target})
endfunction()

clg_find_header(clg_opencl_headers CL/cl.h opencl-headers)
clg_find_header(clg_clblast_headers clblast_c.h libclblast-dev)
clg_find_header(clg_xxhash_headers xxhash.h libxxhash-dev)
clg_find_module(clg_pcre2 libpcre2-8 libpcre2-dev)
clg_find_module(clg_jansson jansson libjansson-dev)
clg_find_module(clg_utf8proc libutf8proc libutf8proc-dev)

if(CLG_BUILD_TOOLS OR CLG_BUILD_EXAMPLES OR CLG_BUILD_TESTS OR CLG_IMAGES)
  clg_find_module(clg_stb stb libstb-dev)
endif()
if(CLG_BUILD_TESTS)
  clg_find_module(clg_cmocka cmocka libcmocka-dev)
endif()
if(CLG_LINK_OPENCL)
  clg_find_module(clg_clblast clblast libclblast-dev)
endif()
if(CLG_LINK_OPENCL OR CLG_BUILD_EXAMPLES OR CLG_BUILD_TESTS)
  # An example and some tests create OpenCL objects, as an application would.
  find_library(clg_opencl_LIBRARY OpenCL)
  mark_as_advanced(clg_opencl_LIBRARY)
  if(NOT clg_opencl_LIBRARY)
    message(FATAL_ERROR "libOpenCL was not found; on Debian it is in the package ocl-icd-opencl-dev")
  endif()
  add_library(clg_opencl INTERFACE)
  target_link_libraries(clg_opencl INTERFACE "${clg_opencl_LIBRARY}" clg_opencl_headers)
endif()
