/* SPDX-License-Identifier: Apache-2.0
 *
 * Serializes and parses the messages between the library and its compile helper. Integers are in
 * native byte order, since both processes are on one machine.
 */
#include "ocl/helper/helper_message.h"

#include "base/memory.h"

#include <string.h>

#define MAX_ARGS 4096

static void put(strbuf *t, const void *data, size_t n_bytes)
{
    strbuf_append_bytes(t, data, n_bytes);
}

static void put_u64(strbuf *t, uint64_t value) { put(t, &value, sizeof value); }

/* Writes a byte count, the bytes and a NUL, so that the reader can use strings in place. data may
 * be NULL: no bytes. */
static void put_bytes(strbuf *t, const void *data, size_t n_bytes)
{
    put_u64(t, n_bytes);
    if (n_bytes > 0) put(t, data, n_bytes);
    put(t, "", 1);
}

static void put_string(strbuf *t, const char *string)
{
    put_bytes(t, string, string ? strlen(string) : 0);
}

/* Begins a message: reserves the bytes of its size, which `end` fills in, and returns their
 * position. */
static size_t begin(strbuf *t)
{
    const size_t at = t->size_bytes;
    const uint32_t none = 0;
    put(t, &none, sizeof none);
    return at;
}

static void end(strbuf *t, size_t at)
{
    if (t->status != CLG_OK) return;
    const uint32_t n_bytes = (uint32_t)(t->size_bytes - at - sizeof(uint32_t));
    memcpy(t->data + at, &n_bytes, sizeof n_bytes);
}

void helper_write_hello(strbuf *t, const helper_hello *hello)
{
    const size_t at = begin(t);
    put_string(t, hello->version);
    put_u64(t, hello->device_index);
    put_u64(t, hello->identity.low);
    put_u64(t, hello->identity.high);
    put_u64(t, hello->limit_s);
    put_u64(t, hello->max_memory_bytes);
    end(t, at);
}

static void put_arg(strbuf *t, const kernel_args *args, const kernel_arg *arg)
{
    const bool has_bytes = arg->kind == KERNEL_ARG_VALUE || arg->has_content;
    put_u64(t, arg->kind);
    put_u64(t, arg->size_bytes);
    put_u64(t, arg->has_content);
    put_u64(t, (uint64_t)(uintptr_t)arg->buffer);
    put_bytes(t, has_bytes ? args->bytes + arg->at : NULL, has_bytes ? arg->size_bytes : 0);
}

static void put_float(strbuf *t, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_u64(t, bits);
}

static void put_gemm(strbuf *t, const ocl_gemm *g)
{
    const int64_t sizes[] = {g->m,        g->n,        g->k,        g->batch,    g->lda,
                             g->ldb,      g->ldc,      g->stride_a, g->stride_b, g->stride_c,
                             g->offset_a, g->offset_b, g->offset_c};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) put_u64(t, (uint64_t)sizes[i]);
    put_u64(t, g->trans_a);
    put_u64(t, g->trans_b);
    put_float(t, g->alpha);
    put_float(t, g->beta);
}

void helper_write_request(strbuf *t, const helper_request *request)
{
    const helper_launch *l = &request->launch;
    const size_t at = begin(t);
    put_u64(t, request->n_limits);
    put_u64(t, request->quirks);
    put_string(t, request->name);
    put_string(t, request->entry);
    put_bytes(t, request->source, request->source_bytes);
    put_u64(t, request->baseline);
    put_u64(t, request->has_launch);
    put_u64(t, l->n_dims);
    put_u64(t, l->has_local);
    for (int i = 0; i < 3; i++) put_u64(t, l->global[i]);
    for (int i = 0; i < 3; i++) put_u64(t, l->local[i]);
    for (int i = 0; i < 3; i++) put_u64(t, l->offset[i]);
    put_u64(t, (uint64_t)(int64_t)request->content_arg);
    put_u64(t, request->wants_binary);
    put_u64(t, request->has_gemm);
    put_gemm(t, &request->gemm);
    put_string(t, request->blas);
    put_u64(t, request->args.count);
    for (size_t i = 0; i < request->args.count; i++)
        put_arg(t, &request->args, &request->args.items[i]);
    end(t, at);
}

