# SPDX-License-Identifier: Apache-2.0
#
# Writes man pages and completion scripts, as cltool prints them, into a folder that is laid out as
# share/ of a prefix:
#   cmake -DCLTOOL=PROGRAM -DFOLDER=SHARE -P print_manual.cmake
# CLTOOL may be a list: an emulator, its arguments and the program.

function(print file)
  execute_process(COMMAND ${CLTOOL} ${ARGN} OUTPUT_VARIABLE text RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "cltool ${ARGN} failed: ${failed}")
  endif()
  file(WRITE "${FOLDER}/${file}" "${text}")
endfunction()

file(REMOVE_RECURSE "${FOLDER}")
print(bash-completion/completions/cltool completion bash)
print(zsh/site-functions/_cltool completion zsh)
print(fish/vendor_completions.d/cltool.fish completion fish)
print(man/man1/cltool.1 man)
file(STRINGS "${FOLDER}/bash-completion/completions/cltool" names REGEX "^_cltool_commands=")
string(REGEX MATCHALL "[a-z]+" names "${names}")
list(REMOVE_ITEM names cltool commands)
foreach(name IN LISTS names)
  print(man/man1/cltool-${name}.1 man ${name})
endforeach()
