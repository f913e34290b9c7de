/* SPDX-License-Identifier: Apache-2.0
 *
 * Resolves a device selector (`cltool --device`, $CLG_DEVICE), case-insensitively.
 *
 * A word is matched by the first of these rules that applies: auto, gpu, cpu, all; id:...; a
 * vendor's keyword; P:D (platform and device index); the whole name of a device; the whole name of
 * a platform; a part of either name. The four words, ids and keywords are never searched for in
 * names: PoCL on an AMD processor is not `amd`. The matching devices are sorted, best first. WORD
 * means the first, WORD#N the N-th from 0, `all` all of them; /P after it part P of a CPU. A comma
 * separates words unless it is part of a name that matches. See decision 3. */
#include "caps/caps.h"

#include "base/log.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "caps/identity.h"
#include "caps/ranking.h"
#include "caps/words.h"

#include <string.h>

#define MAX_ITEMS 64         /* items of a comma-separated list */
#define MAX_LISTED 24        /* devices listed in an error message */
#define MAX_QUOTED_BYTES 120 /* bytes of a selector quoted in a message */

typedef struct word {
    const char *text;
    size_t count;
} word;

/* Why a part of a selector matches nothing; reported only if the whole selector matches nothing. */
typedef enum mismatch {
    NO_MATCH,
    NO_POSITION,
    NO_VENDOR,
    NO_WORD,
    OUT_OF_RANGE,
    NO_CPU,
    TOO_MANY_ITEMS
} mismatch;

typedef struct problem {
    mismatch mismatch;
    word part;        /* the part of the selector */
    word base;        /* WORD, if the part is WORD#N */
    size_t n_matches; /* number of devices that match base */
} problem;

/* The state of a selection. */
typedef struct choice {
    const device_record *records;
    const device_caps *caps;
    size_t count;
    size_t *matches, n_matches; /* of the current word; capacity `count` */
    device_choice *chosen;      /* capacity `count`, for whole devices, and MAX_ITEMS, for parts */
    size_t n_chosen;
    problem problem; /* why the selector matches nothing */
    bool explain;    /* the error message lists why auto skips devices */
} choice;

static void match(choice *c, size_t index) { c->matches[c->n_matches++] = index; }

/* Matches the words auto, gpu, cpu and all, without the devices that auto never takes. Returns
 * whether w is such a word. */
static bool match_kind(choice *c, word w)
{
    bool any = words_equal("auto", w.text, w.count), all = words_equal("all", w.text, w.count);
    bool gpu = all || words_equal("gpu", w.text, w.count),
         cpu = words_equal("cpu", w.text, w.count);
    if (!any && !gpu && !cpu) return false;
    for (size_t i = 0; i < c->count; i++) {
        clg_device_kind kind = c->caps[i].kind;
        bool is_gpu = kind == CLG_DEVICE_DISCRETE_GPU || kind == CLG_DEVICE_INTEGRATED_GPU;
        if (!c->caps[i].never_auto && (any || (gpu && is_gpu) || (cpu && kind == CLG_DEVICE_CPU)))
            match(c, i);
    }
    if (all && c->n_matches == 0) {
        (void)match_kind(c, (word){"cpu", 3});
        ranking_sort(c->records, c->caps, c->matches, c->n_matches);
        c->n_matches = c->n_matches > 0; /* only the best driver of the CPU */
    }
    c->explain = true;
    return true;
}

/* Matches a whole id, or an address alone: "id:0000:03:00.0" is that card with any driver. Returns
 * whether w starts with "id:". */
static bool match_id(choice *c, word w)
{
    if (w.count < 3 || !words_equal_n(w.text, "id:", 3)) return false;
    for (size_t i = 0; i < c->count; i++) {
        const char *id = c->caps[i].id, *address = strchr(id + 3, ':') + 1;
        if (words_equal(id, w.text, w.count) || words_equal(address, w.text + 3, w.count - 3))
            match(c, i);
    }
    return true;
}

