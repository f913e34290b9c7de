# SPDX-License-Identifier: Apache-2.0
#
# Fuzz targets, tests/fuzz/libfuzzer/fuzz_<target>.c. Every build of the tests has `fuzz_replay`,
# which calls them with the files of tests/fuzz/corpus (the ctest fuzz.corpus), and `make_corpus`,
# which made those. With CLG_FUZZ, each target is also a program of libFuzzer's,
# build/tests/fuzz/<target>.

set(fuzz_dir "${PROJECT_SOURCE_DIR}/tests/fuzz")
set(fuzz_output "${PROJECT_BINARY_DIR}/tests/fuzz")
file(GLOB fuzz_sources CONFIGURE_DEPENDS "${fuzz_dir}/libfuzzer/fuzz_*.c")
file(GLOB corpus_sources CONFIGURE_DEPENDS "${fuzz_dir}/libfuzzer/corpus_*.c")

add_library(fuzz_targets_objects STATIC ${fuzz_sources} "${fuzz_dir}/libfuzzer/support.c")
target_link_libraries(fuzz_targets_objects
  PRIVATE clg_settings PUBLIC tool_parts clg_test_support clgraph_internal)

function(clg_add_fuzz_program name)
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE clg_settings fuzz_targets_objects)
  if(NOT APPLE)
    target_link_options(${name} PRIVATE LINKER:--as-needed)
  endif()
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${fuzz_output}")
endfunction()
clg_add_fuzz_program(fuzz_replay "${fuzz_dir}/libfuzzer/replay.c")
clg_add_fuzz_program(make_corpus "${fuzz_dir}/libfuzzer/make_corpus.c" ${corpus_sources})

add_test(NAME fuzz.corpus COMMAND fuzz_replay "${fuzz_dir}/corpus")
math(EXPR timeout_s "300 * ${test_slowdown}")
set_tests_properties(fuzz.corpus PROPERTIES LABELS "device" TIMEOUT ${timeout_s}
  ENVIRONMENT "${test_environment}")

if(NOT CLG_FUZZ)
  return()
endif()

# Programs of libFuzzer, and the mutators of those whose formats need one.
set(mutator_onnx protobuf)
set(mutator_run protobuf)
set(mutator_proto protobuf)
set(mutator_cache cache)
set(mutator_npz zip)
add_custom_target(fuzz_all DEPENDS make_corpus fuzz_replay)
foreach(source IN LISTS fuzz_sources)
  get_filename_component(target "${source}" NAME_WE)
  string(REGEX REPLACE "^fuzz_" "" name "${target}")
  set(mutator "")
  if(mutator_${name})
    set(mutator "${fuzz_dir}/libfuzzer/mutate_${mutator_${name}}.c")
  endif()
  clg_add_fuzz_program(${target} "${fuzz_dir}/libfuzzer/entry.c" ${mutator})
  target_compile_definitions(${target} PRIVATE FUZZ_TARGET=${name}
    $<$<BOOL:${mutator}>:FUZZ_MUTATOR=${mutator_${name}}>)
  target_link_options(${target} PRIVATE ${clg_fuzz_engine})
  set_target_properties(${target} PROPERTIES OUTPUT_NAME "${name}")
  add_dependencies(fuzz_all ${target})
endforeach()
# For $CLG_FUZZ_SECONDS a target, default 5.
add_test(NAME fuzz.short COMMAND
  bash "${PROJECT_SOURCE_DIR}/cmake/run_script.sh" "${fuzz_dir}/short.sh")
set_tests_properties(fuzz.short PROPERTIES LABELS "device" TIMEOUT 3600
  ENVIRONMENT "${test_environment}")