void helper_write_reply(strbuf *t, const helper_reply *reply)
{
    const size_t at = begin(t);
    put_u64(t, reply->outcome);
    put_u64(t, (uint64_t)(int64_t)reply->status);
    put_u64(t, (uint64_t)(int64_t)reply->signal);
    put_string(t, reply->text);
    put_bytes(t, reply->binary, reply->binary_bytes);
    put_bytes(t, reply->content, reply->content_bytes);
    end(t, at);
}

typedef struct cursor {
    const char *begin;
    size_t at, n_bytes;
    bool damaged;
} cursor;

static uint64_t get_u64(cursor *c)
{
    uint64_t value = 0;
    if (c->damaged || c->n_bytes - c->at < sizeof value) {
        c->damaged = true;
        return 0;
    }
    memcpy(&value, c->begin + c->at, sizeof value);
    c->at += sizeof value;
    return value;
}

static bool get_flag(cursor *c) { return get_u64(c) != 0; }

static int32_t get_i32(cursor *c) { return (int32_t)(int64_t)get_u64(c); }

static int64_t get_i64(cursor *c) { return (int64_t)get_u64(c); }

static float get_float(cursor *c)
{
    const uint32_t bits = (uint32_t)get_u64(c);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Returns a pointer to bytes inside the message, which are followed by a NUL; "" if the message is
 * damaged. */
static const char *get_bytes(cursor *c, size_t *out_n_bytes)
{
    const uint64_t n_bytes = get_u64(c);
    *out_n_bytes = 0;
    if (c->damaged || n_bytes >= c->n_bytes - c->at || c->begin[c->at + n_bytes] != '\0') {
        c->damaged = true;
        return "";
    }
    const char *data = c->begin + c->at;
    *out_n_bytes = (size_t)n_bytes;
    c->at += (size_t)n_bytes + 1;
    return data;
}

static const char *get_string(cursor *c)
{
    size_t n_bytes;
    const char *string = get_bytes(c, &n_bytes);
    if (!c->damaged && strlen(string) != n_bytes) c->damaged = true;
    return string;
}

static bool is_whole(const cursor *c) { return !c->damaged && c->at == c->n_bytes; }

bool helper_read_hello(const char *data, size_t n_bytes, helper_hello *out_hello)
{
    cursor c = {.begin = data, .n_bytes = n_bytes};
    *out_hello = (helper_hello){.version = get_string(&c)};
    out_hello->device_index = get_u64(&c);
    out_hello->identity.low = get_u64(&c);
    out_hello->identity.high = get_u64(&c);
    out_hello->limit_s = (uint32_t)get_u64(&c);
    out_hello->max_memory_bytes = get_u64(&c);
    return is_whole(&c);
}

static void get_arg(cursor *c, kernel_args *args, kernel_arg *out_arg)
{
    size_t n_bytes;
    *out_arg = (kernel_arg){.kind = (kernel_arg_kind)get_u64(c)};
    out_arg->size_bytes = (size_t)get_u64(c);
    out_arg->has_content = get_flag(c);
    out_arg->buffer = (const void *)(uintptr_t)get_u64(c); /* an identity, never dereferenced */
    const char *bytes = get_bytes(c, &n_bytes);
    const bool has_bytes = out_arg->kind == KERNEL_ARG_VALUE || out_arg->has_content;
    if (out_arg->kind > KERNEL_ARG_LOCAL || (has_bytes && n_bytes != out_arg->size_bytes))
        c->damaged = true;
    if (!c->damaged) out_arg->at = (size_t)(bytes - args->bytes);
}

static void get_gemm(cursor *c, ocl_gemm *out)
{
    int64_t *const sizes[] = {&out->m,        &out->n,        &out->k,        &out->batch,
                              &out->lda,      &out->ldb,      &out->ldc,      &out->stride_a,
                              &out->stride_b, &out->stride_c, &out->offset_a, &out->offset_b,
                              &out->offset_c};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) *sizes[i] = get_i64(c);
    out->trans_a = get_flag(c);
    out->trans_b = get_flag(c);
    out->alpha = get_float(c);
    out->beta = get_float(c);
}

