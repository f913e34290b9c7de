# SPDX-License-Identifier: Apache-2.0
#
# Linux on x86-64 or aarch64 with an older glibc, compiled by PyPI's ziglang:
#
#   tools/portable.sh --toolchain ARCH FOLDER
#   CLG_PORTABLE=FOLDER cmake -B BUILD --toolchain cmake/toolchains/portable.cmake
#
# The compiler, and Debian's static libraries and headers, are found below $CLG_PORTABLE (or
# -DCLG_PORTABLE=FOLDER). Of libraries, files need glibc's and our own alone; they have no debug
# information.

if(NOT CLG_PORTABLE)
  set(CLG_PORTABLE "$ENV{CLG_PORTABLE}" CACHE PATH "What tools/portable.sh made")
endif()
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES CLG_PORTABLE)
file(STRINGS "${CLG_PORTABLE}/arch" portable_arch)

set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR "${portable_arch}")
set(CMAKE_LIBRARY_ARCHITECTURE "${portable_arch}-linux-gnu")
set(CMAKE_C_COMPILER "${CLG_PORTABLE}/bin/cc")
set(CMAKE_AR "${CLG_PORTABLE}/bin/ar" CACHE FILEPATH "")
set(CMAKE_RANLIB "${CLG_PORTABLE}/bin/ranlib" CACHE FILEPATH "")

set(CMAKE_FIND_ROOT_PATH "${CLG_PORTABLE}/sysroot")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(portable_usr "${CLG_PORTABLE}/sysroot/usr")
set(ENV{PKG_CONFIG_PATH} "")
set(ENV{PKG_CONFIG_LIBDIR}
  "${portable_usr}/lib/${portable_arch}-linux-gnu/pkgconfig:${portable_usr}/share/pkgconfig")
set(ENV{PKG_CONFIG_SYSROOT_DIR} "${CLG_PORTABLE}/sysroot")

foreach(kind EXE SHARED MODULE)
  set(CMAKE_${kind}_LINKER_FLAGS_INIT "-s")
endforeach()
