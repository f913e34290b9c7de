/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens shared libraries at run time on Windows.
 */
#include "base/windows/utf16_windows.h"
#include "ocl/dynlib.h"

#include <stdio.h>
#include <string.h>

#define PATH_CHARS 4096

const char *const dynlib_opencl_names[] = {"OpenCL.dll", NULL};
const char *const dynlib_clblast_names[] = {"clblast.dll", "libclblast.dll", NULL};

/* Writes "'NAME': Windows error NUMBER: MESSAGE", without trailing blanks. */
static void explain(const char *name, DWORD error, char why[DYNLIB_WHY_BYTES])
{
    wchar_t wide[DYNLIB_WHY_BYTES / 4];
    char words[DYNLIB_WHY_BYTES];
    const DWORD n = FormatMessageW(FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS |
                                       FORMAT_MESSAGE_MAX_WIDTH_MASK,
                                   NULL, error, 0, wide, DYNLIB_WHY_BYTES / 4, NULL);
    if (n == 0 || !utf16_narrow(wide, words, sizeof words))
        snprintf(words, sizeof words, "no message");
    for (size_t length = strlen(words); length > 0 && words[length - 1] == ' ';)
        words[--length] = '\0';
    snprintf(why, DYNLIB_WHY_BYTES, "'%.200s': Windows error %lu: %.250s", name, error, words);
}

void *dynlib_open(const char *name, char why[DYNLIB_WHY_BYTES])
{
    wchar_t wide[PATH_CHARS];
    if (!name) {
        snprintf(why, DYNLIB_WHY_BYTES, "not on Windows");
        return NULL;
    }
    if (!utf16_widen(name, wide, PATH_CHARS)) {
        explain(name, GetLastError(), why);
        return NULL;
    }
    DWORD mode; /* the previous error mode, restored below; no dialog while opening */
    const BOOL is_set = SetThreadErrorMode(SEM_FAILCRITICALERRORS | SEM_NOOPENFILEERRORBOX, &mode);
    HMODULE library = LoadLibraryW(wide);
    const DWORD error = GetLastError();
    if (is_set) (void)SetThreadErrorMode(mode, NULL);
    if (!library) explain(name, error, why);
    return library;
}

bool dynlib_function(void *library, const char *name, void *out_function, size_t function_bytes)
{
    FARPROC function = GetProcAddress((HMODULE)library, name);
    if (!function || function_bytes != sizeof function) return false;
    memcpy(out_function, &function, sizeof function);
    return true;
}

void dynlib_identify(const void *address, char out_text[DYNLIB_WHY_BYTES])
{
    (void)address;
    out_text[0] = '\0';
}

bool dynlib_own_path(char out_path[DYNLIB_WHY_BYTES])
{
    wchar_t wide[DYNLIB_WHY_BYTES];
    HMODULE module;
    if (!GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS |
                                GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT,
                            (LPCWSTR)(const void *)&dynlib_opencl_names, &module))
        return false;
    const DWORD n = GetModuleFileNameW(module, wide, DYNLIB_WHY_BYTES);
    return n > 0 && n < DYNLIB_WHY_BYTES && utf16_narrow(wide, out_path, DYNLIB_WHY_BYTES);
}

void dynlib_close(void *library)
{
    if (library) FreeLibrary((HMODULE)library);
}
