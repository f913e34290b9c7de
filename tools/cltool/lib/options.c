/* SPDX-License-Identifier: Apache-2.0
 *
 * Defines the table of options, and parses the command line with it.
 */
#include "option_table.h"

#include "limit_words.h"
#include "output.h"
#include "suggestion.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AT(field) offsetof(options, field)

static const option_row rows[] = {
    {"ops", 0, KIND_FLAG, AT(ops), OPTIONS_INSPECT, NULL, "where each node runs, and why"},
    {"plan", 0, KIND_FLAG, AT(plan), OPTIONS_INSPECT, NULL,
     "steps, kernels and memory on the device (needs one)"},
    {"batch", 0, KIND_FLAG, AT(shows_batch), OPTIONS_INSPECT, NULL,
     "which inputs and outputs carry the batch, if its rows are independent"},
    {"dot", 0, KIND_TEXT, AT(dot), OPTIONS_INSPECT, "FILE",
     "write the graph for Graphviz; '-': to standard output"},
    {"html", 0, KIND_TEXT, AT(html), OPTIONS_INSPECT, "FILE",
     "write a page with the graph, its shapes, parameters and FLOPs, to open in a browser"},
    {"list", 'l', KIND_FLAG, AT(list), OPTIONS_DEVICES, NULL,
     "selectors and names alone, without asking the devices for more"},
    {"measure", 0, KIND_FLAG, AT(measure), OPTIONS_DEVICES, NULL,
     "measure arithmetic, memory, transfers and launches"},
    {"diagnose", 0, KIND_FLAG, AT(diagnose), OPTIONS_DEVICES, NULL,
     "diagnose OpenCL on this machine"},
    {"output", 'o', KIND_TEXT, AT(output), OPTIONS_RUN, "DIR",
     "write each output to DIR/NAME.npy; '-': to standard output"},
    {"format", 0, KIND_WORD, AT(format), OPTIONS_RUN | OPTIONS_PREDICT, "npy|npz|csv|jsonl",
     "of -o - (default npy); npz has all outputs, of run alone"},
    {"output", 'o', KIND_LIST, AT(outputs), OPTIONS_PREDICT, "[NAME=]FILE",
     "write an output there: .npy, or .csv or .jsonl with a line for each row; '-': to standard "
     "output (repeatable)"},
    {"output", 'o', KIND_TEXT, AT(output), OPTIONS_MERGE, "FILE.npy", "write the rows there"},
    {"rows", 0, KIND_SIZE, AT(rows), OPTIONS_MERGE, "N", "how many rows there must be"},
    {"shard", 0, KIND_TEXT, AT(shard), OPTIONS_PREDICT, "I/N",
     "only part I of N, from 1 on; 'array': of a Slurm job array; 'none': all (default: the rank)"},
    {"resume", 0, KIND_FLAG, AT(resume), OPTIONS_PREDICT, NULL,
     "go on where an earlier run of the same command ended; refused for another model or data"},
    {"top", 0, KIND_SIZE, AT(top), OPTIONS_RUN | OPTIONS_PREDICT, "K",
     "the K largest scores of classes of each row"},
    {"labels", 0, KIND_TEXT, AT(labels), OPTIONS_RUN | OPTIONS_PREDICT, "FILE",
     "names of classes, one a line"},
    {"boxes", 0, KIND_TEXT, AT(boxes), OPTIONS_RUN, "FORMAT",
     "outputs are boxes: yolov8, yolox, ssd, detr, ...; 'list' shows the formats"},
    {"score-threshold", 0, KIND_REAL, AT(score_threshold), OPTIONS_RUN, "S",
     "boxes of at least this score (default: the format's)"},
    {"nms", 0, KIND_REAL, AT(nms), OPTIONS_RUN, "IOU",
     "of boxes of a class that overlap more, only the best (default: the format's; 1: all)"},
    {"segments", 0, KIND_FLAG, AT(segments), OPTIONS_RUN, NULL,
     "an output has a class for each pixel, or scores of classes"},
    {"draw", 0, KIND_TEXT, AT(draw), OPTIONS_RUN, "FILE.png",
     "write the image with boxes or segments there"},
    {"expect", 0, KIND_LIST, AT(expect), OPTIONS_RUN, "NAME=FILE",
     "compare an output; exit 1 on a difference (repeatable)"},
    {"dump", 0, KIND_LIST, AT(dump), OPTIONS_RUN, "NODE|all",
     "show what a node computes, or all of them; with -o also to files"},
    {"tolerance", 0, KIND_TEXT, AT(tolerance), OPTIONS_VERIFY, "FILE.json",
     "{\"case\": [rtol, atol]}, \"case/output\" for one output, \"default\" for the others"},
    {"list-skipped", 0, KIND_FLAG, AT(list_skipped), OPTIONS_VERIFY, NULL,
     "at the end, the skipped cases by reason"},
    {"compare-random", 0, KIND_FLAG, AT(compare_random), OPTIONS_VERIFY, NULL,
     "compare random operators, too: for cases whose parameters leave one answer"},
    {"expect-pass", 0, KIND_TEXT, AT(expect_pass), OPTIONS_VERIFY, "FILE",
     "names of cases, one a line, that must pass; exit 1 naming those that did not"},
    {"against", 0, KIND_TEXT, AT(against), OPTIONS_DIFF, "[SELECTOR][@HOW,...]",
     "the other way: another device, and fp32, simd, simt, no-blas or without-PASS"},
    {"reference", 0, KIND_TEXT, AT(reference), OPTIONS_DIFF, "DIR",
     "in place of another way: values as 'cltool run --dump all -o DIR' writes them"},
    {"output", 'o', KIND_TEXT, AT(output), OPTIONS_GRADIENT, "DIR",
     "write each gradient to DIR/NAME.npy"},
    {"of", 0, KIND_TEXT, AT(of), OPTIONS_GRADIENT, "NAME",
     "the output to differentiate: the sum of its elements (default: the only float output)"},
    {"loss", 0, KIND_TEXT, AT(loss), OPTIONS_GRADIENT, "LOSS[:NAME=N,...]",
     "differentiate a loss: cross-entropy, nll, bce-with-logits, mse, l1, huber, or output"},
    {"target", 0, KIND_TEXT, AT(target), OPTIONS_GRADIENT, "[NAME=]FILE",
     "what the loss compares the output NAME with: classes or values"},
    {"wrt", 0, KIND_LIST, AT(wrt), OPTIONS_GRADIENT, "PATTERN",
     "only by inputs and initializers of such names (* and ? as in a shell), or by a result of a "
     "node (repeatable)"},
    {"check", 0, KIND_FLAG, AT(check), OPTIONS_GRADIENT, NULL,
     "compare with finite differences, node by node; exit 1 when a gradient is wrong"},
    {"output", 'o', KIND_TEXT, AT(output), OPTIONS_TRAIN, "FILE.onnx",
     "write the trained model there"},
    {"loss", 0, KIND_TEXT, AT(loss), OPTIONS_TRAIN, "LOSS[:NAME=N,...]",
     "cross-entropy, nll, bce-with-logits, mse, l1, huber, or output: the model's own"},
    {"of", 0, KIND_TEXT, AT(of), OPTIONS_TRAIN, "NAME",
     "the value that the loss takes (default: the only output)"},
    {"target", 0, KIND_TEXT, AT(target), OPTIONS_TRAIN, "FILE",
     "what the loss compares with, a row for each row of the inputs (default: the classes of an "
     "input's folder)"},
    {"class-weights", 0, KIND_TEXT, AT(class_weights), OPTIONS_TRAIN, "FILE",
     "a weight for each class in the mean of the loss (.npy, .csv)"},
    {"optimizer", 0, KIND_TEXT, AT(optimizer), OPTIONS_TRAIN, "OPTIMIZER[:NAME=N,...]",
     "sgd, adam (default), adamw, adagrad or rmsprop; 'sgd:momentum=0.9,nesterov=1'"},
    {"lr", 0, KIND_REAL, AT(lr), OPTIONS_TRAIN, "R", "learning rate (default 1e-3)"},
    {"schedule", 0, KIND_TEXT, AT(schedule), OPTIONS_TRAIN, "SCHEDULE[:NAME=N,...]",
     "constant (default), step, exponential, linear or cosine; 'cosine:warmup_steps=100'"},
    {"batch", 0, KIND_TEXT, AT(batch), OPTIONS_TRAIN, "N",
     "rows of a batch (default: what the model fixes, else 32)"},
    {"epochs", 0, KIND_SIZE, AT(epochs), OPTIONS_TRAIN, "N", "passes over the rows (default 10)"},
    {"accumulate", 0, KIND_SIZE, AT(accumulate), OPTIONS_TRAIN, "N", "batches of a step"},
    {"seed", 0, KIND_SIZE0, AT(seed), OPTIONS_TRAIN, "N",
     "of the order of rows, and of what Dropout drops (default 0)"},
    {"validation", 0, KIND_REAL, AT(validation), OPTIONS_TRAIN, "SHARE",
     "part of the rows that is kept apart, and whose loss each epoch shows"},
    {"train", 0, KIND_LIST, AT(trained), OPTIONS_TRAIN, "PATTERN",
     "only initializers of such names (* and ? as in a shell; repeatable)"},
    {"freeze", 0, KIND_LIST, AT(frozen), OPTIONS_TRAIN, "PATTERN",
     "not initializers of such names (repeatable)"},
    {"head", 0, KIND_SIZE, AT(head), OPTIONS_TRAIN, "N",
     "give the last layer (Gemm, MatMul, Conv) new weights for N classes, from --init and --seed"},
    {"freeze-rest", 0, KIND_FLAG, AT(freeze_rest), OPTIONS_TRAIN, NULL,
     "with --head: train only the new weights"},
    {"clip-norm", 0, KIND_REAL, AT(clip_norm), OPTIONS_TRAIN, "R",
     "scale gradients down to this norm of all"},
    {"clip-value", 0, KIND_REAL, AT(clip_value), OPTIONS_TRAIN, "R",
     "cut elements of gradients to this size"},
    {"batchnorm", 0, KIND_TEXT, AT(batchnorm), OPTIONS_TRAIN, "FORM",
     "BatchNormalization computes as in the model (default), by its statistics ('fixed'), or by "
     "those of the batch ('training'), which move its own; 'training:population_variance=1'"},
    {"dropout", 0, KIND_TEXT, AT(dropout), OPTIONS_TRAIN, "FORM",
     "Dropout drops as in the model (default), always ('on') or never ('off')"},
    {"checkpoint", 0, KIND_TEXT, AT(checkpoint), OPTIONS_TRAIN, "FILE.npz",
     "save the training there at the end, and when it is interrupted"},
    {"every", 0, KIND_SIZE, AT(every), OPTIONS_TRAIN, "N", "and every N steps"},
    {"keep", 0, KIND_SIZE, AT(keep), OPTIONS_TRAIN, "N",
     "and those of the last N times as FILE-STEP.npz"},
    {"best", 0, KIND_TEXT, AT(best), OPTIONS_TRAIN, "FILE.onnx",
     "write the model there after each epoch that is the best so far"},
    {"best-by", 0, KIND_WORD, AT(best_by), OPTIONS_TRAIN, "loss|accuracy",
     "of the validation: what --best compares (default loss)"},
    {"on-nan", 0, KIND_WORD, AT(on_nan), OPTIONS_TRAIN, "stop|skip",
     "what a loss that is not finite does (default stop; skip: the step)"},
    {"resume", 0, KIND_FLAG, AT(resume), OPTIONS_TRAIN, NULL,
     "go on from --checkpoint, with the same numbers; refused for other options"},
    {"augment", 0, KIND_TEXT, AT(augment), OPTIONS_TRAIN, "WORDS",
     "change images at random, in this order: flip, crop:PIXELS, shift:PIXELS; 'flip,crop:4'"},
    {"classes", 0, KIND_TEXT, AT(classes), OPTIONS_TRAIN, "FILE",
     "write the names of a folder's classes there, as 'cltool run --labels' reads them"},
    {"memory", 0, KIND_TEXT, AT(memory), OPTIONS_TRAIN, "BYTES",
     "compute batches in equal parts, so that a step needs at most this memory of the device"},
    {"inexact", 0, KIND_FLAG, AT(inexact), OPTIONS_TRAIN, NULL,
     "with --memory: also where the parts change the result"},
    {"dry-run", 0, KIND_FLAG, AT(dry_run), OPTIONS_TRAIN, NULL,
     "print the parameters and the memory of a step; train and write nothing"},
    {"log", 0, KIND_TEXT, AT(log), OPTIONS_TRAIN, "FILE",
     "a line for each step and epoch: of CSV if it ends in .csv, else of JSON"},
    {"tensorboard", 0, KIND_TEXT, AT(tensorboard), OPTIONS_TRAIN, "DIR",
     "the same numbers as a file of events there, for TensorBoard"},
    {"plot", 0, KIND_TEXT, AT(plot), OPTIONS_TRAIN, "FILE.svg",
     "a plot of loss and accuracy of each epoch"},
    {"output", 'o', KIND_TEXT, AT(output), OPTIONS_NEW, "FILE.onnx", "write the model there"},
    {"conv", 0, KIND_TEXT, AT(convs), OPTIONS_NEW, "N,N...",
     "cnn: channels of each convolution, whose output has the height and width of its input"},
    {"kernel", 0, KIND_SIZE, AT(kernel), OPTIONS_NEW, "N",
     "cnn: height and width of the kernels, odd (default 3)"},
    {"pool", 0, KIND_SIZE, AT(pool), OPTIONS_NEW, "N",
     "cnn: the maximum of N x N pixels after each convolution (default 2; 1: none)"},
    {"dense", 0, KIND_TEXT, AT(denses), OPTIONS_NEW, "N,N...",
     "cnn: sizes of the layers after them, the last of the logits"},
    {"activation", 0, KIND_WORD, AT(activation), OPTIONS_NEW, "relu|tanh|gelu",
     "after each layer but the last (default relu)"},
    {"batchnorm", 0, KIND_FLAG, AT(has_norm), OPTIONS_NEW, NULL,
     "BatchNormalization before each activation"},
    {"dropout", 0, KIND_REAL, AT(drop_rate), OPTIONS_NEW, "P",
     "Dropout after each dense layer but the last"},
    {"init", 0, KIND_WORD, AT(init), OPTIONS_NEW | OPTIONS_TRAIN, "pytorch|kaiming|xavier",
     "of new weights (default pytorch)"},
    {"seed", 0, KIND_SIZE0, AT(seed), OPTIONS_NEW, "N", "of the weights (default 0)"},
    {"decode", 0, KIND_TEXT, AT(decode), OPTIONS_TOKENIZE, "IDS",
     "print the text of these ids, as in 1,2,3"},
    {"no-special", 0, KIND_FLAG, AT(no_special), OPTIONS_TOKENIZE, NULL,
     "without the special tokens around a text; with --decode, without any"},
    {"prompt", 0, KIND_TEXT, AT(prompt), OPTIONS_GENERATE, "TEXT",
     "the text to go on with; '-': from standard input"},
    {"tokens", 0, KIND_TEXT, AT(tokens), OPTIONS_GENERATE, "N,N...",
     "in place of a text, ids of tokens; then ids are printed, too"},
    {"max-tokens", 0, KIND_SIZE, AT(max_tokens), OPTIONS_GENERATE, "N",
     "new tokens at most (default 256)"},
    {"temperature", 0, KIND_REAL, AT(temperature), OPTIONS_GENERATE, "T",
     "of the draws; 0: the most likely token (default, as of those below: the folder's)"},
    {"top-k", 0, KIND_TEXT, AT(top_k), OPTIONS_GENERATE, "K",
     "draw among the K most likely tokens; 0: all"},
    {"top-p", 0, KIND_REAL, AT(top_p), OPTIONS_GENERATE, "P",
     "draw among the most likely tokens whose probabilities sum up to P"},
    {"min-p", 0, KIND_REAL, AT(min_p), OPTIONS_GENERATE, "P",
     "draw among tokens at least P times as likely as the most likely one"},
    {"repetition-penalty", 0, KIND_REAL, AT(repetition_penalty), OPTIONS_GENERATE, "R",
     "make tokens that occurred less likely, by more the larger R above 1"},
    {"seed", 0, KIND_SIZE0, AT(seed), OPTIONS_GENERATE, "N", "of the draws (default 0)"},
    {"stop", 0, KIND_LIST, AT(stops), OPTIONS_GENERATE, "TEXT",
     "end before this text (repeatable)"},
    {"context", 0, KIND_SIZE, AT(context), OPTIONS_GENERATE, "N",
     "tokens of prompt and text at most (default: the model's)"},
    {"output", 'o', KIND_TEXT, AT(output), OPTIONS_REPORT, "FILE", "write the report there"},
    {"batch", 0, KIND_TEXT, AT(batch), OPTIONS_BENCH | OPTIONS_REPORT, "N,N...",
     "sizes of the first dimension"},
    {"batch", 0, KIND_TEXT, AT(batch), OPTIONS_PREDICT, "N",
     "rows at a time (default: what the model fixes, else measured)"},
    {"suite", 0, KIND_FLAG, AT(suite), OPTIONS_BENCH, NULL,
     "in place of MODEL, built-in models with random weights: all, or those of NAMES"},
    {"output", 'o', KIND_TEXT, AT(output), OPTIONS_BENCH, "FILE",
     "also write the results to a .md, .csv or .json file"},
    {"measure", 0, KIND_FLAG, AT(measure), OPTIONS_BENCH, NULL,
     "measure the device's peaks too, and show the share of them that was reached"},
    {"each", 0, KIND_FLAG, AT(each), OPTIONS_BENCH, NULL,
     "each selected device separately, and a summary (default --device all)"},
    {"concurrency", 0, KIND_SIZE, AT(concurrency), OPTIONS_BENCH, "N",
     "N concurrent sessions, a thread each"},
    {"compare", 0, KIND_TEXT, AT(compare), OPTIONS_BENCH, "SELECTOR[@PRECISION]",
     "in turn with another device; exit 1 when outputs differ"},
    {"warmup", 0, KIND_SIZE0, AT(warmup), OPTIONS_BENCH, "N", "runs before measuring (default 3)"},
    {"trace", 0, KIND_TEXT, AT(trace), OPTIONS_PROFILE, "FILE",
     "write Chrome/Perfetto JSON with host and device rows"},
    {"html", 0, KIND_TEXT, AT(html), OPTIONS_PROFILE, "FILE",
     "write a page to open in a browser: tables, roofline, timeline, graph"},
    {"split", 0, KIND_WORD, AT(split),
     OPTIONS_RUN | OPTIONS_PREDICT | OPTIONS_BENCH | OPTIONS_PROFILE, "rows|layers",
     "divide rows of the batch (default) or layers of the model among devices"},
    {"runs", 0, KIND_SIZE, AT(runs), OPTIONS_RUNS, "N", "runs to measure"},
    {"time", 0, KIND_REAL, AT(time), OPTIONS_TUNE, "SECONDS", "of measuring (default 10)"},
    {"all", 0, KIND_FLAG, AT(all), OPTIONS_SELFTEST, NULL,
     "every kernel with a reference, not only those of nodes with several implementations"},
    {"export", 0, KIND_TEXT, AT(export_file), OPTIONS_TUNE, "FILE",
     "write all choices that were measured on this device"},
    {"max-size", 0, KIND_TEXT, AT(max_size), OPTIONS_CACHE, "BYTES",
     "prune: keep this much, 64M for example (default: the cache's own limit)"},
    {"crashes", 0, KIND_FLAG, AT(crashes), OPTIONS_CACHE, NULL,
     "clear: only what is known of crashes of the driver's compiler, so that it is tried again"},
    {"force", 0, KIND_FLAG, AT(force), OPTIONS_FORCE, NULL, "overwrite files that exist"},
    {"rtol", 0, KIND_REAL, AT(rtol), OPTIONS_DIFF, "R",
     "relative tolerance of floats (default 1e-3)"},
    {"atol", 0, KIND_REAL, AT(atol), OPTIONS_DIFF, "A",
     "absolute tolerance of all (default: see above)"},
    {"rtol", 0, KIND_REAL, AT(rtol), OPTIONS_TOLERANCE, "R", "relative tolerance (default 1e-3)"},
    {"atol", 0, KIND_REAL, AT(atol), OPTIONS_TOLERANCE, "A", "absolute tolerance (default 1e-7)"},

    {"input", 'i', KIND_LIST, AT(inputs), OPTIONS_INPUT, "[NAME=]FILE",
     ".npy, .npz, .pb or .csv, '-': from standard input; for rows also IDX (repeatable)"},
    {"image", 0, KIND_LIST, AT(images), OPTIONS_INPUT, "[NAME=]FILE",
     "an image, values 0..1; several make a batch"},
    {"fill", 0, KIND_LIST, AT(fills), OPTIONS_INPUT, "[NAME=]KIND",
     "random:SEED[:LO:HI], zeros or ones (repeatable)"},
    {"header", 0, KIND_WORD, AT(header), OPTIONS_INPUT, "yes|no",
     "whether the first line of a .csv names its columns (default: unless all cells are numbers)"},
    {"cast", 0, KIND_FLAG, AT(cast), OPTIONS_INPUT, NULL, "allow lossy casts of inputs"},
    {"mean", 0, KIND_TEXT, AT(mean), OPTIONS_INPUT, "A,B,C",
     "taken from each channel of images, also in IDX"},
    {"std", 0, KIND_TEXT, AT(std), OPTIONS_INPUT, "A,B,C", "then each channel is divided by it"},
    {"scale", 0, KIND_REAL, AT(scale), OPTIONS_INPUT, "S",
     "multiplies 0..1 before the mean is taken"},
    {"preset", 0, KIND_TEXT, AT(preset), OPTIONS_INPUT, "NAME",
     "the options for images of a family of models, where not given; 'list' shows them"},
    {"resize", 0, KIND_TEXT, AT(resize), OPTIONS_INPUT, "HOW[:SIZE]",
     "stretch, crop, pad or corner (to the input's size, or SIZE if that is free), or "
     "short:N[:MAX]"},
    {"crop", 0, KIND_TEXT, AT(crop), OPTIONS_INPUT, "N|HxW",
     "then take the centre, of the image's own size or after --resize short:N"},
    {"pad", 0, KIND_TEXT, AT(pad), OPTIONS_INPUT, "LEVEL",
     "the gray around an image, 0 (default) to 255"},
    {"filter", 0, KIND_WORD, AT(filter), OPTIONS_INPUT, "bilinear|bicubic",
     "of --resize (default: bilinear), as Pillow's"},
    {"max-pixels", 0, KIND_SIZE, AT(max_pixels), OPTIONS_INPUT, "N",
     "refuse images of more pixels (default 100 million)"},
    {"channels", 0, KIND_WORD, AT(channels), OPTIONS_INPUT, "rgb|bgr|gray",
     "their order (default: rgb, or gray for one channel)"},
    {"layout", 0, KIND_WORD, AT(layout), OPTIONS_INPUT, "nchw|nhwc",
     "of images (else guessed from the shape)"},
    {"shape", 0, KIND_LIST, AT(shapes), OPTIONS_SHAPE, "NAME=AxBxC",
     "the shape of an input (repeatable)"},
    {"dim", 0, KIND_LIST, AT(dims), OPTIONS_SHAPE, "SYMBOL=N",
     "a free dimension; 1 when not given (repeatable)"},

    {"device", 'd', KIND_TEXT, AT(device), OPTIONS_DEVICE, "SELECTOR",
     "auto, gpu, cpu, all, a vendor, P:D, id:..., part of a name (default $CLG_DEVICE, then auto)"},
    {"fallback", 0, KIND_TEXT, AT(fallback), OPTIONS_DEVICE, "SELECTOR",
     "serves when nothing matches"},
    {"cpu-threads", 0, KIND_SIZE, AT(cpu_threads), OPTIONS_DEVICE, "N",
     "compute units of a CPU device to use"},
    {"max-launch-ms", 0, KIND_TEXT, AT(max_launch_ms), OPTIONS_DEVICE, "MS",
     "divide launches that take longer; 'none': no limit (default: 500 on GPUs, else none)"},
    {"precision", 0, KIND_WORD, AT(precision), OPTIONS_PLAN, "fp32|fp16|auto",
     "of values between nodes (default fp32; auto: fp16 on GPUs that compute in it)"},
    {"keep-fp32", 0, KIND_LIST, AT(keep_fp32), OPTIONS_PLAN, "PATTERN",
     "with fp16: nodes of such names stay in fp32 (* and ? as in a shell)"},
    {"kernels", 0, KIND_WORD, AT(kernels), OPTIONS_PLAN | OPTIONS_SELFTEST, "simd|simt",
     "class of kernels (default: the device's)"},
    {"no-blas", 0, KIND_FLAG, AT(no_blas), OPTIONS_PLAN, NULL, "never use CLBlast"},
    {"strict", 0, KIND_FLAG, AT(strict), OPTIONS_PLAN, NULL, "refuse numeric work on the host"},
    {"read-files", 0, KIND_FLAG, AT(read_files), OPTIONS_MODEL, NULL,
     "read model files into memory instead of mapping them: others may then truncate them"},
    {"limits", 0, KIND_LIMITS, AT(limits), OPTIONS_MODEL | OPTIONS_INSPECT, "LIMIT=N,...",
     "memory=BYTES, steps=N, compile=TIME, run=TIME (1g, 30s, 500ms), or 'untrusted' for a model "
     "from anywhere"},
    {"disable-pass", 0, KIND_LIST, AT(disabled_passes), OPTIONS_PLAN, "NAME",
     "do not run this graph pass (repeatable)"},
    {"prefer", 0, KIND_LIST, AT(preferred_impls), OPTIONS_PLAN, "IMPL",
     "compute nodes by this implementation where they have it, as 'inspect --plan' names it "
     "(repeatable)"},

    {"json", 0, KIND_FLAG, AT(json), OPTIONS_ALL, NULL, "one JSON document on standard output"},
    {"verbose", 'v', KIND_COUNT, AT(verbose), OPTIONS_ALL, NULL, "say more; twice: even more"},
    {"quiet", 'q', KIND_FLAG, AT(quiet), OPTIONS_ALL, NULL, "say less"},
    {"help", 'h', KIND_FLAG, AT(help), OPTIONS_ALL, NULL, "this text"},
};
#define N_ROWS (sizeof rows / sizeof rows[0])

