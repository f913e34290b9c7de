# SPDX-License-Identifier: Apache-2.0
#
# Tests, found by name: tests/<area>/test_<subject>.c is one cmocka program and the ctest
# <area>.<subject>; tests/<area>/<name>.sh of cli, conformance and lint are scripts. A program may
# hold a line `/* ctest: label slow timeout 900 serial */` that adds labels, changes its time limit
# in seconds, and keeps other tests from running beside it (what measures time); a script `# ctest:
# timeout 900`.
#
# The label `quick` is for what `tools/test.sh` runs within a minute: tests_quick builds it.

enable_testing()
add_custom_target(tests_quick)
set(tests_dir "${PROJECT_SOURCE_DIR}/tests")
set(test_timeout_s 900)
set(test_slowdown 1)
set(test_cache_dir "${PROJECT_BINARY_DIR}/test-cache")
file(MAKE_DIRECTORY "${test_cache_dir}")
set(CLG_TEST_MODELS "${PROJECT_SOURCE_DIR}/../shared/models" CACHE PATH
  "Folder of models with test data; tests that want it are skipped where it is not")
# Optimised kernels, since what users run for long is to be tested; test_tiers.c tests the others.
set(test_environment
  "CLG_COMPILATION=optimized"
  "CLG_CACHE_DIR=${test_cache_dir}"
  "CLG_SOURCE_DIR=${PROJECT_SOURCE_DIR}"
  "CLG_BUILD_DIR=${PROJECT_BINARY_DIR}"
  "CLG_TEST_MODELS=${CLG_TEST_MODELS}")
if(CLG_SANITIZE)
  set(test_slowdown 3)
  # Up to GCC 13 the runtime takes a block of thread-local storage at byte 16 of a page for one with
  # a header of glibc 2.19 and reads its place from there. Since such a block comes from malloc, a
  # process in many then ended in "Tracer caught signal 11" while leaks were looked for. Without the
  # interceptor they are found through the thread's own table.
  list(APPEND test_environment
    "ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1:detect_stack_use_after_return=1:intercept_tls_get_addr=0"
    "LSAN_OPTIONS=suppressions='${PROJECT_SOURCE_DIR}/tools/sanitizer/lsan.supp':print_suppressions=0"
    "UBSAN_OPTIONS=print_stacktrace=1"
    "TSAN_OPTIONS=suppressions='${PROJECT_SOURCE_DIR}/tools/sanitizer/tsan.supp':second_deadlock_stack=1:history_size=5")
endif()

set(test_definitions
  "CLG_TEST_SOURCE_DIR=\"${PROJECT_SOURCE_DIR}\"" "CLG_TEST_BUILD_DIR=\"${PROJECT_BINARY_DIR}\""
  "CLG_TEST_COMPILE_HELPER=\"$<TARGET_FILE:clgraph-compile>\""
  "CLG_TEST_MODELS=\"${CLG_TEST_MODELS}\"" "CLG_TEST_SANITIZED=$<BOOL:${CLG_SANITIZE}>")
if(TARGET clgraph-images)
  list(APPEND test_definitions "CLG_TEST_IMAGES=\"$<TARGET_FILE:clgraph-images>\"")
endif()
file(GLOB_RECURSE support_sources CONFIGURE_DEPENDS "${tests_dir}/support/*.c")
list(FILTER support_sources EXCLUDE REGEX "${clg_other_system}")
add_library(clg_test_support INTERFACE)
if(support_sources)
  add_library(clg_test_support_objects STATIC ${support_sources})
  target_link_libraries(clg_test_support_objects PRIVATE clg_settings)
  target_link_libraries(clg_test_support_objects PUBLIC clgraph_internal clg_cmocka clg_jansson)
  target_include_directories(clg_test_support_objects PUBLIC "${tests_dir}")
  target_compile_definitions(clg_test_support_objects PRIVATE ${test_definitions})
  target_link_libraries(clg_test_support_objects PRIVATE clg_opencl_headers)
  target_link_libraries(clg_test_support INTERFACE clg_test_support_objects)
