/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies tensors of strings.
 */
#include "ep_strings.h"

#include "base/checked.h"
#include "base/memory.h"

#include <string.h>

/* Puts the strings, one after another in `text` from the offsets on, into one block: pointers, then
 * the strings with NUL at their ends. */
static clg_status pack_strings(const char *text, size_t size_bytes, const size_t *offsets, size_t n,
                               char ***out_strings)
{
    size_t table_bytes = 0, block_bytes = 0;
    if (!checked_mul_size(n, sizeof(char *), &table_bytes) ||
        !checked_add_size(table_bytes, size_bytes, &block_bytes) ||
        !checked_add_size(block_bytes, n, &block_bytes))
        return error_set(CLG_ERROR_INVALID_ARGUMENT, "a tensor of strings is too large");
    char **strings = memory_zalloc(block_bytes, 1);
    if (strings == NULL) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    char *to = (char *)strings + table_bytes;
    for (size_t i = 0; i < n; i++) {
        size_t length = (i + 1 < n ? offsets[i + 1] : size_bytes) - offsets[i];
        if (length > 0 && memchr(text + offsets[i], '\0', length) != NULL) {
            memory_free(strings);
            return error_set(CLG_ERROR_INVALID_ARGUMENT,
                             "string %zu of an input contains NUL, which clgraph's strings cannot",
                             i);
        }
        strings[i] = to;
        memcpy(to, text + offsets[i], length);
        to += length + 1;
    }
    *out_strings = strings;
    return CLG_OK;
}

clg_status ep_strings_read(const ep_host *host, const OrtValue *tensor, size_t n, size_t rank,
                           const int64_t *dims, clg_value **out_value)
{
    size_t size_bytes = 0;
    char **strings = NULL;
    *out_value = NULL;
    EP_TRY_ORT(host, host->api->GetStringTensorDataLength(tensor, &size_bytes));
    size_t *offsets = memory_zalloc(n + 1, sizeof *offsets);
    char *text = memory_zalloc(size_bytes + 1, 1);
    clg_status status = offsets != NULL && text != NULL ? CLG_OK : CLG_ERROR_OUT_OF_HOST_MEMORY;
    if (status == CLG_OK && n > 0)
        status = ep_from_ort(
            host, host->api->GetStringTensorContent(tensor, text, size_bytes, offsets, n));
    if (status == CLG_OK) status = pack_strings(text, size_bytes, offsets, n, &strings);
    if (status == CLG_OK) {
        status = ep_from_clg(clg_value_wrap(CLG_STRING, rank, dims, strings, n * sizeof *strings,
                                            memory_free, strings, out_value));
        if (status != CLG_OK) memory_free(strings);
    }
    memory_free(text);
    memory_free(offsets);
    return status;
}

clg_status ep_strings_write(const ep_host *host, const clg_value *value, OrtValue *tensor)
{
    char *const *strings = clg_value_data(value);
    size_t n = (size_t)clg_value_n_elements(value);
    for (size_t i = 0; i < n; i++)
        EP_TRY_ORT(host, host->api->FillStringTensorElement(
                             tensor, strings[i] != NULL ? strings[i] : "", i));
    return CLG_OK;
}
