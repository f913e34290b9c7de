/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements the compile helper's worker: reads requests, executes them, writes replies.
 */
#include "helper/worker.h"

#include "base/memory.h"
#include "helper/channel.h"
#include "ocl/helper/helper_execute.h"

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

int worker_run(int channel)
{
    helper_device device = {0};
    helper_hello hello;
    helper_reply ready = {.outcome = HELPER_DONE};
    char *greeting;
    size_t n_bytes;
    if (!message_read(channel, &greeting, &n_bytes)) return 1;
    if (!helper_read_hello(greeting, n_bytes, &hello) ||
        helper_open_device(&hello, &device) != CLG_OK)
        ready = (helper_reply){.outcome = HELPER_UNABLE, .text = memory_strdup(error_text())};
    memory_free(greeting);
    const bool opened = message_write_reply(channel, &ready) && device.context;
    while (opened && answer_next(channel, &device)) continue;
    return 0; /* The system frees everything; drivers have been seen to hang in their clean-up. */
}