static bool match_vendor(choice *c, word w)
{
    static const struct {
        const char *keyword;
        platform_family family;
    } rows[] = {
        {"nvidia", PLATFORM_NVIDIA},    {"amd", PLATFORM_AMD},
        {"intel", PLATFORM_INTEL_GPU},  {"intel", PLATFORM_INTEL_CPU},
        {"intel", PLATFORM_INTEL_FPGA}, {"pocl", PLATFORM_POCL},
        {"mesa", PLATFORM_RUSTICL},     {"mesa", PLATFORM_CLOVER},
    };
    bool known = false;
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        if (!words_equal(rows[r].keyword, w.text, w.count)) continue;
        known = true;
        for (size_t i = 0; i < c->count; i++)
            if (c->caps[i].family == rows[r].family) match(c, i);
    }
    return known;
}

/* Parses and skips the digits at the start of w; -1 if there are none. Stops multiplying at
 * 1,000,000, against overflow: such a number is still out of range of any list. */
static long take_number(word *w)
{
    long value = -1;
    for (; w->count > 0 && *w->text >= '0' && *w->text <= '9'; w->text++, w->count--)
        value = value < 0         ? *w->text - '0'
                : value < 1000000 ? value * 10 + (*w->text - '0')
                                  : value;
    return value;
}

static bool parse_position(word w, long *out_platform, long *out_device)
{
    *out_platform = take_number(&w);
    if (*out_platform < 0 || w.count == 0 || *w.text != ':') return false;
    w.text++;
    w.count--;
    *out_device = take_number(&w);
    return *out_device >= 0 && w.count == 0;
}

static bool match_position(choice *c, word w)
{
    long platform, device;
    if (!parse_position(w, &platform, &device)) return false;
    for (size_t i = 0; i < c->count; i++)
        if (c->records[i].platform_index == platform && c->records[i].device_index == device)
            match(c, i);
    return c->n_matches > 0;
}

/* Returns whether w matches a name of the device by rule `meaning`: 0 its whole name, 1 the whole
 * name of its platform, 2 a part of either. */
static bool name_fits(const device_record *r, word w, int meaning)
{
    if (meaning == 0)
        return words_equal(r->name, w.text, w.count) || words_equal(r->board_name, w.text, w.count);
    if (meaning == 1) return words_equal(r->platform_name, w.text, w.count);
    return words_contain_n(r->name, w.text, w.count) ||
           words_contain_n(r->board_name, w.text, w.count) ||
           words_contain_n(r->platform_name, w.text, w.count);
}

static void match_name(choice *c, word w)
{
    for (int meaning = 0; meaning < 3 && c->n_matches == 0; meaning++)
        for (size_t i = 0; i < c->count; i++)
            if (name_fits(&c->records[i], w, meaning)) match(c, i);
}

/* Sets c->matches to the devices that match w, best first; returns whether there are any. */
static bool match_word(choice *c, word w)
{
    c->n_matches = 0;
    if (w.count == 0) return false;
    if (!match_kind(c, w) && !match_id(c, w) && !match_vendor(c, w) && !match_position(c, w))
        match_name(c, w);
    ranking_sort(c->records, c->caps, c->matches, c->n_matches);
    return c->n_matches > 0;
}

static bool is_space(char c) { return c == ' ' || c == '\t'; }

static word trimmed(word w)
{
    for (; w.count > 0 && is_space(*w.text); w.text++) w.count--;
    while (w.count > 0 && is_space(w.text[w.count - 1])) w.count--;
    return w;
}

static void choose(choice *c, size_t index, int32_t part)
{
    for (size_t i = 0; i < c->n_chosen; i++)
        if (c->chosen[i].index == index && c->chosen[i].part == part) return;
    c->chosen[c->n_chosen++] = (device_choice){index, part};
}

static int quoted(word w) { return (int)(w.count < MAX_QUOTED_BYTES ? w.count : MAX_QUOTED_BYTES); }