const option_row *option_rows(size_t *out_n)
{
    *out_n = N_ROWS;
    return rows;
}

/* ---- parsing --------------------------------------------------------------------------------- */

static void append(text_list *list, const char *text)
{
    if (list->count == list->capacity) {
        list->capacity = list->capacity * 2 + 8;
        list->items = must_resize(list->items, list->capacity, sizeof *list->items);
    }
    list->items[list->count++] = text;
}

bool option_takes_value(const option_row *row)
{
    return row->kind != KIND_FLAG && row->kind != KIND_COUNT;
}

/* Checks that a text is one of the words of a row of KIND_WORD. */
static int check_word(const char *what, const option_row *row, const char *text)
{
    const char *names[16] = {NULL};
    char *copy = must_copy(row->metavar), *rest = copy;
    size_t n = 0;
    for (char *word; n < 15 && (word = split_next(&rest, '|')) != NULL;) names[n++] = word;
    const int code = option_word(what, text, names, sizeof *names, &n);
    free(copy);
    return code;
}

static int store(options *o, const option_row *row, const char *text)
{
    void *field = (char *)o + row->offset;
    char what[64];
    (void)snprintf(what, sizeof what, "--%s", row->name);
    switch (row->kind) {
    case KIND_FLAG: *(bool *)field = true; break;
    case KIND_COUNT: *(size_t *)field += 1; break;
    case KIND_TEXT: *(const char **)field = text; break;
    case KIND_WORD: *(const char **)field = text; return check_word(what, row, text);
    case KIND_LIST: append(field, text); break;
    case KIND_SIZE: return option_size(what, text, 1, field);
    case KIND_LIMITS: return limits_parse(text, field);
    case KIND_SIZE0: return option_size(what, text, 0, field);
    case KIND_REAL: {
        int code = option_real(what, text, field);
        if (code != CODE_DONE) return code;
        if (*(double *)field < 0)
            return fail_usage("%s takes a number of at least 0, not '%s'", what, text);
    }
    }
    return CODE_DONE;
}

