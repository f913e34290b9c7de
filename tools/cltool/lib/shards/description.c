/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements description.h. A table lists the options on which results depend.
 */
#include "description.h"

#include "digest.h"
#include "host.h"
#include "output.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef enum option_form { FORM_TEXT, FORM_LIST, FORM_FLAG, FORM_SIZE, FORM_REAL } option_form;

static const struct described_option {
    const char *name;
    option_form form;
    size_t offset;
} described[] = {
    {"--output", FORM_LIST, offsetof(options, outputs)},
    {"--batch", FORM_TEXT, offsetof(options, batch)},
    {"--dim", FORM_LIST, offsetof(options, dims)},
    {"--shape", FORM_LIST, offsetof(options, shapes)},
    {"--fill", FORM_LIST, offsetof(options, fills)},
    {"--header", FORM_TEXT, offsetof(options, header)},
    {"--cast", FORM_FLAG, offsetof(options, cast)},
    {"--mean", FORM_TEXT, offsetof(options, mean)},
    {"--std", FORM_TEXT, offsetof(options, std)},
    {"--scale", FORM_REAL, offsetof(options, scale)},
    {"--preset", FORM_TEXT, offsetof(options, preset)},
    {"--resize", FORM_TEXT, offsetof(options, resize)},
    {"--crop", FORM_TEXT, offsetof(options, crop)},
    {"--pad", FORM_TEXT, offsetof(options, pad)},
    {"--filter", FORM_TEXT, offsetof(options, filter)},
    {"--max-pixels", FORM_SIZE, offsetof(options, max_pixels)},
    {"--channels", FORM_TEXT, offsetof(options, channels)},
    {"--layout", FORM_TEXT, offsetof(options, layout)},
    {"--precision", FORM_TEXT, offsetof(options, precision)},
    {"--split", FORM_TEXT, offsetof(options, split)},
    {"--kernels", FORM_TEXT, offsetof(options, kernels)},
    {"--keep-fp32", FORM_LIST, offsetof(options, keep_fp32)},
    {"--disable-pass", FORM_LIST, offsetof(options, disabled_passes)},
    {"--prefer", FORM_LIST, offsetof(options, preferred_impls)},
    {"--no-blas", FORM_FLAG, offsetof(options, no_blas)},
};
#define N_DESCRIBED (sizeof described / sizeof described[0])

/* ---- texts ----------------------------------------------------------------------------------- */

/* Adds a text, which is freed, to what the name says already. */
static void add(json_t *d, const char *name, char *text)
{
    const char *before = json_string_value(json_object_get(d, name));
    char *all = before ? must_printf("%s, %s", before, text) : must_copy(text);
    (void)json_object_set_new(d, name, output_json_text(all));
    free(all);
    free(text);
}

/* Returns what a file is described by, "NAME (N bytes, time T)"; free(). */
static char *file_text(const char *name, const char *path)
{
    uint64_t size_bytes = 0;
    int64_t modified = 0;
    if (host_stat(path, &size_bytes, &modified) != 0) return must_copy(name);
    return must_printf("%s (%" PRIu64 " bytes, time %" PRId64 ")", name, size_bytes, modified);
}

/* Returns the path in "[NAME=]FILE". */
static const char *path_of(const char *item)
{
    const char *equals = host_exists(item) ? NULL : strchr(item, '=');
    return equals ? equals + 1 : item;
}

/* Returns "INPUT: N files, HASH" of the names, sizes and times of images; free(). Files of another
 * kind in a folder do not matter. */
static char *images_text(const input_item *item)
{
    digest d = digest_start();
    for (size_t i = 0; i < item->n_images; i++) {
        char *text = file_text(item->images[i], item->images[i]);
        digest_add(&d, text, strlen(text) + 1);
        free(text);
    }
    return must_printf("%s: %zu files, %016" PRIx64, item->port->name, item->n_images, d.state);
}

