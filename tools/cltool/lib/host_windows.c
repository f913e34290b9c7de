/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements host.h on Windows: calls the system with UTF-16, and takes and returns UTF-8.
 */
#include "host.h"

#include "failure.h"

#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>
#include <windows.h>

#include <psapi.h>
#include <shellapi.h>

#define PATH_CHARS 4096
#define CLOSING_MS 4000 /* Windows ends a program 5 s after its window was closed */

/* Returns the string in UTF-8; NULL when it is not valid UTF-16. free() */
static char *narrow(const wchar_t *wide)
{
    int n = WideCharToMultiByte(CP_UTF8, WC_ERR_INVALID_CHARS, wide, -1, NULL, 0, NULL, NULL);
    if (n <= 0) return NULL;
    char *text = must_alloc((size_t)n, 1);
    (void)WideCharToMultiByte(CP_UTF8, WC_ERR_INVALID_CHARS, wide, -1, text, n, NULL, NULL);
    return text;
}

/* Converts a path for Windows; sets errno and returns false when it is not UTF-8 or too long. */
static bool widen(const char *path, wchar_t wide[PATH_CHARS])
{
    static const wchar_t front[] = L"\\\\?\\"; /* lifts the limit of MAX_PATH */
    enum { FRONT = sizeof front / sizeof *front - 1 };
    errno = EILSEQ;
    if (MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, wide, PATH_CHARS) == 0)
        return false;
    if (wcslen(wide) < MAX_PATH - 12 || wide[0] == L'\\') return true;
    wchar_t full[PATH_CHARS];
    const DWORD n = GetFullPathNameW(wide, PATH_CHARS - FRONT, full, NULL);
    errno = ENAMETOOLONG;
    if (n == 0 || n >= PATH_CHARS - FRONT) return false;
    memcpy(wide, front, FRONT * sizeof *wide);
    memcpy(wide + FRONT, full, (n + 1) * sizeof *wide);
    return true;
}

static UINT code_page_before;

static void restore_code_page(void) { (void)SetConsoleOutputCP(code_page_before); }

/* Sets the streams to binary mode, and buffers output so that a console gets whole characters. */
static void set_up_streams(void)
{
    FILE *const streams[] = {stdin, stdout, stderr};
    for (size_t i = 0; i < 3; i++) (void)_setmode(_fileno(streams[i]), _O_BINARY);
    (void)setvbuf(stdout, NULL, _IOFBF, 1 << 16);
    (void)setvbuf(stderr, NULL, _IOFBF, 1 << 12); /* flushed after each message */
    code_page_before = GetConsoleOutputCP();
    if (code_page_before != 0 && SetConsoleOutputCP(CP_UTF8)) (void)atexit(restore_code_page);
}

/* Takes the arguments from the system: those of main() are in its code page, with patterns expanded
 * to files. */
char **host_start(char **argv)
{
    int n = 0;
    wchar_t **wide = CommandLineToArgvW(GetCommandLineW(), &n);
    (void)argv;
    set_up_streams();
    if (!wide) return NULL;
    char **arguments = must_alloc((size_t)n + 1, sizeof *arguments);
    bool is_text = true;
    for (int i = 0; i < n && is_text; i++) is_text = (arguments[i] = narrow(wide[i])) != NULL;
    (void)LocalFree(wide);
    return is_text ? arguments : NULL;
}

bool host_is_terminal(FILE *stream)
{
    HANDLE console = (HANDLE)_get_osfhandle(_fileno(stream));
    DWORD mode;
    return GetConsoleMode(console, &mode) &&
           SetConsoleMode(console,
                          mode | ENABLE_PROCESSED_OUTPUT | ENABLE_VIRTUAL_TERMINAL_PROCESSING);
}

static void (*call_on_interrupt)(void);

/* Handles a console event, on a thread that Windows creates. */
static BOOL WINAPI take_event(DWORD event)
{
    const bool is_closing = event != CTRL_C_EVENT && event != CTRL_BREAK_EVENT;
    call_on_interrupt();
    if (is_closing)
        Sleep(CLOSING_MS); /* time for work to end; Windows ends the program after the return */
    return TRUE;
}