/* Finds an option by its long name of n bytes or by its letter. Prefers one in `groups`; otherwise
 * returns an option that only other commands accept, or NULL when there is none. */
static const option_row *find(const char *name, size_t n, char letter, unsigned groups)
{
    const option_row *found = NULL;
    for (size_t i = 0; i < N_ROWS; i++) {
        bool is_named = name && strlen(rows[i].name) == n && strncmp(rows[i].name, name, n) == 0;
        if (!is_named && !(letter && rows[i].letter == letter)) continue;
        if (rows[i].groups & groups) return &rows[i];
        found = &rows[i];
    }
    return found;
}

/* Hints at the option of the groups that a word most likely means, or at the list of them. */
static void hint_option(const char *command, unsigned groups, const char *word)
{
    char name[SUGGESTION_BYTES];
    suggestion s;
    word += strspn(word, "-");
    (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(word, "="), word);
    suggestion_begin(&s, name);
    s.prefix = "--";
    for (size_t i = 0; i < N_ROWS; i++)
        if (rows[i].groups & groups) suggestion_offer(&s, rows[i].name);
    if (!suggestion_hint(&s)) fail_hint("'cltool %s --help' lists the options", command);
}

typedef struct reader {
    options *options;
    const char *command;
    unsigned groups;
    char **next, **end;
} reader;

