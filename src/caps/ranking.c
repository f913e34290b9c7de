/* SPDX-License-Identifier: Apache-2.0
 *
 * Ranks devices: discrete GPUs before integrated GPUs before CPUs; within a kind by compute units *
 * clock, then by memory. Excludes from `auto`: unusable devices, debugging tools, all but one entry
 * for the same card, and software rasterisers if there is a better device. Sets auto_reason to the
 * reason of each decision.
 */
#include "caps/ranking.h"

#include "base/memory.h"
#include "base/strbuf.h"
#include "caps/identity.h"

#include <inttypes.h>
#include <string.h>

/* Used if a driver reports a clock of 0 MHz, as Intel's CPU runtime does in virtual machines. */
#define CPU_CLOCK_MHZ 2000
#define GPU_CLOCK_MHZ 1000

static const char *const kind_names[] = {"a CPU", "an integrated GPU", "a discrete GPU",
                                         "an accelerator"};

/* Returns the rank of a kind; 0 is the best. */
static int kind_rank(clg_device_kind kind)
{
    static const int ranks[] = {2, 1, 0, 3};
    return ranks[kind];
}

static uint32_t clock_of(const device_record *record, const device_caps *caps)
{
    if (record->max_clock_mhz > 0) return record->max_clock_mhz;
    return caps->kind == CLG_DEVICE_CPU ? CPU_CLOCK_MHZ : GPU_CLOCK_MHZ;
}

static uint64_t score_of(const device_record *record, const device_caps *caps)
{
    return (uint64_t)caps->compute_units * clock_of(record, caps);
}

#define ORDER(a, b)                                                                                \
    do {                                                                                           \
        if ((a) != (b)) return (a) < (b) ? -1 : 1;                                                 \
    } while (0)

/* Breaks ties between equally good devices. */
static int compare_names(const device_record *a, const device_record *b)
{
    int order = strcmp(a->platform_name, b->platform_name);
    if (order == 0) order = strcmp(a->platform_version, b->platform_version);
    if (order != 0) return order;
    ORDER(a->device_index, b->device_index);
    ORDER(a->platform_index, b->platform_index);
    return 0;
}

int ranking_compare(const device_record *records, const device_caps *caps, size_t i, size_t j)
{
    const device_record *ri = &records[i], *rj = &records[j];
    const device_caps *ci = &caps[i], *cj = &caps[j];
    ORDER(ci->never_auto, cj->never_auto);
    ORDER(ci->is_software, cj->is_software);
    ORDER(kind_rank(ci->kind), kind_rank(cj->kind));
    ORDER(score_of(rj, cj), score_of(ri, ci));
    ORDER(cj->global_mem_bytes, ci->global_mem_bytes);
    ORDER(identity_preference(ci->family), identity_preference(cj->family));
    return compare_names(ri, rj);
}

void ranking_sort(const device_record *records, const device_caps *caps, size_t *indices, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        size_t moving = indices[i], at = i;
        for (; at > 0 && ranking_compare(records, caps, moving, indices[at - 1]) < 0; at--)
            indices[at] = indices[at - 1];
        indices[at] = moving;
    }
}

/* Returns why auto never takes the device because of what it is, as the end of the sentence
 * "auto never takes it: it ..."; NULL without a reason. */
static const char *reason_of_its_own(const device_record *record, const device_caps *caps)
{
    if (caps->family == PLATFORM_OCLGRIND) return "is a simulator for debugging kernels";
    if (caps->family == PLATFORM_INTEL_FPGA) return "is an FPGA or emulates one";
    if (caps->family == PLATFORM_CLOVER)
        return "is served by Clover, Mesa's abandoned OpenCL 1.1; rusticl or the vendor's driver "
               "shows the same card";
    const char *unusable = identity_unusable(record);
    if (unusable) return unusable;
    return caps->kind == CLG_DEVICE_ACCELERATOR ? "is neither a GPU nor a CPU" : NULL;
}

static clg_status say(device_caps *caps, strbuf *t) { return strbuf_take(t, &caps->auto_reason); }

static clg_status forbid(device_caps *caps, const char *reason, const char *about)
{
    strbuf t;
    strbuf_init(&t, 0);
    strbuf_printf(&t, "auto never takes it: it %s%s", reason, about);
    caps->never_auto = true;
    clg_status status = say(caps, &t);
    strbuf_deinit(&t);
    return status;
}

static clg_status forbid_beside(const device_record *records, device_caps *caps, size_t i,
                                const char *reason, size_t other)
{
    strbuf t;
    strbuf_init(&t, 0);
    strbuf_printf(&t, "%s (%s)", caps[other].selector, records[other].platform_name);
    clg_status status = t.status == CLG_OK ? forbid(&caps[i], reason, strbuf_data(&t)) : t.status;
    strbuf_deinit(&t);
    return status;
}

/* Returns the preferred one of all entries for the same physical card as entry i, by
 * identity_preference; i itself if there is no better one. */
