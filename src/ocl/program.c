/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements a context's table of programs: builds each source text once per context, whichever
 * thread requests it, and writes binaries to the disk cache after their kernels have run.
 *
 * A launch configuration (`form` in names) is a hash of a kernel's name and, on drivers that
 * compile a kernel again for them, of its local size and the range of its global size. See
 * program.h.
 */
#include "ocl/program.h"

#include "base/log.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "ocl/helper/helper.h"
#include "ocl/program_build.h"

#include <string.h>

/* Maximum number of launch configurations recorded for a program; further ones are ignored. */
#define MAX_FORMS 256
/* The value of a launch configuration that stands for "compiled, not launched yet". */
#define FORM_COMPILED 0

clg_status program_table_init(program_table *t)
{
    CLG_TRY(mutex_init(&t->lock));
    clg_status status = mutex_init(&t->storing);
    if (status == CLG_OK) {
        status = condition_init(&t->changed);
        if (status == CLG_OK) return CLG_OK;
        mutex_deinit(&t->storing);
    }
    mutex_deinit(&t->lock);
    return status;
}

void program_table_deinit(program_table *t)
{
    for (size_t i = 0; i < t->count; i++) {
        ocl_program *p = t->items[i];
        if (p->handle) (void)cl.ReleaseProgram(p->handle);
        memory_free(p->forms);
        memory_free(p->source);
        memory_free(p->binary);
        memory_free(p->name);
        memory_free(p);
    }
    memory_free(t->items);
    hash_map_deinit(&t->index);
    condition_deinit(&t->changed);
    mutex_deinit(&t->storing);
    mutex_deinit(&t->lock);
}

/* ---- cache entry: number of launch configurations, their hashes, binary ---------------------- */

static size_t prefix_size(size_t n_forms) { return (1 + n_forms) * sizeof(uint64_t); }

/* Loads p from the cache. Returns false, with p unchanged, when there is no usable entry. */
static bool load(ocl_context *ocl, ocl_program *p, const char *entry)
{
    char *data;
    size_t n_bytes;
    if (context_has_quirk(ocl, QUIRK_NO_BINARIES) ||
        !disk_cache_get(ocl->disk_cache, p->key, &data, &n_bytes))
        return false;
    uint64_t n_forms = 0;
    bool loaded = false;
    if (n_bytes >= sizeof n_forms) memcpy(&n_forms, data, sizeof n_forms);
    if (n_bytes > sizeof n_forms && n_forms <= MAX_FORMS &&
        n_bytes > prefix_size((size_t)n_forms) &&
        MEMORY_RESERVE(p->forms, p->forms_capacity, (size_t)n_forms + 1) == CLG_OK) {
        const size_t prefix = prefix_size((size_t)n_forms);
        loaded = program_from_binary(ocl, p->name, entry, data + prefix, n_bytes - prefix,
                                     p->baseline, &p->handle) == CLG_OK;
        if (loaded) {
            memcpy(p->forms, data + sizeof n_forms, (size_t)n_forms * sizeof *p->forms);
            p->n_forms = p->n_stored_forms = (size_t)n_forms;
            p->is_frozen = true;
        } else {
            log_write(CLG_LOG_INFO,
                      "kernel '%s': the driver refuses the cached binary, compiling again: %s",
                      p->name, error_text());
        }
    }
    memory_free(data);
    return loaded;
}

/* Returns, in a new block after prefix_bytes free bytes, p's binary with the code that the driver
 * has compiled for all launch configurations so far. */
static clg_status read_binary(ocl_context *ocl, ocl_program *p, size_t prefix_bytes,
                              char **out_data, size_t *out_n_bytes)
{
    cl_program fresh = NULL;
    const program_source text = {p->source, p->source_bytes, p->baseline};
    *out_data = NULL;
    if (context_has_quirk(ocl, QUIRK_GLOBAL_SIZE_RECOMPILES)) { /* reading a binary compiles */
        CLG_TRY(trial_read_binary(ocl, p, prefix_bytes, out_data, out_n_bytes));
        if (*out_data) return CLG_OK;
    }
    if (!p->handle)
        return error_set(CLG_ERROR_UNSUPPORTED_DEVICE, "the compile helper does not read it");
    if (p->is_frozen && p->source) CLG_TRY(program_compile(ocl, p->name, &text, true, &fresh));
    clg_status status =
        program_binary(ocl, fresh ? fresh : p->handle, prefix_bytes, out_data, out_n_bytes);
    if (fresh) (void)cl.ReleaseProgram(fresh);
    p->is_frozen = true;
    return status;
}