static int refuse(const reader *r, const option_row *row, const char *word)
{
    if (row) {
        (void)fail_usage("'cltool %s' does not take %s", r->command, word);
        fail_hint("'cltool %s --help' lists the options", r->command);
    } else {
        (void)fail_usage("there is no option '%s'", printable(word));
        hint_option(r->command, r->groups, word);
    }
    return CODE_USAGE;
}

static int take_value(reader *r, const option_row *row, const char *word, const char *value)
{
    if (!value && r->next == r->end) return fail_usage("%s needs a value: %s", word, row->metavar);
    return store(r->options, row, value ? value : *r->next++);
}

static int read_long(reader *r, const char *word)
{
    const char *equals = strchr(word, '=');
    size_t n = equals ? (size_t)(equals - word) : strlen(word);
    const option_row *row = find(word + 2, n - 2, 0, r->groups);
    if (!row || !(row->groups & r->groups)) return refuse(r, row, word);
    if (strcmp(row->name, "warmup") == 0) r->options->has_warmup = true;
    if (option_takes_value(row)) return take_value(r, row, word, equals ? equals + 1 : NULL);
    if (equals) return fail_usage("--%s takes no value", row->name);
    return store(r->options, row, "");
}

/* Parses a word of short options, such as "-v", "-vv", "-d cpu" or "-dcpu". */
static int read_short(reader *r, const char *word)
{
    for (const char *letter = word + 1; *letter; letter++) {
        const option_row *row = find(NULL, 0, *letter, r->groups);
        if (!row || !(row->groups & r->groups)) return refuse(r, row, word);
        if (option_takes_value(row)) return take_value(r, row, word, letter[1] ? letter + 1 : NULL);
        int code = store(r->options, row, "");
        if (code != CODE_DONE) return code;
    }
    return CODE_DONE;
}

