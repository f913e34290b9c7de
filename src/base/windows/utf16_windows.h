/* SPDX-License-Identifier: Apache-2.0
 *
 * Converts between UTF-8 and Windows' UTF-16. Malformed text is rejected, never replaced.
 */
#ifndef CLG_BASE_UTF16_WINDOWS_H
#define CLG_BASE_UTF16_WINDOWS_H

#include <stdbool.h>
#include <windows.h>

/* Converts UTF-8 to UTF-16, including the NUL. Returns false, with the reason in GetLastError, if
 * text is not UTF-8 or needs more than n_wide elements. */
static inline bool utf16_widen(const char *text, wchar_t *wide, int n_wide)
{
    return MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, text, -1, wide, n_wide) > 0;
}

/* Converts UTF-16 to UTF-8, including the NUL; fails as utf16_widen. */
static inline bool utf16_narrow(const wchar_t *wide, char *text, int n_bytes)
{
    return WideCharToMultiByte(CP_UTF8, WC_ERR_INVALID_CHARS, wide, -1, text, n_bytes, NULL, NULL) >
           0;
}

#endif
