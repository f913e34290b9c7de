# SPDX-License-Identifier: Apache-2.0
#
# clg_add_static_library(TARGET OBJECT...): libclgraph.a, which defines clg_* alone where the format
# of object files allows it. Names that only the shared library would hide could otherwise be those
# of the program too.

# All objects as one, whose hidden names are local; in OUT the path. Needs GNU's or LLVM's binutils.
function(clg_combine_objects out)
  set(list "${generated_dir}/static_objects.txt")
  file(GENERATE OUTPUT "${list}" CONTENT "\"$<JOIN:${ARGN},\"\n\">\"\n")
  set(combined "${generated_dir}/clgraph_static.o")
  add_custom_command(OUTPUT "${combined}"
    COMMAND "${CMAKE_LINKER}" -r -o "${combined}" "@${list}"
    COMMAND "${CMAKE_OBJCOPY}" --localize-hidden "${combined}"
    DEPENDS ${ARGN} "${list}"
    COMMENT "Combining the objects of the static library"
    VERBATIM)
  set(${out} "${combined}" PARENT_SCOPE)
endfunction()

function(clg_add_static_library target)
  set(objects ${ARGN})
  # Not with link-time optimisation, whose objects are no machine code yet.
  if(CMAKE_EXECUTABLE_FORMAT STREQUAL "ELF" AND CMAKE_LINKER AND CMAKE_OBJCOPY
      AND NOT CMAKE_INTERPROCEDURAL_OPTIMIZATION AND NOT "${CMAKE_C_FLAGS}" MATCHES "-flto")
    clg_combine_objects(objects ${ARGN})
  endif()
  add_library(${target} STATIC ${objects})
  set_target_properties(${target} PROPERTIES LINKER_LANGUAGE C OUTPUT_NAME clgraph)
  target_include_directories(${target} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  # Programs link what the library needs; clgraphConfig.cmake finds it for them.
  target_link_libraries(${target} PRIVATE "$<BUILD_INTERFACE:${library_needs}>"
    "$<INSTALL_INTERFACE:PkgConfig::CLGRAPH_NEEDS>" "$<INSTALL_INTERFACE:ZLIB::ZLIB>"
    "$<INSTALL_INTERFACE:Threads::Threads>")
  foreach(need IN ITEMS ${CMAKE_DL_LIBS} ${library_math})
    target_link_libraries(${target} PRIVATE "$<INSTALL_INTERFACE:${need}>")
  endforeach()
endfunction()
