/* SPDX-License-Identifier: Apache-2.0
 *
 * The measured choices of a context: read from the store once, added to, written back. Sessions keep the table that there was
 * when they were made.
 */
#include "base/log.h"
#include "plan/tuning_table.h"
#include "session/context.h"

#include <string.h>

#define FACT "choices 1"

void context_load_choices(clg_context *c)
{
    char *data, *lines;
    size_t size_bytes;
    if (c->choices_loaded) return;
    c->choices_loaded = true;
    if (!ocl_context_recall(c->ocl, FACT, &data, &size_bytes)) return;
    lines = memory_strndup(data, size_bytes);
    memory_free(data);
    if (!lines || tuning_table_add(NULL, lines, &c->choices) != CLG_OK)
        log_write(CLG_LOG_WARNING, "the measured choices of kernels cannot be used: %s",
                  error_text());
    memory_free(lines);
}

static clg_status table_text(clg_context *c, char **out_text)
{
    strbuf t;
    strbuf_init(&t, 0);
    tuning_table_text(c->choices, &t);
    return strbuf_take(&t, out_text);
}

clg_status context_add_choices(clg_context *c, const char *lines)
{
    tuning_table *added;
    char *all;
    mutex_lock(&c->registry_lock);
    context_load_choices(c);
    clg_status status = tuning_table_add(c->choices, lines, &added);
    if (status == CLG_OK) {
        tuning_table_free(c->choices);
        c->choices = added;
        status = table_text(c, &all);
    }
    if (status == CLG_OK) {
        ocl_context_remember(c->ocl, FACT, "measured choices of kernels", all, strlen(all));
        memory_free(all);
    }
    mutex_unlock(&c->registry_lock);
    return status;
}

clg_status context_choices_text(clg_context *c, char **out_text)
{
    mutex_lock(&c->registry_lock);
    context_load_choices(c);
    const clg_status status = table_text(c, out_text);
    mutex_unlock(&c->registry_lock);
    return status;
}