/* Writes p's cache entry: the list of launch configurations for which the driver has compiled the
 * program so far (from take_new_forms), then the binary. */
static clg_status save(ocl_context *ocl, ocl_program *p, const uint64_t *forms, size_t n_forms)
{
    char *data;
    size_t n_bytes;
    const uint64_t n = n_forms;
    const size_t prefix = prefix_size(n_forms);
    CLG_TRY(read_binary(ocl, p, prefix, &data, &n_bytes));
    memcpy(data, &n, sizeof n);
    memcpy(data + sizeof n, forms, n_forms * sizeof *forms);
    strbuf what;
    strbuf_init(&what, 0);
    strbuf_printf(&what, "%s: program %s", context_record(ocl)->name, p->name);
    if (what.status == CLG_OK)
        disk_cache_put(ocl->disk_cache, p->key, strbuf_data(&what), data, prefix + n_bytes);
    clg_status status = what.status;
    strbuf_deinit(&what);
    memory_free(data);
    return status;
}

/* Returns whether an optimised program will take p's place: then p is not worth storing. */
static bool is_passing(const ocl_context *ocl, const ocl_program *p)
{
    return p->baseline && ocl->compilation != CLG_COMPILATION_BASELINE;
}

/* Copies p's launch configurations if its cache entry lacks some of them; else returns false. */
static bool take_new_forms(ocl_context *ocl, ocl_program *p, uint64_t *forms, size_t *out_n)
{
    mutex_lock(&ocl->programs.lock);
    bool is_new = !p->building && (p->handle || p->is_tried) && !is_passing(ocl, p) &&
                  p->n_forms > p->n_stored_forms;
    *out_n = p->n_forms;
    if (is_new) memcpy(forms, p->forms, p->n_forms * sizeof *forms);
    mutex_unlock(&ocl->programs.lock);
    return is_new;
}

void program_save(ocl_context *ocl, ocl_program *p)
{
    uint64_t forms[MAX_FORMS];
    size_t n_forms;
    if (!take_new_forms(ocl, p, forms, &n_forms)) return;
    const bool has_binaries = !context_has_quirk(ocl, QUIRK_NO_BINARIES);
    const clg_status status = has_binaries ? save(ocl, p, forms, n_forms) : CLG_OK;
    if (status != CLG_OK)
        log_write(CLG_LOG_WARNING, "the program '%s' is not stored: %s", p->name, error_text());
    if ((status != CLG_OK || !has_binaries) && helper_is_on(ocl))
        trial_keep_passes(ocl, p, forms, n_forms);
    mutex_lock(&ocl->programs.lock);
    p->n_stored_forms = n_forms; /* also after a failure, which is not retried */
    mutex_unlock(&ocl->programs.lock);
}

/* Returns whether a launch configuration is recorded for p. Call with the table's lock held. */
static bool has_form(const ocl_program *p, uint64_t form)
{
    for (size_t i = 0; i < p->n_forms; i++)
        if (p->forms[i] == form) return true;
    return false;
}

bool program_has_form(ocl_context *ocl, const ocl_program *p, uint64_t form)
{
    mutex_lock(&ocl->programs.lock);
    const bool has = has_form(p, form);
    mutex_unlock(&ocl->programs.lock);
    return has;
}

void program_note_form(ocl_context *ocl, ocl_program *p, uint64_t form)
{
    mutex_lock(&ocl->programs.lock);
    if (!has_form(p, form) && p->n_forms < MAX_FORMS &&
        MEMORY_RESERVE(p->forms, p->forms_capacity, p->n_forms + 1) == CLG_OK) {
        p->forms[p->n_forms++] = form;
        atomic_fetch_add(&ocl->programs.n_new_forms, 1);
    }
    mutex_unlock(&ocl->programs.lock);
}

void program_note_trial(ocl_context *ocl, ocl_program *p, uint64_t form)
{
    program_note_form(ocl, p, FORM_COMPILED);
    program_note_form(ocl, p, form);
    mutex_lock(&ocl->programs.lock);
    p->is_tried = true;
    mutex_unlock(&ocl->programs.lock);
}

