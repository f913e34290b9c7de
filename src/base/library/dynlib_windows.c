/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens shared libraries at run time on Windows.
 */
#include "base/library/dynlib.h"

#include "base/memory.h"
#include "base/windows/utf16_windows.h"

#include <stdio.h>
#include <string.h>

#define PATH_CHARS 4096

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

/* Finds a file name in the folders of PATH, and writes its path; returns false when it is in none.
 * The working directory is searched only where PATH has it. */
static bool find_on_path(const wchar_t *name, wchar_t path[PATH_CHARS])
{
    const DWORD n_chars = GetEnvironmentVariableW(L"PATH", NULL, 0);
    wchar_t *folders = n_chars > 0 ? memory_alloc(n_chars * sizeof *folders) : NULL;
    if (!folders) return false;
    const DWORD n = GetEnvironmentVariableW(L"PATH", folders, n_chars);
    const DWORD n_path =
        n > 0 && n < n_chars ? SearchPathW(folders, name, NULL, PATH_CHARS, path, NULL) : 0;
    memory_free(folders);
    return n_path > 0 && n_path < PATH_CHARS;
}

/* Opens a library, which the system searches for by LOAD_LIBRARY_SEARCH flags. */
static HMODULE load(const wchar_t *name, DWORD flags)
{
    DWORD mode; /* the previous error mode, restored below; no dialog while opening */
    const BOOL is_set = SetThreadErrorMode(SEM_FAILCRITICALERRORS | SEM_NOOPENFILEERRORBOX, &mode);
    HMODULE library = LoadLibraryExW(name, NULL, flags);
    const DWORD error = GetLastError();
    if (is_set) (void)SetThreadErrorMode(mode, NULL);
    SetLastError(error);
    return library;
}

/* Beside a library that is named by its path are those that it needs. */
#define BESIDE (LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR | LOAD_LIBRARY_SEARCH_DEFAULT_DIRS)

void *dynlib_open(const char *name, char why[DYNLIB_WHY_BYTES])
{
    wchar_t wide[PATH_CHARS], found[PATH_CHARS];
    if (!name) {
        snprintf(why, DYNLIB_WHY_BYTES, "not on Windows");
        return NULL;
    }
    if (!utf16_widen(name, wide, PATH_CHARS)) {
        explain(name, GetLastError(), why);
        return NULL;
    }
    const bool is_path = strpbrk(name, "/\\") != NULL;
    HMODULE library = load(wide, is_path ? BESIDE : LOAD_LIBRARY_SEARCH_DEFAULT_DIRS);
    const DWORD error = GetLastError();
    if (!library && !is_path && find_on_path(wide, found)) library = load(found, BESIDE);
    if (!library) explain(name, error, why);
    return library;
}

void *dynlib_open_system(const char *name, char why[DYNLIB_WHY_BYTES])
{
    wchar_t wide[PATH_CHARS];
    HMODULE library = NULL;
    if (utf16_widen(name, wide, PATH_CHARS)) library = load(wide, LOAD_LIBRARY_SEARCH_SYSTEM32);
    if (!library) explain(name, GetLastError(), why);
    return library;
}

void *dynlib_open_by(const char *opener, const char *function, const char *name,
                     char why[DYNLIB_WHY_BYTES])
{
    snprintf(why, DYNLIB_WHY_BYTES, "'%s' of '%s', for '%s': not on Windows", function, opener,
             name);
    return NULL;
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
    static const char here;
    HMODULE module;
    if (!GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS |
                                GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT,
                            (LPCWSTR)(const void *)&here, &module))
        return false;
    const DWORD n = GetModuleFileNameW(module, wide, DYNLIB_WHY_BYTES);
    return n > 0 && n < DYNLIB_WHY_BYTES && utf16_narrow(wide, out_path, DYNLIB_WHY_BYTES);
}

void dynlib_close(void *library)
{
    if (library) FreeLibrary((HMODULE)library);
}
