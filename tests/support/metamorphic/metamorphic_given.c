/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads models with test data from a folder; the table of their batch axes. See
 * metamorphic_models.h.
 */
#include "support/fixtures/soak_models.h"
#include "support/metamorphic/metamorphic_models.h"

#include "base/error.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROWS (META_PERMUTED | META_EXTENDED)

static const char fixed[] = "the input's batch is fixed at 1, as are shapes in the graph";
static const char sequence[] = "one sequence: a recurrence or positions run along the first axis";

static const meta_batch given[] = {
    {"bert_toy_unsorted", ROWS, "*=0", NULL},
    {"cifar10_cnn", ROWS, "*=0", NULL},
    {"cntk_lstm_bidir", 0, NULL, sequence},
    {"cntk_rnn_bidir", 0, NULL, sequence},
    {"dtln_1", 0, NULL, fixed},
    {"gpt2_past_toy", ROWS, "past_*=1 present_*=1 *=0", NULL},
    {"gpt2_tiny_contrib_fp32", ROWS, "past_*=1 present_*=1 *=0", NULL},
    {"gqa_tiny_contrib_fp16", ROWS, "*=0", NULL},
    {"gtcrn_stream", 0, NULL, fixed},
    {"iris_mlp", ROWS, "*=0", NULL},
    {"light_shufflenet", 0, NULL, fixed},
    {"llm_static_kv_opset24", ROWS, "*=0", NULL},
    {"lstm_loop", 0, NULL, sequence},
    {"magika_v3_3", ROWS, "*=0", NULL},
    {"mnist_cnn_cntk", 0, NULL, fixed},
    {"mnist_dynquant_int8", META_PERMUTED, "*=0",
     "the scale of DynamicQuantizeLinear is that of the whole batch"},
    {"mnist_mlp", ROWS, "*=0", NULL},
    {"mobilenetv2_qdq_int8", ROWS, "*=0", NULL},
    {"ncf_movielens", 0, NULL, fixed},
    {"openseeface_mnv3_det", ROWS, "*=0", NULL},
    {"openseeface_retinaface", 0, NULL, fixed},
    {"silero_vad_v5", ROWS, "state*=1 sr=- *=0", NULL},
    {"speech_commands_squeezenet", ROWS, "*=0", NULL},
    {"squeezenet1.0_fp16", 0, NULL, fixed},
    {"super_resolution_10", ROWS, "*=0", NULL},
    {"tfbert_seqcls_toy", ROWS, "*=0", NULL},
    {"ultraface_rfb320", 0, NULL, fixed},
    {"vespa_similarity_mlp", 0, NULL, fixed},
    {"vespa_tiny_transformer", META_PERMUTED, "*=0", "attention runs over the batch axis"},
    {"voicevox_duration", 0, NULL, sequence},
    {"voicevox_intonation", 0, NULL, sequence},
    {"voicevox_sing_consonant", 0, NULL, fixed},
    {"yolox_nano", 0, NULL, fixed},
};

/* Models that may take the whole tolerance (meta_case.whole). */
static const char *const rounding[] = {
    "gqa_tiny_contrib_fp16", "squeezenet1.0_fp16",   /* float16 between operators */
    "mnist_dynquant_int8",   "mobilenetv2_qdq_int8", /* bytes between operators */
    "magika_v3_3", /* variances as E[x^2] - E[x]^2, which cancel */
};

/* `*` is the end of a pattern, if anything. Windows has no fnmatch. */
static bool is_matched(const char *name, const char *pattern)
{
    const size_t n = strcspn(pattern, "*");
    return pattern[n] ? strncmp(name, pattern, n) == 0 : strcmp(name, pattern) == 0;
}

int meta_batch_axis(const meta_batch *batch, const char *name)
{
    char pattern[64], axis[8];
    int n = 0;
    for (const char *at = batch->axes; at && sscanf(at, " %63[^= ]=%7s%n", pattern, axis, &n) == 2;
         at += n)
        if (is_matched(name, pattern)) return axis[0] == '-' ? -1 : axis[0] - '0';
    return -1;
}

static void read_tolerance(const char *folder, const char *name, meta_case *c)
{
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/tolerance.json", folder);
    json_t *all = json_load_file(path, 0, NULL);
    const json_t *own = json_object_get(all, name);
    if (!own) own = json_object_get(all, "default");
    c->rtol = own ? json_number_value(json_array_get(own, 0)) : 1e-3;
    c->atol = own ? json_number_value(json_array_get(own, 1)) : 1e-4;
    json_decref(all);
}

static size_t set_bytes(const soak_model *m, size_t set)
{
    size_t n = 0;
    for (size_t i = 0; i < m->n_inputs; i++) n += clg_value_size_bytes(m->values[set][i]);
    return n;
}

static clg_status read_inputs(const char *path, meta_case *c)
{
    soak_model m;
    clg_status status = soak_model_open(path, &m);
    if (status == CLG_OK) status = soak_model_load(&m, &c->model);
    if (status == CLG_OK && m.n_sets == 0) status = error_set(CLG_ERROR_DATA, "no test data");
    size_t largest = 0;
    for (size_t set = 1; status == CLG_OK && set < m.n_sets; set++)
        if (set_bytes(&m, set) > set_bytes(&m, largest)) largest = set;
    for (; status == CLG_OK && c->n_inputs < m.n_inputs; c->n_inputs++)
        c->inputs[c->n_inputs] = clg_value_retain(m.values[largest][c->n_inputs]);
    soak_model_close(&m);
    return status;
}

clg_status meta_given_open(const char *folder, const char *name, meta_case *out_case)
{
    char path[4096];
    *out_case = (meta_case){0};
    (void)snprintf(out_case->name, sizeof out_case->name, "%s", name);
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    for (size_t i = 0; i < sizeof given / sizeof *given; i++)
        if (strcmp(given[i].name, name) == 0) out_case->batch = &given[i];
    for (size_t i = 0; i < sizeof rounding / sizeof *rounding; i++)
        out_case->whole |= strcmp(rounding[i], name) == 0;
    read_tolerance(folder, name, out_case);
    const clg_status status = read_inputs(path, out_case);
    if (status != CLG_OK) meta_case_close(out_case);
    return status;
}

void meta_case_close(meta_case *c)
{
    for (size_t i = 0; i < c->n_inputs; i++) clg_value_free(c->inputs[i]);
    clg_model_free(c->model);
    *c = (meta_case){0};
}
