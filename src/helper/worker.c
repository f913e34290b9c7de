/* SPDX-License-Identifier: Apache-2.0
 *
 * The compile helper's worker: reads requests, has them executed, writes replies.
 */
#include "helper/worker.h"

#include "base/memory.h"
#include "ocl/helper_execute.h"

#include <errno.h>
#include <unistd.h>

/* ---- messages ------------------------------------------------------------------------------------------ */

static bool read_all(int fd, void *data, size_t n_bytes)
{
    char *at = data;
    while (n_bytes > 0) {
        const ssize_t n = read(fd, at, n_bytes);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        at += n;
        n_bytes -= (size_t)n;
    }
    return true;
}

bool message_read(int fd, char **out_data, size_t *out_n_bytes)
{
    uint32_t n_bytes;
    *out_data = NULL;
    if (!read_all(fd, &n_bytes, sizeof n_bytes) || n_bytes > HELPER_MESSAGE_MAX_BYTES) return false;
    char *data = memory_alloc((size_t)n_bytes + 1);
    if (!data) return false;
    if (!read_all(fd, data, n_bytes)) {
        memory_free(data);
        return false;
    }
    *out_data = data;
    *out_n_bytes = n_bytes;
    return true;
}

static bool write_all(int fd, const void *data, size_t n_bytes)
{
    const char *at = data;
    while (n_bytes > 0) {
        const ssize_t n = write(fd, at, n_bytes);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        at += n;
        n_bytes -= (size_t)n;
    }
    return true;
}

bool message_pass_on(int fd, const char *data, size_t n_bytes)
{
    const uint32_t size = (uint32_t)n_bytes;
    return write_all(fd, &size, sizeof size) && write_all(fd, data, n_bytes);
}

bool message_write_reply(int fd, helper_reply *reply)
{
    text t;
    text_init(&t, HELPER_MESSAGE_MAX_BYTES);
    helper_write_reply(&t, reply);
    const bool sent = t.status == CLG_OK && write_all(fd, t.data, t.size_bytes);
    text_deinit(&t);
    helper_reply_deinit(reply);
    return sent;
}

/* ---- work ---------------------------------------------------------------------------------------------- */

static bool answer_next(int channel, helper_device *device)
{
    helper_request request;
    helper_reply reply = {.outcome = HELPER_UNABLE};
    char *data;
    size_t n_bytes;
    if (!message_read(channel, &data, &n_bytes)) return false;
    if (helper_read_request(data, n_bytes, &request)) {
        helper_execute(device, &request, &reply);
        memory_free(request.args.items);
    }
    memory_free(data);
    return message_write_reply(channel, &reply);
}

int worker_run(int channel, const helper_hello *hello)
{
    helper_device device;
    helper_reply ready = {.outcome = HELPER_DONE};
    if (helper_open_device(hello, &device) != CLG_OK)
        ready = (helper_reply){.outcome = HELPER_UNABLE, .text = memory_strdup(error_text())};
    const bool opened = message_write_reply(channel, &ready) && device.context;
    while (opened && answer_next(channel, &device)) continue;
    return 0; /* the system takes everything back; drivers have been seen to hang in their clean-up */
}
