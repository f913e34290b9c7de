# SPDX-License-Identifier: Apache-2.0
#
# Windows on x86-64, compiled by MinGW-w64 on Linux:
#
#   tools/windows-deps.sh FOLDER
#   CLG_WINDOWS_DEPS=FOLDER cmake -B BUILD --toolchain cmake/toolchains/mingw-w64.cmake
#
# The libraries that tools/windows-deps.sh made are found below $CLG_WINDOWS_DEPS (or
# -DCLG_WINDOWS_DEPS=FOLDER). All that is not Windows' own is linked statically: a program needs
# clgraph.dll and nothing else beside it.

set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_SYSTEM_PROCESSOR x86_64)

set(mingw_target x86_64-w64-mingw32)
# The variant with POSIX threads where both are installed: the plain name may be the other one's.
find_program(CMAKE_C_COMPILER NAMES ${mingw_target}-gcc-posix ${mingw_target}-gcc REQUIRED)
find_program(CMAKE_RC_COMPILER ${mingw_target}-windres)

if(NOT CLG_WINDOWS_DEPS)
  set(CLG_WINDOWS_DEPS "$ENV{CLG_WINDOWS_DEPS}" CACHE PATH "What tools/windows-deps.sh made")
endif()
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES CLG_WINDOWS_DEPS)

set(CMAKE_FIND_ROOT_PATH /usr/${mingw_target})
if(CLG_WINDOWS_DEPS)
  list(PREPEND CMAKE_FIND_ROOT_PATH "${CLG_WINDOWS_DEPS}")
  list(PREPEND CMAKE_PREFIX_PATH /)
endif()
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)

# pkg-config knows of those libraries alone.
set(ENV{PKG_CONFIG_PATH} "")
set(ENV{PKG_CONFIG_LIBDIR} "${CLG_WINDOWS_DEPS}/lib/pkgconfig")

set(ZLIB_USE_STATIC_LIBS ON)
foreach(kind EXE SHARED MODULE)
  set(CMAKE_${kind}_LINKER_FLAGS_INIT "-static")
endforeach()

# Tests run where Wine is: ctest starts each program with it.
find_program(wine NAMES wine wine64)
mark_as_advanced(wine)
if(wine)
  set(CMAKE_CROSSCOMPILING_EMULATOR "${wine}")
endif()