static void add_option(json_t *d, const options *o, const struct described_option *row)
{
    const void *at = (const char *)o + row->offset;
    if (row->form == FORM_TEXT && *(const char *const *)at)
        add(d, row->name, must_copy(*(const char *const *)at));
    if (row->form == FORM_FLAG && *(const bool *)at) add(d, row->name, must_copy("given"));
    if (row->form == FORM_SIZE && *(const size_t *)at > 0)
        add(d, row->name, must_printf("%zu", *(const size_t *)at));
    if (row->form == FORM_REAL && *(const double *)at >= 0)
        add(d, row->name, must_printf("%.17g", *(const double *)at));
    if (row->form != FORM_LIST) return;
    const text_list *list = at;
    for (size_t i = 0; i < list->count; i++) add(d, row->name, must_copy(list->items[i]));
}

json_t *description_make(const options *o, const char *model_path, const input_set *inputs,
                         const shard *s, int64_t n_rows)
{
    json_t *d = json_object();
    add(d, "model", file_text(model_path, model_path));
    for (size_t i = 0; i < o->inputs.count; i++) {
        const char *path = path_of(o->inputs.items[i]);
        if (!host_is_folder(path)) add(d, "--input", file_text(o->inputs.items[i], path));
    }
    for (size_t i = 0; i < inputs->count; i++) {
        if (inputs->items[i].n_images > 0) add(d, "list of images", images_text(&inputs->items[i]));
    }
    add(d, "number of rows", must_printf("%" PRId64, n_rows));
    for (size_t i = 0; i < N_DESCRIBED; i++) add_option(d, o, &described[i]);
    add(d, "division of rows",
        s->is_rank ? must_printf("%zu ranks", s->n_parts)
                   : must_printf("--shard %zu/%zu", s->part + 1, s->n_parts));
    add(d, "version of clgraph", must_copy(clg_version()));
    return d;
}

/* ---- comparison ------------------------------------------------------------------------------ */

void description_key(const json_t *description, char out_key[DESCRIPTION_KEY_BYTES])
{
    digest d = digest_start();
    char *text = json_dumps(description, JSON_COMPACT | JSON_SORT_KEYS);
    if (text) digest_add(&d, text, strlen(text));
    free(text);
    (void)snprintf(out_key, DESCRIPTION_KEY_BYTES, "%016" PRIx64, d.state);
}

/* Returns the first name of a whose text in b is another. */
static const char *first_difference(json_t *a, const json_t *b)
{
    const char *name;
    json_t *value;
    json_object_foreach(a, name, value)
    {
        if (!json_equal(value, json_object_get(b, name))) return name;
    }
    return NULL;
}

const char *description_difference(const json_t *a, const json_t *b, const char **out_a,
                                   const char **out_b)
{
    const char *name = first_difference((json_t *)a, b);
    if (!name) name = first_difference((json_t *)b, a);
    *out_a = name ? json_string_value(json_object_get(a, name)) : NULL;
    *out_b = name ? json_string_value(json_object_get(b, name)) : NULL;
    return name;
}

static bool is_newer(const char *path, int64_t than, const char **out_newer)
{
    uint64_t size_bytes;
    int64_t modified;
    *out_newer = path;
    return host_stat(path, &size_bytes, &modified) == 0 && modified > than;
}

bool description_is_newer(const options *o, const char *model_path, const input_set *inputs,
                          const char *file, const char **out_newer)
{
    uint64_t size_bytes;
    int64_t than;
    if (host_stat(file, &size_bytes, &than) != 0) return false;
    if (is_newer(model_path, than, out_newer)) return true;
    for (size_t i = 0; i < o->inputs.count; i++) {
        const char *path = path_of(o->inputs.items[i]);
        if (!host_is_folder(path) && is_newer(path, than, out_newer)) return true;
    }
    for (size_t i = 0; i < inputs->count; i++) {
        for (size_t j = 0; j < inputs->items[i].n_images; j++) {
            if (is_newer(inputs->items[i].images[j], than, out_newer)) return true;
        }
    }
    return false;
}
