# SPDX-License-Identifier: Apache-2.0
#
# Pages that small programs print from the library's own tables:
#   cmake --build build --target docs_NAME     writes docs/NAME.md
#   ctest -R lint.NAME_doc                     fails when it is out of date

# NAME is printed by tools/gendoc/NAME.c, linked with the given libraries.
function(clg_generated_page name)
  add_executable(print_${name} EXCLUDE_FROM_ALL "${PROJECT_SOURCE_DIR}/tools/gendoc/${name}.c")
  target_link_libraries(print_${name} PRIVATE clg_settings ${ARGN})

  set(page "${PROJECT_SOURCE_DIR}/docs/${name}.md")
  set(fresh "${PROJECT_BINARY_DIR}/generated/${name}.md")
  add_custom_target(docs_${name}
    COMMAND print_${name} > "${fresh}"
    COMMAND "${CMAKE_COMMAND}" -E copy_if_different "${fresh}" "${page}"
    COMMENT "Writing docs/${name}.md"
    VERBATIM)

  if(CLG_BUILD_TESTS AND NOT WIN32)
    set_target_properties(print_${name} PROPERTIES EXCLUDE_FROM_ALL OFF)
    add_test(NAME lint.${name}_doc COMMAND "${CMAKE_COMMAND}"
      "-DPROGRAM=$<TARGET_FILE:print_${name}>" "-DDOC=${page}" "-DFRESH=${fresh}"
      "-DBUILD=${PROJECT_BINARY_DIR}" "-DTARGET=docs_${name}"
      -P "${PROJECT_SOURCE_DIR}/cmake/check_generated_page.cmake")
    set_tests_properties(lint.${name}_doc PROPERTIES LABELS lint TIMEOUT 60)
  endif()
endfunction()

clg_generated_page(operators clgraph)
if(CLG_BUILD_TESTS)
  clg_generated_page(quirks clgraph_internal) # the tables are not public
  clg_generated_page(opencl clgraph_internal)
endif()