/* Splits "WORD#N", with this sign, into WORD and N; returns false if w does not have this form. */
static bool split_number(word w, char sign, word *out_word, size_t *out_nth)
{
    size_t at = w.count;
    while (at > 0 && w.text[at - 1] >= '0' && w.text[at - 1] <= '9') at--;
    if (at < 2 || at == w.count || w.text[at - 1] != sign) return false;
    word digits = {w.text + at, w.count - at};
    *out_nth = (size_t)take_number(&digits);
    *out_word = trimmed((word){w.text, at - 1});
    return true;
}

static problem misfit_of(choice *c, word w)
{
    long platform, device;
    mismatch why = NO_MATCH;
    c->n_matches = 0;
    if (w.count == 0)
        why = NO_WORD;
    else if (match_vendor(c, w))
        why = NO_VENDOR;
    else if (parse_position(w, &platform, &device))
        why = NO_POSITION;
    return (problem){.mismatch = why, .part = w};
}

/* Sets c->matches to the devices that WORD or WORD#N means; `all` means several. Returns false, and
 * sets c->problem, if there are none. */
static bool find_devices(choice *c, word w)
{
    word base;
    size_t nth;
    if (match_word(c, w)) {
        if (!words_equal("all", w.text, w.count)) c->n_matches = 1;
        return true;
    }
    if (!split_number(w, '#', &base, &nth) || !match_word(c, base)) {
        c->problem = misfit_of(c, w);
        return false;
    }
    if (nth >= c->n_matches) {
        c->problem = (problem){OUT_OF_RANGE, w, base, c->n_matches};
        return false;
    }
    c->matches[0] = c->matches[nth];
    c->n_matches = 1;
    return true;
}

/* Adds the devices that one item of the list means to c->chosen; returns false, and sets
 * c->problem, if there are none. */
static bool choose_item(choice *c, word w)
{
    word base;
    size_t part;
    if (find_devices(c, w)) {
        for (size_t i = 0; i < c->n_matches; i++) choose(c, c->matches[i], DEVICE_WHOLE);
        return true;
    }
    const problem whole = c->problem;
    if (!split_number(w, '/', &base, &part) || !find_devices(c, base)) {
        c->problem = whole;
        return false;
    }
    if (c->caps[c->matches[0]].kind != CLG_DEVICE_CPU) {
        c->problem = (problem){.mismatch = NO_CPU, .part = w, .base = base};
        return false;
    }
    choose(c, c->matches[0], (int32_t)part);
    return true;
}

/* Resolves a whole selector. From left to right, takes the longest run of comma-separated parts
 * that matches as one word, since names may contain commas. */
static bool choose_list(choice *c, const char *selector)
{
    const char *ends[MAX_ITEMS];
    size_t n_items = 0;
    for (const char *at = selector;; at++) {
        if (*at != ',' && *at) continue;
        if (n_items == MAX_ITEMS) {
            c->problem = (problem){.mismatch = TOO_MANY_ITEMS};
            return false;
        }
        ends[n_items++] = at;
        if (!*at) break;
    }
    const char *start = selector;
    for (size_t item = 0; item < n_items; item++) {
        size_t last = n_items;
        while (last-- > item)
            if (choose_item(c, trimmed((word){start, (size_t)(ends[last] - start)}))) break;
        if (last + 1 == item) return false; /* c->problem is that of the single item */
        item = last;
        start = ends[last] + 1;
    }
    return true;
}

static void append_devices(choice *c, strbuf *t)
{
    if (c->count == 0) strbuf_append(t, "; no OpenCL platform of this machine has a device");
    for (size_t i = 0; i < c->count && i < MAX_LISTED; i++) {
        const device_record *r = &c->records[i];
        strbuf_printf(t, "%s%s %s", i == 0 ? "; there is: " : "; ", c->caps[i].selector, r->name);
        if (*r->board_name) strbuf_printf(t, ", %s", r->board_name);
        strbuf_printf(t, " (%s)", r->platform_name);
        if (c->explain && c->caps[i].never_auto) strbuf_printf(t, ": %s", c->caps[i].auto_reason);
    }
    if (c->count > MAX_LISTED) strbuf_printf(t, "; and %zu more", c->count - MAX_LISTED);
}

