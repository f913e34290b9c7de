# SPDX-License-Identifier: Apache-2.0
#
# Hardening of all compiled code, where the compiler and the linker have it: checked copies of libc
# (fortify), stack protectors, stack probes, control-flow protection, position-independent programs,
# and tables of the loader that are read-only before main. Not with the sanitizers, which replace the
# same functions, and not on Windows, where libc and linker have other means. lint.hardening reads
# the built files. See decision 54.

include(CheckCCompilerFlag)
include(CheckLinkerFlag)

function(clg_harden_compiling flag)
  string(MAKE_C_IDENTIFIER "clg_has${flag}" variable)
  # Flags of other processors are warnings of clang's.
  set(CMAKE_REQUIRED_FLAGS "-Werror")
  check_c_compiler_flag("${flag}" ${variable})
  if(${variable})
    target_compile_options(clg_settings INTERFACE "${flag}")
  endif()
endfunction()

function(clg_harden_linking flag)
  string(MAKE_C_IDENTIFIER "clg_has${flag}" variable)
  check_linker_flag(C "${flag}" ${variable})
  if(${variable})
    target_link_options(clg_settings INTERFACE "${flag}")
  endif()
endfunction()

# Level 3 needs gcc 12 or clang 15 and glibc 2.34; libc warns about a level that it does not have.
# The level that a distribution sets is replaced.
function(clg_fortify)
  foreach(level IN ITEMS 3 2)
    set(CMAKE_REQUIRED_FLAGS "-Werror -O2 -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=${level}")
    check_c_source_compiles("#include <string.h>
      #if defined(__GLIBC__) && __USE_FORTIFY_LEVEL < ${level}
      #error the level is not used
      #endif
      int main(void) { return 0; }" clg_has_fortify_${level})
    if(clg_has_fortify_${level})
      # Without optimisation it has no effect, and glibc warns.
      target_compile_options(clg_settings INTERFACE
        $<$<NOT:$<CONFIG:Debug>>:-U_FORTIFY_SOURCE>
        $<$<NOT:$<CONFIG:Debug>>:-D_FORTIFY_SOURCE=${level}>)
      return()
    endif()
  endforeach()
endfunction()

include(CheckCSourceCompiles)
clg_fortify()
clg_harden_compiling(-fstack-protector-strong)
clg_harden_compiling(-fstack-clash-protection)
clg_harden_compiling(-fcf-protection)
clg_harden_linking(-Wl,-z,relro)
clg_harden_linking(-Wl,-z,now)
clg_harden_linking(-Wl,-z,noexecstack)

include(CheckPIESupported)
check_pie_supported(LANGUAGES C)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
