/* SPDX-License-Identifier: Apache-2.0
 *
 * Options of a session, from a table of names, legal values and parsers.
 */
#include "ep_options.h"

#include "base/memory.h"

#include <string.h>
#include <strings.h>

/* ONNX Runtime puts this before each option's name; it lowers the provider's name. */
static const char prefix[] = "ep." EP_NAME ".";

/* Returns the index of a word in a list separated by '|', SIZE_MAX if it is none of them. */
static size_t word_index(const char *words, const char *word)
{
    size_t length = strlen(word), index = 0;
    while (true) {
        size_t n = strcspn(words, "|");
        if (n == length && strncasecmp(words, word, n) == 0) return index;
        if (words[n] == '\0') return SIZE_MAX;
        words += n + 1;
        index++;
    }
}

static clg_status copy_text(const char *value, char **out_text)
{
    memory_free(*out_text);
    *out_text = memory_strdup(value);
    return *out_text != NULL ? CLG_OK : CLG_ERROR_OUT_OF_HOST_MEMORY;
}

static clg_status set_precision(ep_options *o, const char *value, size_t index)
{
    static const clg_precision values[] = {CLG_PRECISION_FP32, CLG_PRECISION_FP16,
                                           CLG_PRECISION_AUTO};
    (void)value;
    o->precision = values[index];
    return CLG_OK;
}

static clg_status set_kernels(ep_options *o, const char *value, size_t index)
{
    static const clg_kernel_class values[] = {CLG_KERNELS_AUTO, CLG_KERNELS_SIMD, CLG_KERNELS_SIMT};
    (void)value;
    o->kernels = values[index];
    return CLG_OK;
}

static clg_status set_strict(ep_options *o, const char *value, size_t index)
{
    (void)value;
    o->strict = index % 2 == 1;
    return CLG_OK;
}

static clg_status set_cpu_threads(ep_options *o, const char *value, size_t index)
{
    (void)index;
    uint32_t n = 0;
    for (const char *c = value; *c != '\0'; c++) {
        if (*c < '0' || *c > '9' || n > 9999)
            return error_set(CLG_ERROR_INVALID_ARGUMENT,
                             "option cpu_threads is '%s', which is not a number from 0 (all) to "
                             "99999",
                             value);
        n = n * 10 + (uint32_t)(*c - '0');
    }
    if (*value == '\0') return error_set(CLG_ERROR_INVALID_ARGUMENT, "option cpu_threads is empty");
    o->cpu_threads = n;
    return CLG_OK;
}

static clg_status set_cache_dir(ep_options *o, const char *value, size_t index)
{
    (void)index;
    return copy_text(value, &o->cache_dir);
}

static clg_status set_device(ep_options *o, const char *value, size_t index)
{
    (void)index;
    return copy_text(value, &o->device);
}

static const struct option_row {
    const char *name;
    const char *values; /* legal ones, separated by '|'; NULL: any text */
    clg_status (*set)(ep_options *options, const char *value, size_t index); /* of the value */
} option_rows[] = {
    {"precision", "fp32|fp16|auto", set_precision},
    {"kernels", "auto|simd|simt", set_kernels},
    {"cache_dir", NULL, set_cache_dir},
    {"strict", "0|1|false|true", set_strict},
    {"cpu_threads", NULL, set_cpu_threads},
    {"device", NULL, set_device},
};
#define N_OPTIONS (sizeof option_rows / sizeof *option_rows)

static clg_status set_option(ep_options *options, const char *name, const char *value)
{
    for (size_t i = 0; i < N_OPTIONS; i++) {
        const struct option_row *row = &option_rows[i];
        if (strcmp(row->name, name) != 0) continue;
        size_t index = row->values != NULL ? word_index(row->values, value) : 0;
        if (index == SIZE_MAX)
            return error_set(CLG_ERROR_INVALID_ARGUMENT, "option %s is '%s'; its values are %s",
                             name, value, row->values);
        return row->set(options, value, index);
    }
    return error_set(CLG_ERROR_INVALID_ARGUMENT,
                     "no option '%s'; the options are precision (fp32, fp16, auto), kernels (auto, "
                     "simd, simt), cache_dir, strict (0, 1), cpu_threads, device",
                     name);
}

clg_status ep_options_read(const ep_host *host, const OrtSessionOptions *session_options,
                           ep_options *out_options)
{
    *out_options = (ep_options){0};
    OrtKeyValuePairs *pairs = NULL;
    EP_TRY_ORT(host, host->api->GetSessionOptionsConfigEntries(session_options, &pairs));
    const char *const *keys = NULL, *const *values = NULL;
    size_t n = 0;
    host->api->GetKeyValuePairs(pairs, &keys, &values, &n);
    clg_status status = CLG_OK;
    for (size_t i = 0; i < n && status == CLG_OK; i++)
        if (strncasecmp(keys[i], prefix, sizeof prefix - 1) == 0)
            status = set_option(out_options, keys[i] + sizeof prefix - 1, values[i]);
    host->api->ReleaseKeyValuePairs(pairs);
    if (status != CLG_OK) ep_options_deinit(out_options);
    return status;
}

void ep_options_deinit(ep_options *options)
{
    memory_free(options->device);
    memory_free(options->cache_dir);
    *options = (ep_options){0};
}