static void append_problem(strbuf *t, const problem *p)
{
    const char *part = p->part.text;
    int n = quoted(p->part);
    switch (p->mismatch) {
    case NO_MATCH: strbuf_printf(t, "no device matches '%.*s'", n, part); break;
    case NO_POSITION: strbuf_printf(t, "there is no device '%.*s'", n, part); break;
    case NO_VENDOR:
        strbuf_printf(t, "no platform of the vendor '%.*s' has a device", n, part);
        break;
    case NO_WORD: strbuf_append(t, "an empty word selects no device"); break;
    case OUT_OF_RANGE:
        strbuf_printf(t, "'%.*s' is out of range: '%.*s' matches %zu device%s, counted from 0", n,
                      part, quoted(p->base), p->base.text, p->n_matches,
                      p->n_matches == 1 ? "" : "s");
        break;
    case NO_CPU:
        strbuf_printf(t, "'%.*s' is out of reach: '%.*s' is no CPU, and is not divided", n, part,
                      quoted(p->base), p->base.text);
        break;
    case TOO_MANY_ITEMS: strbuf_printf(t, "the list has more than %d items", MAX_ITEMS); break;
    }
}

/* Sets the error of a selector that matches nothing. If a fallback failed, too, c->problem is the
 * fallback's and without_fallback that of the selector. */
static clg_status refuse(choice *c, const problem *without_fallback)
{
    strbuf t;
    strbuf_init(&t, 0);
    if (without_fallback) {
        append_problem(&t, without_fallback);
        strbuf_append(&t, ", and the fallback does not match: ");
    }
    append_problem(&t, &c->problem);
    append_devices(c, &t);
    clg_status status = t.status;
    if (status == CLG_OK) {
        status = error_set(CLG_ERROR_NO_DEVICE, "%s", strbuf_data(&t));
        if (c->count == 0)
            error_hint("install a driver ('pocl-opencl-icd' serves any CPU on Debian and Ubuntu); "
                       "'cltool devices "
                       "--diagnose' reports what is in the way");
        else
            error_hint(
                "name a device by its selector, such as '%s', by its id or by a part of its name",
                c->caps[0].selector);
    }
    strbuf_deinit(&t);
    return status;
}

static clg_status choose_or_fall_back(choice *c, const char *selector, const char *fallback)
{
    if (choose_list(c, selector)) return CLG_OK;
    if (!fallback) return refuse(c, NULL);
    problem first = c->problem;
    c->n_chosen = 0;
    if (!choose_list(c, fallback)) return refuse(c, &first);
    log_write(CLG_LOG_INFO, "nothing matches '%s': using the fallback '%s'", selector, fallback);
    return CLG_OK;
}

clg_status caps_select(const device_record *records, const device_caps *caps, size_t n,
                       const char *selector, const char *fallback, device_choice **out_choices,
                       size_t *out_n_choices)
{
    *out_choices = NULL;
    *out_n_choices = 0;
    choice c = {.records = records, .caps = caps, .count = n};
    c.matches = memory_zalloc(n, sizeof *c.matches);
    c.chosen = memory_zalloc(n + MAX_ITEMS, sizeof *c.chosen);
    clg_status status = CLG_ERROR_OUT_OF_HOST_MEMORY;
    if (c.matches && c.chosen)
        status = choose_or_fall_back(&c, selector ? selector : "auto", fallback);
    memory_free(c.matches);
    if (status != CLG_OK) {
        memory_free(c.chosen);
        return status;
    }
    *out_choices = c.chosen;
    *out_n_choices = c.n_chosen;
    return CLG_OK;
}
