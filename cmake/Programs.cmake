# SPDX-License-Identifier: Apache-2.0
#
# cltool and the examples. Both see the public headers alone.

# Man pages and completion scripts, which cltool prints: build/share is laid out as share/ of a
# prefix. A cross build without an emulator needs a cltool of this machine.
function(clg_add_manual)
  if(CLG_NATIVE_CLTOOL)
    set(program "${CLG_NATIVE_CLTOOL}")
  elseif(NOT CMAKE_CROSSCOMPILING)
    set(program "$<TARGET_FILE:cltool>")
  elseif(CMAKE_CROSSCOMPILING_EMULATOR)
    set(program ${CMAKE_CROSSCOMPILING_EMULATOR} "$<TARGET_FILE:cltool>")
  else()
    message(STATUS "No man pages and completions: CLG_NATIVE_CLTOOL names no cltool that runs here")
    return()
  endif()
  set(script "${PROJECT_SOURCE_DIR}/cmake/print_manual.cmake")
  set(stamp "${PROJECT_BINARY_DIR}/share/man/man1/cltool.1")
  add_custom_command(OUTPUT "${stamp}"
    COMMAND "${CMAKE_COMMAND}" "-DCLTOOL=${program}" "-DFOLDER=${PROJECT_BINARY_DIR}/share"
      -P "${script}"
    DEPENDS cltool "${script}" COMMENT "Printing man pages and completions" VERBATIM)
  add_custom_target(cltool_manual ALL DEPENDS "${stamp}")
endfunction()

if(CLG_BUILD_TOOLS)
  file(GLOB tool_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tools/cltool/*.c")
  list(APPEND tool_sources ${tool_lib_sources})
  if(tool_sources)
    add_executable(cltool ${tool_sources})
    target_include_directories(cltool PRIVATE ${tool_include_dirs})
    target_link_libraries(cltool PRIVATE
      clg_settings tool_generated clgraph clg_jansson clg_stb ZLIB::ZLIB Threads::Threads)
    if(UNIX)
      target_link_libraries(cltool PRIVATE m)
    endif()
    if(UNIX AND NOT APPLE)
      target_link_options(cltool PRIVATE LINKER:--as-needed)
      set_target_properties(cltool PROPERTIES
        INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
    endif()
    clg_add_manual()
  endif()
endif()

# Every examples/<name>.c is one program, build/examples/<name>, and every examples/<name>.cpp is
# build/examples/<name>_cpp.
if(CLG_BUILD_EXAMPLES)
  file(GLOB example_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/examples/*.c")
  if(clg_has_cxx)
    file(GLOB example_cxx_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/examples/*.cpp")
    list(APPEND example_sources ${example_cxx_sources})
  endif()
  foreach(source IN LISTS example_sources)
    get_filename_component(name "${source}" NAME_WE)
    if(source MATCHES "\\.cpp$")
      string(APPEND name "_cpp")
    endif()
    add_executable(example_${name} "${source}")
    target_link_libraries(example_${name} PRIVATE
      clg_settings clgraph clg_stb clg_opencl Threads::Threads)
    if(UNIX)
      target_link_libraries(example_${name} PRIVATE m)
    endif()
    if(UNIX AND NOT APPLE)
      # Only what an example calls: just one of them needs libOpenCL itself.
      target_link_options(example_${name} PRIVATE LINKER:--as-needed)
    endif()
    set_target_properties(example_${name} PROPERTIES
      OUTPUT_NAME "${name}" RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/examples")
  endforeach()
endif()
