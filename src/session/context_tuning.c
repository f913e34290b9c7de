/* SPDX-License-Identifier: Apache-2.0
 *
 * Loads a context's tuning table (implementations measured to be fastest) from the cache once, adds
 * entries, and stores it again. A session keeps the table that was current when it was created.
 */
#include "base/log.h"
#include "plan/tuning_table.h"
#include "session/context.h"

#include <string.h>

#define FACT "choices 1" /* name and format version of the cache entry */

void context_load_choices(device_context *context)
{
    char *data, *lines;
    size_t size_bytes;
    if (context->choices_loaded) return;
    context->choices_loaded = true;
    if (!ocl_context_recall(context->ocl, FACT, &data, &size_bytes)) return;
    lines = memory_strndup(data, size_bytes);
    memory_free(data);
    if (!lines || tuning_table_add(NULL, lines, &context->choices) != CLG_OK)
        log_write(CLG_LOG_WARNING, "the measured choices of kernels cannot be used: %s",
                  error_text());
    memory_free(lines);
}

static clg_status table_text(device_context *context, char **out_text)
{
    strbuf t;
    strbuf_init(&t, 0);
    tuning_table_text(context->choices, &t);
    return strbuf_take(&t, out_text);
}

clg_status context_add_choices(device_context *context, const char *lines)
{
    tuning_table *added;
    char *all;
    mutex_lock(&context->registry_lock);
    context_load_choices(context);
    clg_status status = tuning_table_add(context->choices, lines, &added);
    if (status == CLG_OK) {
        tuning_table_free(context->choices);
        context->choices = added;
        status = table_text(context, &all);
    }
    if (status == CLG_OK) {
        ocl_context_remember(context->ocl, FACT, "measured choices of kernels", all, strlen(all));
        memory_free(all);
    }
    mutex_unlock(&context->registry_lock);
    return status;
}

clg_status context_choices_text(device_context *context, char **out_text)
{
    mutex_lock(&context->registry_lock);
    context_load_choices(context);
    const clg_status status = table_text(context, out_text);
    mutex_unlock(&context->registry_lock);
    return status;
}