/* ---- table ----------------------------------------------------------------------------------- */

static atomic_uint_fast64_t n_programs;

static clg_status add(program_table *t, hash128 key, const char *name, ocl_program **out_program)
{
    CLG_TRY(MEMORY_RESERVE(t->items, t->capacity, t->count + 1));
    ocl_program *p = memory_zalloc(1, sizeof *p);
    if (!p) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    p->key = key;
    p->serial = atomic_fetch_add(&n_programs, 1);
    p->name = memory_strdup(name);
    clg_status status = p->name ? hash_map_set(&t->index, &key, sizeof key, t->count)
                                : CLG_ERROR_OUT_OF_HOST_MEMORY;
    if (status != CLG_OK) {
        memory_free(p->name);
        memory_free(p);
        return status;
    }
    t->items[t->count++] = p;
    *out_program = p;
    return CLG_OK;
}

/* Returns the program of a key, adding it if it is new. Waits while another thread builds it. If
 * *out_build is set, it is not built: it is marked as being built, and the caller must build it. */
static clg_status find_or_claim(program_table *t, hash128 key, const char *name,
                                ocl_program **out_program, bool *out_build)
{
    clg_status status = CLG_OK;
    ocl_program *p = NULL;
    mutex_lock(&t->lock);
    for (;;) {
        size_t at = hash_map_get(&t->index, &key, sizeof key);
        if (at == HASH_MAP_NONE) {
            status = add(t, key, name, &p);
            break;
        }
        p = t->items[at];
        if (!p->building) break;
        condition_wait(&t->changed, &t->lock);
    }
    *out_build = status == CLG_OK && !p->handle;
    if (*out_build) p->building = true;
    *out_program = p;
    mutex_unlock(&t->lock);
    return status;
}

static clg_status keep_source(ocl_program *p, strbuf *source)
{
    if (p->source) return CLG_OK;
    p->source_bytes = source->size_bytes;
    return strbuf_take(source, &p->source);
}

/* Frees p's source unless read_binary or trials of launches may need it later. */
static void drop_source(ocl_context *ocl, ocl_program *p)
{
    if (context_has_quirk(ocl, QUIRK_GLOBAL_SIZE_RECOMPILES) || helper_is_on(ocl)) return;
    memory_free(p->source);
    p->source = NULL;
}

/* Builds p from the compile helper's binary; returns false when there is none or the driver rejects
 * it. */
static bool build_from_helper(ocl_context *ocl, ocl_program *p, const char *entry)
{
    char *binary;
    size_t n_bytes;
    if (!trial_take_binary(ocl, p, &binary, &n_bytes)) return false;
    const bool built = program_from_binary(ocl, p->name, entry, binary, n_bytes, p->baseline,
                                           &p->handle) == CLG_OK;
    memory_free(binary);
    return built;
}

/* Loads p from the cache if it has an entry; searches only at the first call. */
static void load_once(ocl_context *ocl, ocl_program *p, const char *entry)
{
    if (p->searched) return;
    p->searched = true;
    if (load(ocl, p, entry)) count(&ocl->n_loaded, 1);
}

static clg_status build(ocl_context *ocl, ocl_program *p, const char *entry)
{
    const program_source text = {p->source, p->source_bytes, p->baseline};
    CLG_TRY(trial_of_build(ocl, p, entry));
    if (!build_from_helper(ocl, p, entry))
        CLG_TRY(program_compile(ocl, p->name, &text, false, &p->handle));
    count(&ocl->n_compiled, 1);
    program_note_form(ocl, p, FORM_COMPILED);
    log_write(CLG_LOG_INFO, "compiled '%s' for '%s'", p->name, context_record(ocl)->name);
    return CLG_OK;
}

/* Ends the build that find_or_claim began. If it failed, p has no handle, and the next request
 * builds it again. */
static void end_building(ocl_context *ocl, ocl_program *p)
{
    mutex_lock(&ocl->programs.lock);
    p->building = false;
    condition_broadcast(&ocl->programs.changed);
    mutex_unlock(&ocl->programs.lock);
}

hash128 program_key(const ocl_context *ocl, const strbuf *source, bool baseline)
{
    return context_key(ocl, program_options(ocl, baseline), strbuf_data(source),
                       source->size_bytes);
}

