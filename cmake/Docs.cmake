# SPDX-License-Identifier: Apache-2.0
#
# docs/operators.md is printed by a small program from the library's own table of operators:
#   cmake --build build --target docs_operators     writes it
#   ctest -R lint.operators_doc                     fails when it is out of date

add_executable(print_operators EXCLUDE_FROM_ALL "${PROJECT_SOURCE_DIR}/tools/gendoc/operators.c")
target_link_libraries(print_operators PRIVATE clg_settings clgraph)

set(operators_doc "${PROJECT_SOURCE_DIR}/docs/operators.md")
set(operators_fresh "${PROJECT_BINARY_DIR}/generated/operators.md")
add_custom_target(docs_operators
  COMMAND print_operators > "${operators_fresh}"
  COMMAND "${CMAKE_COMMAND}" -E copy_if_different "${operators_fresh}" "${operators_doc}"
  COMMENT "Writing docs/operators.md"
  VERBATIM)

if(CLG_BUILD_TESTS AND NOT WIN32)
  set_target_properties(print_operators PROPERTIES EXCLUDE_FROM_ALL OFF)
  add_test(NAME lint.operators_doc COMMAND "${CMAKE_COMMAND}"
    "-DPROGRAM=$<TARGET_FILE:print_operators>" "-DDOC=${operators_doc}"
    "-DFRESH=${operators_fresh}" "-DBUILD=${PROJECT_BINARY_DIR}"
    -P "${PROJECT_SOURCE_DIR}/cmake/check_operators_doc.cmake")
  set_tests_properties(lint.operators_doc PROPERTIES LABELS lint TIMEOUT 60)
endif()