uint32_t helper_read_n_limits(const char *data, size_t n_bytes)
{
    cursor c = {.begin = data, .n_bytes = n_bytes};
    const uint64_t n = get_u64(&c);
    return n > 0 && n <= HELPER_MAX_LIMITS ? (uint32_t)n : 1;
}

bool helper_read_request(const char *data, size_t n_bytes, helper_request *out_request)
{
    cursor c = {.begin = data, .n_bytes = n_bytes};
    helper_request *r = out_request;
    helper_launch *l = &r->launch;
    *r = (helper_request){.n_limits = (uint32_t)get_u64(&c)};
    r->quirks = (uint32_t)get_u64(&c);
    r->name = get_string(&c);
    r->entry = get_string(&c);
    r->source = get_bytes(&c, &r->source_bytes);
    r->baseline = get_flag(&c);
    r->has_launch = get_flag(&c);
    l->n_dims = (uint32_t)get_u64(&c);
    l->has_local = get_flag(&c);
    for (int i = 0; i < 3; i++) l->global[i] = get_u64(&c);
    for (int i = 0; i < 3; i++) l->local[i] = get_u64(&c);
    for (int i = 0; i < 3; i++) l->offset[i] = get_u64(&c);
    r->content_arg = get_i32(&c);
    r->wants_binary = get_flag(&c);
    r->has_gemm = get_flag(&c);
    get_gemm(&c, &r->gemm);
    r->blas = get_string(&c);
    const uint64_t n_args = get_u64(&c);
    if (c.damaged || n_args > MAX_ARGS || l->n_dims > 3) return false;
    r->args.bytes = (char *)(uintptr_t)data; /* read only */
    r->args.count = (size_t)n_args;
    r->args.items = memory_zalloc((size_t)n_args + 1, sizeof *r->args.items);
    for (size_t i = 0; r->args.items && i < r->args.count; i++)
        get_arg(&c, &r->args, &r->args.items[i]);
    if (r->args.items && is_whole(&c)) return true;
    memory_free(r->args.items);
    return false;
}

bool helper_read_message(const char *message, size_t n_bytes, helper_request *out_request)
{
    const size_t head = sizeof(uint32_t);
    return n_bytes >= head && helper_read_request(message + head, n_bytes - head, out_request);
}

static clg_status copy_bytes(const char *data, size_t n_bytes, char **out_copy)
{
    *out_copy = NULL;
    if (n_bytes == 0) return CLG_OK;
    *out_copy = memory_alloc(n_bytes + 1);
    if (!*out_copy) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    memcpy(*out_copy, data, n_bytes);
    (*out_copy)[n_bytes] = '\0';
    return CLG_OK;
}

clg_status helper_read_reply(const char *data, size_t n_bytes, helper_reply *out_reply)
{
    cursor c = {.begin = data, .n_bytes = n_bytes};
    helper_reply *r = out_reply;
    *r = (helper_reply){.outcome = (helper_outcome)get_u64(&c)};
    r->status = get_i32(&c);
    r->signal = get_i32(&c);
    const char *words = get_string(&c);
    const char *binary = get_bytes(&c, &r->binary_bytes);
    const char *content = get_bytes(&c, &r->content_bytes);
    if (!is_whole(&c) || r->outcome > HELPER_UNABLE)
        return error_set(CLG_ERROR_IO, "the compile helper's answer is damaged");
    clg_status status = copy_bytes(words, strlen(words), &r->text);
    if (status == CLG_OK) status = copy_bytes(binary, r->binary_bytes, &r->binary);
    if (status == CLG_OK) status = copy_bytes(content, r->content_bytes, &r->content);
    if (status != CLG_OK) helper_reply_deinit(r);
    return status;
}

void helper_reply_deinit(helper_reply *reply)
{
    memory_free(reply->text);
    memory_free(reply->binary);
    memory_free(reply->content);
    *reply = (helper_reply){0};
}
