/* SPDX-License-Identifier: Apache-2.0
 *
 * Lets clang's libc++ compile for Microsoft's ABI with the C headers of MinGW: lint.msvc_headers
 * includes it before all else. For checks of syntax alone.
 */
#define _LIBCPP_NO_VCRUNTIME 1 /* which is Microsoft's */
#define _LIBCPP_WCHAR_H_HAS_CONST_OVERLOADS 1
#define _LIBCPP_STRING_H_HAS_CONST_OVERLOADS 1

/* MinGW has these behind declarations, where __declspec of Microsoft's compilers cannot be. */
#include <_mingw.h>
#undef __attribute__ /* clang has it */
#undef __MINGW_ATTRIB_NORETURN
#define __MINGW_ATTRIB_NORETURN
#undef __MINGW_ATTRIB_DEPRECATED
#define __MINGW_ATTRIB_DEPRECATED
#undef __MINGW_NOTHROW
#define __MINGW_NOTHROW

/* Functions of Microsoft's C library that MinGW's headers do not declare. */
#include <locale.h>
#include <stddef.h>
#include <time.h>
extern "C" {
int timespec_get(struct timespec *, int);
int at_quick_exit(void (*)(void));
void quick_exit(int);
void *aligned_alloc(size_t, size_t);
float _strtof_l(const char *, char **, _locale_t);
long double _strtold_l(const char *, char **, _locale_t);
}