clg_status program_is_built(ocl_context *ocl, const kernel_ref *ref, bool *out_built)
{
    strbuf source;
    program_table *t = &ocl->programs;
    *out_built = false;
    CLG_TRY(program_text(ref, &source));
    const hash128 key = program_key(ocl, &source, ref->baseline);
    strbuf_deinit(&source);
    mutex_lock(&t->lock);
    const size_t at = hash_map_get(&t->index, &key, sizeof key);
    *out_built = at != HASH_MAP_NONE && !t->items[at]->building && t->items[at]->handle;
    mutex_unlock(&t->lock);
    return CLG_OK;
}

/* What a program is requested by. */
typedef struct wanted_program {
    const char *name, *entry;
    bool baseline;
    bool loads;  /* load it from the cache if it has an entry */
    bool builds; /* compile it where it is not cached; else it has no handle then */
} wanted_program;

/* Returns the program of a text, which may be taken. */
static clg_status get(ocl_context *ocl, const wanted_program *wanted, strbuf *source,
                      ocl_program **out_program)
{
    bool must_build;
    *out_program = NULL;
    const hash128 key = program_key(ocl, source, wanted->baseline);
    clg_status status = find_or_claim(&ocl->programs, key, wanted->name, out_program, &must_build);
    if (status == CLG_OK && must_build) {
        ocl_program *p = *out_program;
        p->baseline = wanted->baseline;
        status = keep_source(p, source);
        if (status == CLG_OK && wanted->loads) load_once(ocl, p, wanted->entry);
        if (status == CLG_OK && wanted->builds && !p->handle) status = build(ocl, p, wanted->entry);
        if (wanted->builds) drop_source(ocl, p);
        end_building(ocl, p);
    }
    if (status != CLG_OK) *out_program = NULL;
    return status;
}

static clg_status get_of_ref(ocl_context *ocl, const kernel_ref *ref, bool builds,
                             ocl_program **out_program)
{
    strbuf source;
    *out_program = NULL;
    CLG_TRY(program_text(ref, &source));
    const wanted_program wanted = {ref->source, ref->entry, ref->baseline, true, builds};
    const clg_status status = get(ocl, &wanted, &source, out_program);
    strbuf_deinit(&source);
    return status;
}

clg_status program_get(ocl_context *ocl, const kernel_ref *ref, ocl_program **out_program)
{
    return get_of_ref(ocl, ref, true, out_program);
}

clg_status program_find(ocl_context *ocl, const kernel_ref *ref, ocl_program **out_program)
{
    return get_of_ref(ocl, ref, false, out_program);
}

clg_status program_find_text(ocl_context *ocl, const char *name, const char *entry,
                             const char *source, size_t source_bytes, ocl_program **out_program)
{
    const wanted_program wanted = {name, entry, false, false, false};
    strbuf text;
    *out_program = NULL;
    strbuf_init(&text, 0);
    strbuf_append_bytes(&text, source, source_bytes);
    const clg_status status =
        text.status == CLG_OK ? get(ocl, &wanted, &text, out_program) : text.status;
    strbuf_deinit(&text);
    return status;
}

clg_status ocl_program_is_at_hand(ocl_context *ocl, const kernel_ref *ref, bool *out_at_hand)
{
    ocl_program *p;
    CLG_TRY(program_find(ocl, ref, &p));
    *out_at_hand = program_handle(ocl, p) != NULL;
    return CLG_OK;
}

clg_status program_build(ocl_context *ocl, ocl_program *p, const char *entry)
{
    mutex_lock(&ocl->programs.lock);
    while (p->building) condition_wait(&ocl->programs.changed, &ocl->programs.lock);
    const bool must_build = !p->handle;
    p->building = must_build;
    mutex_unlock(&ocl->programs.lock);
    if (!must_build) return CLG_OK;
    const clg_status status = build(ocl, p, entry);
    drop_source(ocl, p);
    end_building(ocl, p);
    return status;
}

clg_status ocl_kernel_hash(const kernel_ref *ref, strbuf *out)
{
    strbuf source;
    char hex[33];
    CLG_TRY(program_text(ref, &source));
    hash128_hex(hash128_bytes(strbuf_data(&source), source.size_bytes), hex);
    strbuf_deinit(&source);
    strbuf_append(out, hex);
    return CLG_OK;
}