endif()
target_include_directories(clg_test_support INTERFACE "${tests_dir}")
target_compile_definitions(clg_test_support INTERFACE ${test_definitions})

# clg_add_test_programs(AREA LABEL)
function(clg_add_test_programs area label)
  add_custom_target(tests_${area}) # builds those of one area
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${tests_dir}/${area}/test_*.c")
  list(FILTER sources EXCLUDE REGEX "${clg_other_system}")
  foreach(source IN LISTS sources)
    get_filename_component(stem "${source}" NAME_WE)
    string(REGEX REPLACE "^test_" "" subject "${stem}")
    set(target "test_${area}_${subject}")
    add_executable(${target} "${source}")
    target_link_libraries(${target} PRIVATE
      clg_settings clg_test_support clgraph_internal clg_cmocka clg_jansson clg_opencl)
    if(UNIX AND NOT APPLE)
      target_link_options(${target} PRIVATE LINKER:--as-needed)
    endif()
    add_dependencies(tests_${area} ${target})
    set_target_properties(${target} PROPERTIES
      OUTPUT_NAME "${stem}" RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests/${area}")

    set(labels "${label}")
    set(timeout_s ${test_timeout_s})
    file(STRINGS "${source}" directive REGEX "^/\\* ctest: .*\\*/" LIMIT_COUNT 1)
    if(directive)
      set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${source}")
      string(REGEX MATCHALL "label +[a-z]+" words "${directive}")
      foreach(word IN LISTS words)
        string(REGEX REPLACE "label +" "" word "${word}")
        list(APPEND labels "${word}")
      endforeach()
      if(directive MATCHES "timeout +([0-9]+)")
        set(timeout_s "${CMAKE_MATCH_1}")
      endif()
    endif()
    math(EXPR timeout_s "${timeout_s} * ${test_slowdown}")
    add_test(NAME "${area}.${subject}" COMMAND ${target})
    if("quick" IN_LIST labels)
      add_dependencies(tests_quick ${target})
    endif()
    set_tests_properties("${area}.${subject}" PROPERTIES
      LABELS "${labels}" TIMEOUT ${timeout_s} ENVIRONMENT "${test_environment}"
      SKIP_RETURN_CODE 77)
    if(directive MATCHES " serial")
      set_property(TEST "${area}.${subject}" PROPERTY RUN_SERIAL ON)
    endif()
  endforeach()
endfunction()

# clg_add_test_scripts(AREA LABEL)
function(clg_add_test_scripts area label)
  file(GLOB scripts CONFIGURE_DEPENDS "${tests_dir}/${area}/*.sh")
  foreach(script IN LISTS scripts)
    get_filename_component(name "${script}" NAME_WE)
    add_test(NAME "${area}.${name}"
      COMMAND bash "${PROJECT_SOURCE_DIR}/cmake/run_script.sh" "${script}")
    set(environment ${test_environment})
    if(TARGET cltool)
      list(APPEND environment "CLTOOL=$<TARGET_FILE:cltool>")
    endif()
    set(timeout_s ${test_timeout_s})
    file(STRINGS "${script}" directive REGEX "^# ctest: timeout +[0-9]+" LIMIT_COUNT 1)
    if(directive MATCHES "timeout +([0-9]+)")
      set(timeout_s "${CMAKE_MATCH_1}")
    endif()
    math(EXPR timeout_s "${timeout_s} * ${test_slowdown}")
    set_tests_properties("${area}.${name}" PROPERTIES
      LABELS "${label}" TIMEOUT ${timeout_s} ENVIRONMENT "${environment}"
      SKIP_RETURN_CODE 77)
  endforeach()
endfunction()

clg_add_test_programs(unit "unit;quick")
add_dependencies(tests_quick tests_unit) # with the libraries that these load
# The provider for ONNX Runtime groups nodes without knowing of it, so this needs no headers of it.
target_sources(test_unit_ep_groups PRIVATE "${PROJECT_SOURCE_DIR}/onnxruntime/claim/ep_groups.c")
target_include_directories(test_unit_ep_groups PRIVATE "${PROJECT_SOURCE_DIR}/onnxruntime/claim")
clg_add_test_programs(ops device)
foreach(test graph_layout html private_text suite_models tool_suggestion tool_text tool_vision)
  target_link_libraries(test_unit_${test} PRIVATE tool_parts)
endforeach()
if(WIN32)
  return() # the rest is made of shell scripts, ocl-icd's layers and folders of drivers
endif()

# OpenCL layers (OPENCL_LAYERS of ocl-icd) that tests load: tests/layers/<name>.c becomes
# build/tests/layers/<name>.so, with the files of tests/layers/<name>/.
file(GLOB layer_sources CONFIGURE_DEPENDS "${tests_dir}/layers/*.c")
foreach(source IN LISTS layer_sources)
  get_filename_component(name "${source}" NAME_WE)
  file(GLOB parts CONFIGURE_DEPENDS "${tests_dir}/layers/${name}/*.c")
  add_library(layer_${name} MODULE "${source}" ${parts})
  target_include_directories(layer_${name} PRIVATE "${tests_dir}")
  target_link_libraries(layer_${name} PRIVATE clg_settings clg_opencl_headers)
  set_target_properties(layer_${name} PROPERTIES PREFIX "" OUTPUT_NAME "${name}"
    C_VISIBILITY_PRESET default LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests/layers")
endforeach()

# Libraries in place of OpenCL's: tests/libraries/<name>.c becomes build/tests/libraries/<name>.so.
file(GLOB fake_sources CONFIGURE_DEPENDS "${tests_dir}/libraries/*.c")
foreach(source IN LISTS fake_sources)
  get_filename_component(name "${source}" NAME_WE)
  add_library(library_${name} MODULE "${source}")
  target_link_libraries(library_${name} PRIVATE clg_settings ${CMAKE_DL_LIBS})
  set_target_properties(library_${name} PROPERTIES PREFIX "" OUTPUT_NAME "${name}"
    C_VISIBILITY_PRESET default LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests/libraries")
  add_dependencies(tests_unit library_${name})
endforeach()

# Benchmarks, tests/bench/<name>.c: built, never run by ctest.
file(GLOB bench_sources CONFIGURE_DEPENDS "${tests_dir}/bench/*.c")
foreach(source IN LISTS bench_sources)
  get_filename_component(name "${source}" NAME_WE)
  add_executable(bench_${name} "${source}")
  target_link_libraries(bench_${name} PRIVATE clg_settings clg_test_support clgraph_internal m)
  set_target_properties(bench_${name} PROPERTIES
    OUTPUT_NAME "${name}" RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests/bench")
endforeach()
# The products of matmul beside those of oneDNN 2, where libdnnl-dev is installed.
target_sources(bench_matmul PRIVATE "${tests_dir}/bench/peer/onednn.c")
target_include_directories(bench_matmul PRIVATE "${tests_dir}/bench")
find_library(DNNL_LIBRARY dnnl)
find_path(DNNL_INCLUDE_DIR oneapi/dnnl/dnnl.h)
mark_as_advanced(DNNL_LIBRARY DNNL_INCLUDE_DIR)
set(dnnl_version "")
if(DNNL_LIBRARY AND EXISTS "${DNNL_INCLUDE_DIR}/oneapi/dnnl/dnnl_version.h")
  file(STRINGS "${DNNL_INCLUDE_DIR}/oneapi/dnnl/dnnl_version.h" dnnl_version REGEX "define DNNL_VERSION_MAJOR +2$")
endif()
if(dnnl_version)
  target_compile_definitions(bench_matmul PRIVATE BENCH_ONEDNN)
  target_include_directories(bench_matmul SYSTEM PRIVATE "${DNNL_INCLUDE_DIR}")
  target_link_libraries(bench_matmul PRIVATE "${DNNL_LIBRARY}")
endif()

# Memory over ten thousand runs, in minutes: ctest -C soak -L soak, and not otherwise.
function(clg_add_soak name)
  add_test(NAME "soak.${name}" COMMAND bench_soak 10000 ${ARGN} CONFIGURATIONS soak)
  math(EXPR timeout_s "3600 * ${test_slowdown}")
  set_tests_properties("soak.${name}" PROPERTIES LABELS soak TIMEOUT ${timeout_s} RUN_SERIAL ON
    ENVIRONMENT "${test_environment}" SKIP_RETURN_CODE 77)
endfunction()
clg_add_soak(simd simd)
clg_add_soak(simt simt)
set(soak_models silero_vad_v5 voicevox_intonation gpt2_past_toy cifar10_cnn vespa_tiny_transformer)
list(TRANSFORM soak_models PREPEND "${CLG_TEST_MODELS}/")
clg_add_soak(models simd ${soak_models})

# Every kernel and the programs that models need through all targets of GPU vendors' compilers,
# thousands of compiles: ctest -C portability -L portability, and not otherwise.
add_test(NAME portability.rows CONFIGURATIONS portability COMMAND
  bash "${PROJECT_SOURCE_DIR}/tools/portability.sh" --all --out "${PROJECT_BINARY_DIR}/portability-rows.tsv")
add_test(NAME portability.models CONFIGURATIONS portability COMMAND
  bash "${PROJECT_SOURCE_DIR}/tools/portability_models.sh" "${PROJECT_BINARY_DIR}" --all
    --out "${PROJECT_BINARY_DIR}/portability-models.tsv")
set_tests_properties(portability.rows portability.models PROPERTIES LABELS portability TIMEOUT 14400 RUN_SERIAL ON
  ENVIRONMENT "${test_environment}" SKIP_RETURN_CODE 77)

# Tests as on other processors, on demand: ctest -C cpus -L cpus. A share of it is
# conformance.cpu_variants.
add_test(NAME cpus.all CONFIGURATIONS cpus COMMAND
  bash "${PROJECT_SOURCE_DIR}/tools/cpu-variants.sh" --build "${PROJECT_BINARY_DIR}" --every-variant all)
set_tests_properties(cpus.all PROPERTIES LABELS cpus TIMEOUT 86400 RUN_SERIAL ON SKIP_RETURN_CODE 77
  ENVIRONMENT "${test_environment}")

# Library, cltool and unit tests for Windows, under Wine, in minutes: ctest -C windows -L windows,
# and not otherwise.
add_test(NAME windows.wine COMMAND bash "${PROJECT_SOURCE_DIR}/tools/windows.sh"
  CONFIGURATIONS windows)
set_tests_properties(windows.wine PROPERTIES LABELS windows TIMEOUT 1800 SKIP_RETURN_CODE 77)

# Wheels and source distribution, built and tested on fresh systems: ctest -C wheels -L wheels. Their
# chroots stay in the build folder.
add_test(NAME wheels.all COMMAND bash "${PROJECT_SOURCE_DIR}/python/test_wheels.sh"
  "${PROJECT_BINARY_DIR}/wheels" CONFIGURATIONS wheels)
set_tests_properties(wheels.all PROPERTIES LABELS wheels TIMEOUT 7200)

# Folders of models through `cltool verify`, by both classes of kernels and in fp16: other people's,
# and well-known architectures that PyTorch writes into the build folder (the fixture
# generated_models).
set(generated_models "${PROJECT_BINARY_DIR}/tests/models/generated")
add_test(NAME models.generate
  COMMAND bash "${tests_dir}/models/generate.sh" "${generated_models}")
set_tests_properties(models.generate PROPERTIES LABELS "models" TIMEOUT 900
  FIXTURES_SETUP generated_models SKIP_RETURN_CODE 77)
function(clg_add_model_folder name folder)
  foreach(how simd simt fp16)
    set(test "models.${name}_${how}")
    add_test(NAME "${test}" COMMAND bash "${tests_dir}/models/verify.sh" "${folder}" ${how})
    math(EXPR timeout_s "600 * ${test_slowdown}")
    set_tests_properties("${test}" PROPERTIES LABELS "device;models" TIMEOUT ${timeout_s}
      ENVIRONMENT "${test_environment};CLTOOL=$<TARGET_FILE:cltool>" SKIP_RETURN_CODE 77)
  endforeach()
endfunction()
if(TARGET cltool)
  clg_add_model_folder(generated "${generated_models}")
  clg_add_model_folder(given "${CLG_TEST_MODELS}")
  set_tests_properties(models.generated_simd models.generated_simt models.generated_fp16 PROPERTIES
    FIXTURES_REQUIRED generated_models)
endif()

# The C++ interface: tests/cpp/test_<subject>.cpp is one program, the ctest cpp.<subject>, as C++17;
# cpp.compilers builds them with other compilers and standards.
if(clg_has_cxx)
  add_custom_target(tests_cpp)
  # PoCL alone under the sanitizers: other drivers open libraries in ways that end such a program.
  set(cxx_environment ${test_environment})
  if(CLG_SANITIZE AND EXISTS /etc/OpenCL/vendors/pocl.icd)
    list(APPEND cxx_environment "OCL_ICD_VENDORS=/etc/OpenCL/vendors/pocl.icd")
  endif()
  file(GLOB cxx_sources CONFIGURE_DEPENDS "${tests_dir}/cpp/test_*.cpp")
  foreach(source IN LISTS cxx_sources)
    get_filename_component(stem "${source}" NAME_WE)
    string(REGEX REPLACE "^test_" "" subject "${stem}")
    set(target "test_cpp_${subject}")
    add_executable(${target} "${source}")
    target_link_libraries(${target} PRIVATE clg_settings clgraph clg_opencl Threads::Threads)
    target_link_options(${target} PRIVATE LINKER:--as-needed)
    if(subject STREQUAL "no_exceptions")
      target_compile_options(${target} PRIVATE -fno-exceptions)
    endif()
    add_dependencies(tests_cpp ${target})
    set_target_properties(${target} PROPERTIES
      OUTPUT_NAME "${stem}" RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests/cpp")
    add_test(NAME "cpp.${subject}" COMMAND ${target})
    set_tests_properties("cpp.${subject}" PROPERTIES LABELS device TIMEOUT ${test_timeout_s}
      ENVIRONMENT "${cxx_environment}")
  endforeach()
  clg_add_test_scripts(cpp device)
endif()

foreach(area api conformance models)
  clg_add_test_programs(${area} device)
endforeach()
clg_add_test_programs(faults fault)
include(Fuzz)
target_link_libraries(test_api_train_reader PRIVATE tool_parts)
clg_add_test_scripts(conformance device)
# It lists the implementations of the generated models, which must be complete by then.
set_tests_properties(conformance.each_impl PROPERTIES FIXTURES_REQUIRED generated_models)
# The code blocks of the documents, with models that a program writes.
add_executable(docs_make_models "${tests_dir}/docs/make_models.c")
target_link_libraries(docs_make_models PRIVATE clg_settings clgraph)
set_target_properties(docs_make_models PROPERTIES
  OUTPUT_NAME make_models RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests/docs")
clg_add_test_scripts(docs device)
clg_add_test_scripts(ort device)
clg_add_test_scripts(cli golden)
clg_add_test_scripts(lint lint)
clg_add_test_scripts(python device)
# The longest of all on one processor: ctest starts it first. Then others of a minute and more that
# their numbers would leave to the end, where one job would wait for them.
set_tests_properties(lint.portability PROPERTIES COST 1000)
foreach(test python.package docs.examples conformance.small_devices conformance.each_impl ort.nbits
    cpp.compilers cli.selftest conformance.odd_devices models.generated_simt conformance.cpu_variants)
  if(TEST ${test})
    set_tests_properties(${test} PROPERTIES COST 100)
  endif()
endforeach()