int options_parse(options *o, const char *command, unsigned groups, int argc, char **argv)
{
    *o = (options){.rtol = 1e-3,
                   .atol = -1,
                   .scale = -1,
                   .score_threshold = -1,
                   .nms = -1,
                   .temperature = -1,
                   .top_p = -1,
                   .min_p = -1,
                   .repetition_penalty = -1};
    o->arguments = must_alloc((size_t)argc + 1, sizeof *o->arguments);
    reader r = {o, command, groups, argv, argv + argc};
    bool only_arguments = false;
    while (r.next != r.end) {
        const char *word = *r.next++;
        int code = CODE_DONE;
        if (only_arguments || word[0] != '-' || word[1] == '\0') {
            o->arguments[o->n_arguments++] = word;
        } else if (strcmp(word, "--") == 0) {
            only_arguments = true;
        } else {
            code = word[1] == '-' ? read_long(&r, word) : read_short(&r, word);
        }
        if (code != CODE_DONE) return code;
    }
    return CODE_DONE;
}

void options_deinit(options *o)
{
    text_list *lists[] = {&o->keep_fp32, &o->disabled_passes, &o->inputs,
                          &o->images,    &o->fills,           &o->shapes,
                          &o->dims,      &o->expect,          &o->dump,
                          &o->outputs,   &o->preferred_impls, &o->wrt,
                          &o->trained,   &o->frozen,          &o->stops};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) free(lists[i]->items);
    free(o->arguments);
}

void options_print(unsigned groups)
{
    for (size_t i = 0; i < N_ROWS; i++) {
        const option_row *row = &rows[i];
        if (!(row->groups & groups) || !row->help) continue;
        char left[64], letter[8] = "    ";
        if (row->letter) (void)snprintf(letter, sizeof letter, "-%c, ", row->letter);
        (void)snprintf(left, sizeof left, "%s--%s%s%s", letter, row->name, row->metavar ? " " : "",
                       row->metavar ? row->metavar : "");
        if (strlen(left) > 31) {
            (void)printf("  %s\n  %-31s  %s\n", left, "", row->help);
        } else {
            (void)printf("  %-31s  %s\n", left, row->help);
        }
    }
}