void host_watch_interrupts(void (*interrupted)(void))
{
    call_on_interrupt = interrupted;
    (void)SetConsoleCtrlHandler(take_event, TRUE);
}

void host_say(const char *text, size_t n_bytes)
{
    DWORD written;
    (void)WriteFile(GetStdHandle(STD_ERROR_HANDLE), text, (DWORD)n_bytes, &written, NULL);
}

void host_leave(bool to_stdout, const char *text, size_t n_bytes, int code)
{
    DWORD written;
    (void)WriteFile(GetStdHandle(to_stdout ? STD_OUTPUT_HANDLE : STD_ERROR_HANDLE), text,
                    (DWORD)n_bytes, &written, NULL);
    if (code_page_before != 0) restore_code_page();
    _exit(code);
}

static int last_errno(void)
{
    switch (GetLastError()) {
    case ERROR_FILE_NOT_FOUND:
    case ERROR_PATH_NOT_FOUND:
    case ERROR_INVALID_NAME: return ENOENT;
    case ERROR_ACCESS_DENIED:
    case ERROR_SHARING_VIOLATION: return EACCES;
    case ERROR_FILE_EXISTS:
    case ERROR_ALREADY_EXISTS: return EEXIST;
    case ERROR_DIRECTORY: return ENOTDIR;
    case ERROR_DISK_FULL: return ENOSPC;
    default: return EIO;
    }
}

static DWORD attributes_of(const char *path)
{
    wchar_t wide[PATH_CHARS];
    return widen(path, wide) ? GetFileAttributesW(wide) : INVALID_FILE_ATTRIBUTES;
}

void host_pause_ms(unsigned ms) { Sleep(ms); }

bool host_is_separator(char c) { return c == '/' || c == '\\'; }

bool host_exists(const char *path) { return attributes_of(path) != INVALID_FILE_ATTRIBUTES; }

bool host_is_folder(const char *path)
{
    const DWORD attributes = attributes_of(path);
    return attributes != INVALID_FILE_ATTRIBUTES && (attributes & FILE_ATTRIBUTE_DIRECTORY) != 0;
}

int host_make_folder(const char *path)
{
    wchar_t wide[PATH_CHARS];
    if (!widen(path, wide)) return errno;
    return CreateDirectoryW(wide, NULL) ? 0 : last_errno();
}

int host_stat(const char *path, uint64_t *out_size_bytes, int64_t *out_modified)
{
    wchar_t wide[PATH_CHARS];
    WIN32_FILE_ATTRIBUTE_DATA info;
    if (!widen(path, wide)) return errno;
    if (!GetFileAttributesExW(wide, GetFileExInfoStandard, &info)) return last_errno();
    const FILETIME at = info.ftLastWriteTime;
    *out_size_bytes = (uint64_t)info.nFileSizeHigh << 32 | info.nFileSizeLow;
    *out_modified = (int64_t)((uint64_t)at.dwHighDateTime << 32 | at.dwLowDateTime);
    return 0;
}

bool host_is_special(const char *path)
{
    wchar_t wide[PATH_CHARS];
    const DWORD special = FILE_ATTRIBUTE_REPARSE_POINT | FILE_ATTRIBUTE_DIRECTORY;
    if (!widen(path, wide)) return false;
    const DWORD found = GetFileAttributesW(wide);
    return found != INVALID_FILE_ATTRIBUTES && (found & special) != 0;
}

int host_rename(const char *from, const char *to)
{
    wchar_t wide[PATH_CHARS], wide_to[PATH_CHARS];
    if (!widen(from, wide) || !widen(to, wide_to)) return errno;
    return MoveFileExW(wide, wide_to, MOVEFILE_REPLACE_EXISTING) ? 0 : last_errno();
}

int host_remove(const char *path)
{
    wchar_t wide[PATH_CHARS];
    if (!widen(path, wide)) return errno;
    return DeleteFileW(wide) ? 0 : last_errno();
}

FILE *host_open(const char *path, const char *mode)
{
    wchar_t wide[PATH_CHARS], wide_mode[8];
    size_t n = 0;
    if (!widen(path, wide)) return NULL;
    for (; mode[n] && n < 6; n++) wide_mode[n] = (wchar_t)mode[n];
    if (!strchr(mode, 'b')) wide_mode[n++] = L'b';
    wide_mode[n] = L'\0';
    return _wfopen(wide, wide_mode);
}

