/* SPDX-License-Identifier: Apache-2.0
 *
 * UTF-16 text for Windows, for the files *_windows.c. Malformed text is rejected, never replaced.
 */
#ifndef CLG_BASE_UTF16_WINDOWS_H
#define CLG_BASE_UTF16_WINDOWS_H

#include <stdbool.h>
#include <windows.h>

/* Converts UTF-8 to UTF-16, with the NUL. False, with GetLastError, when it is not UTF-8 or needs
 * more than n_wide. */
static inline bool utf16_widen(const char *text, wchar_t *wide, int n_wide)
{
    return MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, text, -1, wide, n_wide) > 0;
}

/* Converts UTF-16 to UTF-8, with the NUL; false, with GetLastError, as utf16_widen. */
static inline bool utf16_narrow(const wchar_t *wide, char *text, int n_bytes)
{
    return WideCharToMultiByte(CP_UTF8, WC_ERR_INVALID_CHARS, wide, -1, text, n_bytes, NULL, NULL) >
           0;
}

#endif
