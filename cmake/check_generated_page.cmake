# SPDX-License-Identifier: Apache-2.0
#
# cmake -DPROGRAM=... -DDOC=... -DFRESH=... -DBUILD=... -DTARGET=... -P check_generated_page.cmake
#
# Fails, naming the first line that differs, when DOC is not what PROGRAM prints.

execute_process(COMMAND "${PROGRAM}" OUTPUT_FILE "${FRESH}" RESULT_VARIABLE result)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "${PROGRAM} failed: ${result}")
endif()
file(STRINGS "${FRESH}" fresh)
set(old "")
if(EXISTS "${DOC}")
  file(STRINGS "${DOC}" old)
endif()
if(fresh STREQUAL old)
  return()
endif()
foreach(line IN LISTS fresh)
  list(FIND old "${line}" at)
  if(at EQUAL -1)
    message("missing: ${line}")
    break()
  endif()
endforeach()
message(FATAL_ERROR "${DOC} is not what the library's table says. To write it again:\n"
  "  cmake --build ${BUILD} --target ${TARGET}")