FILE *host_temporary(void)
{
    wchar_t folder[MAX_PATH + 1], path[MAX_PATH + 1];
    const DWORD n = GetTempPathW(MAX_PATH + 1, folder);
    errno = ENOENT;
    if (n == 0 || n > MAX_PATH || GetTempFileNameW(folder, L"clt", 0, path) == 0) return NULL;
    return _wfopen(path, L"w+bTD"); /* T: temporary, D: deleted when it is closed */
}

char *host_temporary_folder(void)
{
    wchar_t folder[MAX_PATH + 1], path[MAX_PATH + 1];
    const DWORD n = GetTempPathW(MAX_PATH + 1, folder);
    errno = ENOENT;
    /* a file of a new name, which the folder then takes */
    if (n == 0 || n > MAX_PATH || GetTempFileNameW(folder, L"clt", 0, path) == 0) return NULL;
    if (!DeleteFileW(path) || !CreateDirectoryW(path, NULL)) return NULL;
    return narrow(path);
}

int host_remove_folder(const char *path)
{
    wchar_t wide[PATH_CHARS];
    if (!widen(path, wide)) return errno;
    return RemoveDirectoryW(wide) ? 0 : last_errno();
}

FILE *host_claim_stdout(void)
{
    (void)fflush(stdout);
    const int file = _dup(_fileno(stdout));
    FILE *stream =
        file >= 0 && _dup2(_fileno(stderr), _fileno(stdout)) == 0 ? _fdopen(file, "wb") : NULL;
    if (!stream && file >= 0) (void)_close(file);
    return stream;
}

bool host_may_write(const char *folder)
{
    wchar_t wide[PATH_CHARS];
    return widen(folder, wide) && _waccess(wide, 2) == 0;
}

int host_seek(FILE *stream, uint64_t offset_bytes)
{
    return _fseeki64(stream, (__int64)offset_bytes, SEEK_SET) == 0 ? 0 : errno;
}

int host_list(const char *folder, void (*visit)(void *user, const char *name), void *user)
{
    wchar_t wide[PATH_CHARS];
    char *pattern = must_printf("%s\\*", folder);
    const bool is_path = widen(pattern, wide);
    free(pattern);
    if (!is_path) return errno;
    WIN32_FIND_DATAW found;
    HANDLE search = FindFirstFileW(wide, &found);
    if (search == INVALID_HANDLE_VALUE) return last_errno();
    do {
        char *name = narrow(found.cFileName);
        if (name) visit(user, name);
        free(name);
    } while (FindNextFileW(search, &found));
    const int failed = GetLastError() == ERROR_NO_MORE_FILES ? 0 : last_errno();
    FindClose(search);
    return failed;
}

size_t host_n_processors(void)
{
    const DWORD n = GetActiveProcessorCount(ALL_PROCESSOR_GROUPS);
    return n < 1 ? 1 : n;
}

bool host_has_gpu(void)
{
    static const wchar_t *const vendors[] = {L"PCI\\VEN_10DE", L"PCI\\VEN_1002", L"PCI\\VEN_8086"};
    DISPLAY_DEVICEW adapter = {.cb = sizeof adapter};
    for (DWORD i = 0; EnumDisplayDevicesW(NULL, i, &adapter, 0); i++) {
        for (size_t k = 0; k < sizeof vendors / sizeof vendors[0]; k++) {
            if (_wcsnicmp(adapter.DeviceID, vendors[k], wcslen(vendors[k])) == 0) return true;
        }
    }
    return false;
}

double now_ms(void)
{
    LARGE_INTEGER frequency, count;
    QueryPerformanceFrequency(&frequency);
    QueryPerformanceCounter(&count);
    return (double)count.QuadPart * 1e3 / (double)frequency.QuadPart;
}

uint64_t peak_rss_bytes(void)
{
    PROCESS_MEMORY_COUNTERS counters;
    return GetProcessMemoryInfo(GetCurrentProcess(), &counters, sizeof counters)
               ? counters.PeakWorkingSetSize
               : 0;
}
