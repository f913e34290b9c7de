# SPDX-License-Identifier: Apache-2.0
#
# One object library a layer, gathered into `clgraph` (shared, exports clg_* alone, or static
# without BUILD_SHARED_LIBS), `clgraph_static` with CLG_BUILD_STATIC, and `clgraph_internal` (static,
# for tests that look inside). Two sources are generated: the table of kernels and the table of
# operator families.

set(generated_dir "${PROJECT_BINARY_DIR}/generated")

# --- kernel_sources.c: every cl/<family>/*.cl and *.clh as text in the library -------------------
file(GLOB kernel_files CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}"
  "${PROJECT_SOURCE_DIR}/cl/*/*.cl" "${PROJECT_SOURCE_DIR}/cl/*/*.clh")
set(kernel_list "${generated_dir}/kernel_files.txt")
list(JOIN kernel_files "\n" kernel_lines)
file(CONFIGURE OUTPUT "${kernel_list}" CONTENT "@kernel_lines@" @ONLY)
list(TRANSFORM kernel_files PREPEND "${PROJECT_SOURCE_DIR}/" OUTPUT_VARIABLE kernel_paths)
add_custom_command(
  OUTPUT "${generated_dir}/kernel_sources.c"
  COMMAND "${CMAKE_COMMAND}" "-DSOURCE_DIR=${PROJECT_SOURCE_DIR}" "-DLIST=${kernel_list}"
    "-DOUTPUT=${generated_dir}/kernel_sources.c" -P "${PROJECT_SOURCE_DIR}/cmake/embed_kernels.cmake"
  DEPENDS "${kernel_list}" ${kernel_paths} "${PROJECT_SOURCE_DIR}/cmake/embed_kernels.cmake"
  COMMENT "Embedding the kernels"
  VERBATIM)

# --- op_families.c: one line for every src/ops/<family>/op_<rows>.c -----------------------------
file(GLOB family_files CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}/src/ops"
  "${PROJECT_SOURCE_DIR}/src/ops/*/op_*.c")
set(family_externs "")
set(family_rows "")
foreach(file IN LISTS family_files)
  string(REGEX REPLACE "^.*/op_(.*)\\.c$" "\\1" family "${file}")
  string(APPEND family_externs
    "extern const op_row op_rows_${family}[];\nextern const size_t n_op_rows_${family};\n")
  string(APPEND family_rows
    "    {\"${family}\", op_rows_${family}, &n_op_rows_${family}},\n")
endforeach()
list(LENGTH family_files n_families)
configure_file("${PROJECT_SOURCE_DIR}/cmake/op_families.c.in" "${generated_dir}/op_families.c" @ONLY)

