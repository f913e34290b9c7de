# SPDX-License-Identifier: Apache-2.0
#
# C11, the warnings, the build type, the sanitizers: what every target of the project shares.
# `clg_settings` carries them; link it PRIVATE.

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug, Release, RelWithDebInfo or MinSizeRel" FORCE)
endif()
string(REPLACE "-O3" "-O2" CMAKE_C_FLAGS_RELEASE "${CMAKE_C_FLAGS_RELEASE}")

# What is built does not depend on the folder that it is built in.
set(CMAKE_BUILD_RPATH_USE_ORIGIN ON)
# The library and cltool are C. The C++ interface is headers alone; its tests and example are built
# where there is a C++ compiler.
set(clg_has_cxx OFF)
if(CLG_BUILD_EXAMPLES OR CLG_BUILD_TESTS)
  include(CheckLanguage)
  check_language(CXX)
  if(CMAKE_CXX_COMPILER)
    enable_language(CXX)
    set(clg_has_cxx ON)
    set(CMAKE_CXX_STANDARD 17)
    set(CMAKE_CXX_STANDARD_REQUIRED ON)
    set(CMAKE_CXX_EXTENSIONS OFF)
    string(REPLACE "-O3" "-O2" CMAKE_CXX_FLAGS_RELEASE "${CMAKE_CXX_FLAGS_RELEASE}")
  endif()
endif()

add_library(clg_settings INTERFACE)
target_compile_options(clg_settings INTERFACE
  -Wall -Wextra $<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes> $<$<COMPILE_LANGUAGE:C>:-Wmissing-prototypes>
  $<$<COMPILE_LANGUAGE:CXX>:-Wshadow> -Wpointer-arith -Wundef -Wvla -Wformat=2 -pedantic)
if(CMAKE_C_COMPILER_ID STREQUAL GNU)
  target_compile_options(clg_settings INTERFACE $<$<COMPILE_LANGUAGE:C>:-Wshadow=local>)
else()
  # Clang has no such kind of -Wshadow. It takes va_list functions without an attribute for wrong
  # formats, and {NULL} for an incomplete initialiser.
  target_compile_options(clg_settings INTERFACE
    -Wno-format-nonliteral -Wno-missing-field-initializers)
endif()
if(CLG_WERROR)
  target_compile_options(clg_settings INTERFACE -Werror)
endif()
if(CLG_SANITIZE)
  if(CLG_SANITIZE STREQUAL "thread")
    set(sanitizers -fsanitize=thread -fno-omit-frame-pointer -g)
  else()
    set(sanitizers -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer -g)
  endif()
  target_compile_options(clg_settings INTERFACE ${sanitizers})
  target_link_options(clg_settings INTERFACE ${sanitizers})
  if(CMAKE_C_COMPILER_ID MATCHES Clang)
    # Clang's sanitizer finds the functions that throw when a program starts. Drivers, which throw,
    # are loaded later; in a C program they would end it.
    target_link_options(clg_settings INTERFACE
      LINKER:--push-state,--no-as-needed -lstdc++ LINKER:--pop-state)
  endif()
endif()
if(CLG_FUZZ)
  if(NOT CMAKE_C_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "CLG_FUZZ needs clang (CC=clang): libFuzzer is a part of it")
  endif()
  # What programs of the engine are linked with. OSS-Fuzz gives its own flags and engine.
  set(clg_fuzz_engine "$ENV{LIB_FUZZING_ENGINE}")
  if(NOT clg_fuzz_engine)
    set(clg_fuzz_engine -fsanitize=fuzzer)
    target_compile_options(clg_settings INTERFACE -fsanitize=fuzzer-no-link)
    target_link_options(clg_settings INTERFACE -fsanitize=fuzzer-no-link)
  endif()
endif()

# Files that end in _posix.c or _windows.c are one system's; all that find sources by name leave out
# the other's.
if(WIN32)
  set(clg_other_system "_posix\\.c$")
  # printf as C11 has it (%zu, %lld); Windows 7 and later.
  target_compile_definitions(clg_settings INTERFACE
    __USE_MINGW_ANSI_STDIO=1 WIN32_LEAN_AND_MEAN NOMINMAX _WIN32_WINNT=0x0601)
else()
  set(clg_other_system "_windows\\.c$")
  # Strict C11 hides POSIX; _DEFAULT_SOURCE adds MAP_ANONYMOUS, flock and their like.
  target_compile_definitions(clg_settings INTERFACE
    _POSIX_C_SOURCE=200809L _DEFAULT_SOURCE _FILE_OFFSET_BITS=64)
endif()
