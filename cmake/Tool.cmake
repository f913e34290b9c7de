# SPDX-License-Identifier: Apache-2.0
#
# What cltool is made of, for the program and for the tests that call its parts: sources below lib/,
# their folders, and generated files.

set(tool_lib "${PROJECT_SOURCE_DIR}/tools/cltool/lib")
file(GLOB_RECURSE tool_lib_sources CONFIGURE_DEPENDS "${tool_lib}/*.c")
list(FILTER tool_lib_sources EXCLUDE REGEX "${clg_other_system}")
set(tool_include_dirs
  "${tool_lib}" "${tool_lib}/bench" "${tool_lib}/command" "${tool_lib}/data" "${tool_lib}/gradient"
  "${tool_lib}/network" "${tool_lib}/report" "${tool_lib}/results" "${tool_lib}/shards"
  "${tool_lib}/train" "${tool_lib}/vision")

# The commit, which reports name: it is looked up at each build, and compiled again when it changed.
set(CLG_COMMIT "" CACHE STRING "commit that cltool names in reports (empty: that of the git repository)")
set(tool_generated "${PROJECT_BINARY_DIR}/generated/cltool")
add_custom_target(tool_commit_source
  COMMAND "${CMAKE_COMMAND}" "-DSOURCE_DIR=${PROJECT_SOURCE_DIR}" "-DCOMMIT=${CLG_COMMIT}"
    "-DOUTPUT=${tool_generated}/tool_commit.c" -P "${PROJECT_SOURCE_DIR}/cmake/write_commit.cmake"
  BYPRODUCTS "${tool_generated}/tool_commit.c"
  COMMENT "Looking up the commit"
  VERBATIM)

# Style and script of HTML pages.
set(page_files "${tool_lib}/report/page.css" "${tool_lib}/report/page.js")
add_custom_command(OUTPUT "${tool_generated}/page_files.c"
  COMMAND "${CMAKE_COMMAND}" "-DFILES=${page_files}" "-DOUTPUT=${tool_generated}/page_files.c"
    -P "${PROJECT_SOURCE_DIR}/cmake/embed_text.cmake"
  DEPENDS ${page_files} "${PROJECT_SOURCE_DIR}/cmake/embed_text.cmake"
  COMMENT "Embedding the files of pages"
  VERBATIM)

add_library(tool_generated STATIC "${tool_generated}/tool_commit.c" "${tool_generated}/page_files.c")
add_dependencies(tool_generated tool_commit_source)
target_include_directories(tool_generated PRIVATE ${tool_include_dirs})
target_link_libraries(tool_generated PRIVATE clg_settings)

# The parts of cltool, for tests.
if(CLG_BUILD_TESTS)
  add_library(tool_parts STATIC ${tool_lib_sources})
  target_include_directories(tool_parts PUBLIC ${tool_include_dirs})
  target_link_libraries(tool_parts
    PRIVATE clg_settings PUBLIC tool_generated clgraph_internal clg_jansson clg_stb ZLIB::ZLIB)
  if(UNIX)
    target_link_libraries(tool_parts PUBLIC m)
  endif()
endif()