# --- the layers ----------------------------------------------------------------------------------
set(layer_objects "")
foreach(layer IN LISTS CLG_LAYERS)
  file(GLOB_RECURSE layer_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/${layer}/*.c")
  list(FILTER layer_sources EXCLUDE REGEX "${clg_other_system}")
  if(layer STREQUAL "step")
    list(APPEND layer_sources "${generated_dir}/kernel_sources.c")
  elseif(layer STREQUAL "ops")
    list(APPEND layer_sources "${generated_dir}/op_families.c")
  endif()
  if(NOT layer_sources)
    continue()
  endif()
  add_library(clgraph_${layer} OBJECT ${layer_sources})
  target_include_directories(clgraph_${layer} PRIVATE
    "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}/include")
  target_compile_definitions(clgraph_${layer} PRIVATE CLG_BUILDING=1
    $<$<BOOL:${CLG_LINK_OPENCL}>:CLG_LINK_OPENCL=1>
    $<$<BOOL:${CLG_KERNEL_DIR_OVERRIDE}>:CLG_DEVELOPER=1>)
  target_link_libraries(clgraph_${layer} PRIVATE clg_settings
    clg_opencl_headers clg_clblast_headers clg_xxhash_headers clg_pcre2 ZLIB::ZLIB Threads::Threads)
  if(layer MATCHES "^(text|generate|api)$")
    target_link_libraries(clgraph_${layer} PRIVATE clg_jansson clg_utf8proc)
  endif()
  set_target_properties(clgraph_${layer} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  list(APPEND layer_objects $<TARGET_OBJECTS:clgraph_${layer}>)
endforeach()
# dladdr, posix_spawn_file_actions_addclosefrom_np
set_source_files_properties("${PROJECT_SOURCE_DIR}/src/base/library/dynlib_posix.c"
  "${PROJECT_SOURCE_DIR}/src/base/posix/process_posix.c" PROPERTIES COMPILE_DEFINITIONS _GNU_SOURCE)

# Before 1.0 a minor version may break programs: each has a SONAME and a symbol version of its own.
set(abi_version ${PROJECT_VERSION_MAJOR})
if(abi_version EQUAL 0)
  set(abi_version 0.${PROJECT_VERSION_MINOR})
endif()

# Where the compile helper and the module of images are installed; a program that contains a static
# library finds them there.
set(helper_name "clgraph-${abi_version}")
if(WIN32)
  set(helper_folder "${CMAKE_INSTALL_BINDIR}") # beside clgraph.dll
else()
  set(helper_folder "${CMAKE_INSTALL_LIBDIR}/${helper_name}")
endif()
set(companion_definitions "CLG_COMPANION_FOLDER=\"${helper_name}\"")
if(CLG_BUILD_STATIC OR NOT BUILD_SHARED_LIBS)
  cmake_path(ABSOLUTE_PATH helper_folder BASE_DIRECTORY "${CMAKE_INSTALL_PREFIX}" OUTPUT_VARIABLE helper_path)
  list(APPEND companion_definitions "CLG_INSTALLED_COMPANIONS=\"${helper_path}\"")
endif()
set_source_files_properties("${PROJECT_SOURCE_DIR}/src/base/library/companion.c" PROPERTIES
  COMPILE_DEFINITIONS "${companion_definitions}")
set_source_files_properties("${PROJECT_SOURCE_DIR}/src/tensor/formats/image_module.c" PROPERTIES
  COMPILE_DEFINITIONS "CLG_MODULE_SUFFIX=\"${CMAKE_SHARED_MODULE_SUFFIX}\"")

set(library_needs clg_pcre2 clg_jansson clg_utf8proc ZLIB::ZLIB Threads::Threads ${CMAKE_DL_LIBS})
if(CLG_LINK_OPENCL)
  list(APPEND library_needs clg_opencl clg_clblast)
endif()
set(library_math "")
if(UNIX)
  set(library_math m)
  list(APPEND library_needs m)
endif()

include(StaticLibrary)
if(BUILD_SHARED_LIBS)
  add_library(clgraph SHARED ${layer_objects})
  target_include_directories(clgraph PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(clgraph PRIVATE ${library_needs} $<BUILD_INTERFACE:clg_settings>)
  set_target_properties(clgraph PROPERTIES
    LINKER_LANGUAGE C VERSION ${PROJECT_VERSION} SOVERSION ${abi_version})
  if(WIN32)
    set_target_properties(clgraph PROPERTIES PREFIX "")
    # For import libraries of other compilers (docs/windows.md).
    set(export_definition "${PROJECT_BINARY_DIR}/clgraph.def")
    target_link_options(clgraph PRIVATE "LINKER:--output-def,${export_definition}")
  endif()
  if(UNIX AND NOT APPLE)
    set(export_map "${generated_dir}/clgraph.map")
    configure_file("${PROJECT_SOURCE_DIR}/cmake/clgraph.map.in" "${export_map}" @ONLY)
    target_link_options(clgraph PRIVATE "LINKER:--version-script=${export_map}" LINKER:--as-needed)
    # Drivers may call a function of the library, to release memory, after the last call into it
    # (ocl/buffer/buffer_pages.c), so it stays loaded.
    target_link_options(clgraph PRIVATE LINKER:-z,nodelete)
    # Clang leaves the functions of sanitizers undefined in shared libraries; GCC has them in a
    # library.
    if(NOT CLG_SANITIZE AND NOT "${CMAKE_C_FLAGS} ${CMAKE_SHARED_LINKER_FLAGS}" MATCHES "-fsanitize")
      target_link_options(clgraph PRIVATE LINKER:--no-undefined)
    endif()
    set_target_properties(clgraph PROPERTIES LINK_DEPENDS "${export_map}")
  endif()
  if(CLG_BUILD_STATIC)
    clg_add_static_library(clgraph_static ${layer_objects})
  endif()
else()
  clg_add_static_library(clgraph ${layer_objects})
endif()
add_library(clgraph::clgraph ALIAS clgraph)
# --- the compile helper, which the library starts ---
file(GLOB helper_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/helper/*.c")
list(FILTER helper_sources EXCLUDE REGEX "${clg_other_system}")
set(helper_objects "")
foreach(layer IN ITEMS base tensor caps step ocl)
  list(APPEND helper_objects $<TARGET_OBJECTS:clgraph_${layer}>)
endforeach()
add_executable(clgraph-compile ${helper_sources} ${helper_objects})
target_include_directories(clgraph-compile PRIVATE
  "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}/include")
target_link_libraries(clgraph-compile PRIVATE clg_settings ${library_needs} clg_opencl_headers)
set_target_properties(clgraph-compile PROPERTIES LINKER_LANGUAGE C)
add_dependencies(clgraph clgraph-compile)

include(Images)

if(CLG_BUILD_TESTS)
  add_library(clgraph_internal STATIC ${layer_objects})
  target_include_directories(clgraph_internal PUBLIC
    "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}/include")
  target_link_libraries(clgraph_internal PUBLIC ${library_needs}
    clg_opencl_headers clg_clblast_headers clg_xxhash_headers)
  set_target_properties(clgraph_internal PROPERTIES LINKER_LANGUAGE C)
  add_dependencies(clgraph_internal clgraph-compile) # tests start it
  if(TARGET clgraph-images)
    add_dependencies(clgraph_internal clgraph-images) # tests open it
  endif()
endif()
