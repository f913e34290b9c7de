/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements channels on POSIX systems, as sockets.
 */
#include "helper/channel.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

static void close_from(int first)
{
#ifdef SYS_close_range
    if (syscall(SYS_close_range, (unsigned)first, ~0u, 0u) == 0) return;
#endif
    const long limit = sysconf(_SC_OPEN_MAX);
    for (int fd = first; fd < (limit > 0 && limit < 65536 ? limit : 65536); fd++) (void)close(fd);
}

int channel_open_parent(void)
{
    close_from(STDERR_FILENO + 1);
    (void)signal(SIGPIPE, SIG_IGN);
    return STDIN_FILENO;
}

bool channel_is_readable(int channel, int timeout_ms)
{
    struct pollfd one = {.fd = channel, .events = POLLIN};
    return poll(&one, 1, timeout_ms) > 0;
}

int64_t channel_read(int channel, void *data, size_t n_bytes)
{
    ssize_t n;
    do n = read(channel, data, n_bytes);
    while (n < 0 && errno == EINTR);
    return n;
}

int64_t channel_write(int channel, const void *data, size_t n_bytes)
{
    ssize_t n;
    do n = write(channel, data, n_bytes);
    while (n < 0 && errno == EINTR);
    return n;
}