static size_t first_sight(const device_record *records, const device_caps *caps, size_t n, size_t i)
{
    size_t best = i;
    for (size_t j = 0; j < n; j++) {
        if (caps[j].never_auto || caps[j].kind == CLG_DEVICE_CPU ||
            !identity_same_card(&records[i], &records[j]))
            continue;
        int a = identity_preference(caps[j].family), b = identity_preference(caps[best].family);
        if (a < b || (a == b && ranking_compare(records, caps, j, best) < 0)) best = j;
    }
    return best;
}

/* Excludes all but the preferred entry for each physical card. Finds all of them before it marks
 * any, so that the result does not depend on the order of platforms. */
static clg_status forbid_second_sights(const device_record *records, device_caps *caps, size_t n)
{
    clg_status status = CLG_OK;
    size_t *first = memory_zalloc(n, sizeof *first);
    if (!first) return CLG_ERROR_OUT_OF_HOST_MEMORY;
    for (size_t i = 0; i < n; i++) {
        bool may_be_card = !caps[i].never_auto && caps[i].kind != CLG_DEVICE_CPU;
        first[i] = may_be_card ? first_sight(records, caps, n, i) : i;
    }
    for (size_t i = 0; i < n && status == CLG_OK; i++)
        if (first[i] != i)
            status = forbid_beside(records, caps, i, "is the same card as ", first[i]);
    memory_free(first);
    return status;
}

/* Returns the best device that auto may take, n when there is none. */
static size_t best_of(const device_record *records, const device_caps *caps, size_t n)
{
    size_t best = n;
    for (size_t i = 0; i < n; i++)
        if (!caps[i].never_auto && (best == n || ranking_compare(records, caps, i, best) < 0))
            best = i;
    return best;
}

static void append_speed(strbuf *t, const device_record *record, const device_caps *caps)
{
    strbuf_printf(t, "%" PRIu32 " compute units at %" PRIu32 " MHz%s", caps->compute_units,
                  clock_of(record, caps), record->max_clock_mhz > 0 ? "" : " (assumed)");
}

/* Appends the reason why device `first` ranks before device `second`. */
static void append_comparison(strbuf *t, const device_record *records, const device_caps *caps,
                              size_t first, size_t second)
{
    const device_record *a = &records[first], *b = &records[second];
    if (caps[first].kind != caps[second].kind) {
        strbuf_printf(t, "%s comes before %s", kind_names[caps[first].kind],
                      kind_names[caps[second].kind]);
    } else if (score_of(a, &caps[first]) != score_of(b, &caps[second])) {
        append_speed(t, a, &caps[first]);
        strbuf_append(t, " against ");
        append_speed(t, b, &caps[second]);
    } else if (caps[first].global_mem_bytes != caps[second].global_mem_bytes) {
        strbuf_append(t, "as fast by compute units and clock, and with more memory");
    } else {
        strbuf_append(t, "equally good, and listed first");
    }
}

static clg_status explain_default(const device_record *records, device_caps *caps, size_t n,
                                  size_t best)
{
    strbuf t;
    size_t n_others = 0;
    for (size_t i = 0; i < n; i++) n_others += i != best && !caps[i].never_auto;
    strbuf_init(&t, 0);
    if (caps[best].is_software) {
        strbuf_append(&t, "auto takes it as the only choice left: a software rasteriser, far "
                          "slower than PoCL");
    } else if (n_others > 0) {
        strbuf_printf(&t, "auto takes it: the best of %zu, %s with ", n_others + 1,
                      kind_names[caps[best].kind]);
        append_speed(&t, &records[best], &caps[best]);
    } else {
        strbuf_printf(&t, "auto takes it: the only device%s", n > 1 ? " that it may take" : "");
    }
    caps[best].is_default = true;
    clg_status status = say(&caps[best], &t);
    strbuf_deinit(&t);
    return status;
}

static clg_status explain(const device_record *records, device_caps *caps, size_t n, size_t best)
{
    CLG_TRY(explain_default(records, caps, n, best));
    for (size_t i = 0; i < n; i++) {
        if (caps[i].never_auto || i == best) continue;
        strbuf t;
        strbuf_init(&t, 0);
        strbuf_printf(&t, "auto prefers %s: ", caps[best].selector);
        append_comparison(&t, records, caps, best, i);
        clg_status status = say(&caps[i], &t);
        strbuf_deinit(&t);
        CLG_TRY(status);
    }
    return CLG_OK;
}

clg_status ranking_decide(const device_record *records, device_caps *caps, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *reason = reason_of_its_own(&records[i], &caps[i]);
        if (reason) CLG_TRY(forbid(&caps[i], reason, ""));
    }
    CLG_TRY(forbid_second_sights(records, caps, n));
    size_t best = best_of(records, caps, n);
    if (best == n) return CLG_OK;
    for (size_t i = 0; i < n; i++)
        if (!caps[i].never_auto && caps[i].is_software && !caps[best].is_software)
            CLG_TRY(forbid_beside(records, caps, i, "is a software rasteriser, far slower than ",
                                  best));
    return explain(records, caps, n, best);
}
