# SPDX-License-Identifier: Apache-2.0
#
# libclgraph_ort.so: an execution provider for ONNX Runtime over the public interface of clgraph. It
# needs ONNX Runtime's headers and links nothing of it.

set(CLG_BUILD_ORT AUTO CACHE STRING
  "Build ONNX Runtime's execution provider: ON, OFF, or AUTO, which is on where its headers are")
set_property(CACHE CLG_BUILD_ORT PROPERTY STRINGS AUTO ON OFF)
if(NOT CLG_BUILD_ORT)
  return()
endif()

find_path(CLG_ORT_INCLUDE_DIR onnxruntime_ep_c_api.h
  PATH_SUFFIXES onnxruntime clgraph-onnxruntime/onnxruntime
  DOC "Folder of onnxruntime_ep_c_api.h, of ONNX Runtime 1.23 or newer")
mark_as_advanced(CLG_ORT_INCLUDE_DIR)
if(NOT CLG_ORT_INCLUDE_DIR OR WIN32)
  set(reason "onnxruntime_ep_c_api.h was not found; tools/packages.sh install onnxruntime gets it")
  if(WIN32)
    set(reason "it is not ported to Windows")
  endif()
  if(CLG_BUILD_ORT STREQUAL "AUTO")
    message(STATUS "The execution provider for ONNX Runtime is not built: ${reason}")
    return()
  endif()
  message(FATAL_ERROR "CLG_BUILD_ORT is ON: ${reason}")
endif()

file(GLOB_RECURSE ort_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/onnxruntime/*.c")
add_library(clgraph_ort MODULE ${ort_sources} $<TARGET_OBJECTS:clgraph_base>)
target_include_directories(clgraph_ort PRIVATE
  "${PROJECT_SOURCE_DIR}/onnxruntime" "${PROJECT_SOURCE_DIR}/onnxruntime/claim"
  "${PROJECT_SOURCE_DIR}/onnxruntime/device_memory" "${PROJECT_SOURCE_DIR}/onnxruntime/devices"
  "${PROJECT_SOURCE_DIR}/src")
target_include_directories(clgraph_ort SYSTEM PRIVATE "${CLG_ORT_INCLUDE_DIR}")
# Names of files in messages do not depend on the folder that it is built in.
target_compile_options(clgraph_ort PRIVATE "-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=")
target_link_libraries(clgraph_ort PRIVATE clg_settings clgraph clg_xxhash_headers Threads::Threads)
set_target_properties(clgraph_ort PROPERTIES BUILD_RPATH "$ORIGIN" INSTALL_RPATH "$ORIGIN")
if(UNIX AND NOT APPLE)
  set(ort_exports "${PROJECT_SOURCE_DIR}/onnxruntime/exports.map")
  target_link_options(clgraph_ort PRIVATE
    "LINKER:--version-script=${ort_exports}" LINKER:--as-needed)
  set_target_properties(clgraph_ort PROPERTIES LINK_DEPENDS "${ort_exports}")
endif()

# Programs that load ONNX Runtime and the provider, for tests/ort.
if(CLG_BUILD_TESTS)
  foreach(name rounds memory memory_failures hosts)
    add_executable(ort_${name} "${PROJECT_SOURCE_DIR}/tests/ort/${name}.c")
    target_include_directories(ort_${name} SYSTEM PRIVATE "${CLG_ORT_INCLUDE_DIR}")
    target_link_libraries(ort_${name} PRIVATE clg_settings ${CMAKE_DL_LIBS})
    set_target_properties(ort_${name} PROPERTIES
      OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests/ort")
  endforeach()
  target_sources(ort_hosts PRIVATE "${PROJECT_SOURCE_DIR}/onnxruntime/devices/ep_hardware.c")
  target_include_directories(ort_hosts PRIVATE "${PROJECT_SOURCE_DIR}/onnxruntime/devices")
  target_link_libraries(ort_hosts PRIVATE clgraph)
endif()
