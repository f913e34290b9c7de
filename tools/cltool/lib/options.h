/* SPDX-License-Identifier: Apache-2.0
 *
 * The command line as a struct, parsed by one table of options. Options form groups; each command
 * accepts some of the groups.
 */
#ifndef CLTOOL_OPTIONS_H
#define CLTOOL_OPTIONS_H

#include "failure.h"

typedef struct text_list {
    const char **items;
    size_t count, capacity;
} text_list;

typedef struct options {
    /* all commands */
    bool help, json, quiet;
    size_t verbose;
    /* the device and planning */
    const char *device, *fallback;
    const char *precision, *kernels;
    text_list keep_fp32, disabled_passes, preferred_impls;
    bool strict, no_blas, read_files;
    bool shows_early; /* of the command: the first result matters more than the whole time */
    size_t cpu_threads;
    const char *max_launch_ms, *split;
    clg_limits limits; /* of models; all zeros: not given */
    /* inputs */
    text_list inputs, images, fills, shapes, dims;
    bool cast;
    const char *header;
    const char *mean, *std, *resize, *channels, *layout;
    const char *preset, *crop, *filter, *pad;
    double scale;      /* below 0: not given */
    size_t max_pixels; /* of an image; 0: not given */
    /* devices */
    bool list, measure, diagnose;
    /* inspect */
    bool ops, plan, shows_batch;
    const char *dot, *html; /* html: of profile too */
    /* run */
    const char *output, *labels, *format;
    const char *boxes, *draw;
    bool segments;
    double score_threshold, nms; /* below 0: not given */
    bool force;
    bool crashes;
    size_t top;
    text_list expect, dump;
    double rtol, atol; /* tolerances; atol below 0: not given */
    /* verify */
    const char *tolerance, *expect_pass;
    bool list_skipped;
    bool compare_random;
    /* bench, profile */
    const char *batch, *compare, *trace;
    bool each, suite;
    size_t runs, warmup, concurrency;
    bool has_warmup;
    /* tune */
    double time; /* seconds; 0: not given */
    const char *export_file;
    /* selftest */
    bool all;
    /* diff */
    const char *against, *reference;
    /* gradient */
    const char *of, *loss, *target;
    text_list wrt;
    bool check;
    /* train; 0 or NULL: not given */
    const char *optimizer, *schedule, *checkpoint, *log, *classes, *augment, *batchnorm, *dropout;
    const char *on_nan, *best, *best_by, *class_weights;
    double lr, validation, clip_norm, clip_value;
    size_t epochs, accumulate, every, keep, seed;
    text_list trained, frozen;
    size_t head;
    bool freeze_rest, dry_run, inexact;
    const char *memory;
    const char *tensorboard, *plot;
    /* new; NULL or 0: not given */
    const char *convs, *denses, *activation, *init;
    size_t kernel, pool;
    double drop_rate;
    bool has_norm;
    /* predict */
    text_list outputs;
    const char *shard;
    bool resume;
    /* generate; below 0 or NULL: not given */
    const char *prompt, *tokens;
    double temperature, top_p, min_p, repetition_penalty;
    const char *top_k;
    size_t max_tokens, context; /* 0: not given */
    text_list stops;
    /* merge */
    size_t rows; /* 0: not given */
    /* cache */
    const char *max_size;
    /* tokenize */
    const char *decode;
    bool no_special;

    const char **arguments; /* positional */
    size_t n_arguments;
} options;

/* Groups of options that commands accept. */
enum option_groups {
    OPTIONS_ALL = 1u << 0,
    OPTIONS_DEVICE = 1u << 1,
    OPTIONS_PLAN = 1u << 2,
    OPTIONS_SHAPE = 1u << 3,
    OPTIONS_INPUT = 1u << 4,
    OPTIONS_TOLERANCE = 1u << 5,
    OPTIONS_FORCE = 1u << 6,
    OPTIONS_RUNS = 1u << 7,
    OPTIONS_DEVICES = 1u << 8,
    OPTIONS_INSPECT = 1u << 9,
    OPTIONS_RUN = 1u << 10,
    OPTIONS_VERIFY = 1u << 11,
    OPTIONS_BENCH = 1u << 12,
    OPTIONS_PROFILE = 1u << 13,
    OPTIONS_CACHE = 1u << 14,
    OPTIONS_PREDICT = 1u << 15,
    OPTIONS_DIFF = 1u << 16,
    OPTIONS_TUNE = 1u << 17,
    OPTIONS_SELFTEST = 1u << 18,
    OPTIONS_MODEL = 1u << 19,
    OPTIONS_MERGE = 1u << 20,
    OPTIONS_GRADIENT = 1u << 21,
    OPTIONS_TRAIN = 1u << 22,
    OPTIONS_NEW = 1u << 23,
    OPTIONS_REPORT = 1u << 24,
    OPTIONS_TOKENIZE = 1u << 25,
    OPTIONS_GENERATE = 1u << 26
};

/* Parses the words after the command name. Options that are not in `groups` are rejected. */
int options_parse(options *o, const char *command, unsigned groups, int argc, char **argv);
void options_deinit(options *o);
/* Prints the help text of the options in these groups. */
void options_print(unsigned groups);

/* Default of --atol for verify and run. */
#define DEFAULT_ATOL 1e-7
/* Returns --atol, or `fallback` when it is not given. */
static inline double options_atol(const options *o, double fallback)
{
    return o->atol < 0 ? fallback : o->atol;
}

/* Splits "NAME=VALUE" at the first '='. *out_name is a copy, which the caller frees with free().
 * Without '=', returns false, with *out_name NULL and *out_value the whole text. */
bool option_pair(const char *text, char **out_name, const char **out_value);
/* Finds a word among names that are `stride` bytes apart, of which the last is NULL. Another word
 * is an error that names `what` and lists the names. */
int option_word(const char *what, const char *word, const char *const *names, size_t stride,
                size_t *out_index);
/* Parses a whole number of at least `min`; the error message names `what`. */
int option_size(const char *what, const char *text, size_t min, size_t *out_size);
/* Parses bytes such as "1000", "64k", "64M" or "1g"; the suffixes are powers of 1000. */
int option_bytes(const char *what, const char *text, uint64_t *out_bytes);
int option_real(const char *what, const char *text, double *out_real);
/* Parses a list of sizes such as "1,8,64"; the caller frees it with free(). */
int option_sizes(const char *what, const char *text, size_t **out_sizes, size_t *out_n);
/* Parses a shape such as "1x3x224x224", or "scalar" for rank 0. */
int option_dims(const char *what, const char *text, size_t *out_rank,
                int64_t out_dims[CLG_MAX_RANK]);

#endif
