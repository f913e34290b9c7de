/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements value_kind.h.
 */
#include "value_kind.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* By the first word of a metavar, its capital letters. A metavar FILE.npy has the ending itself. */
static const struct {
    const char *metavar;
    value_kind kind;
    const char *words;
} kinds[] = {
    {"FILE", VALUE_FILE, ""},
    {"DATA", VALUE_FILE, ""},
    {"MODEL", VALUE_FILE, "onnx"},
    {"SHARD", VALUE_FILE, ""},
    {"DIR", VALUE_FOLDER, ""},
    {"SELECTOR", VALUE_DEVICE, "auto gpu cpu all nvidia amd intel pocl mesa"},
    {"COMMAND", VALUE_COMMAND, ""},
    {"KIND", VALUE_WORDS, "random: zeros ones"},
    {"HOW", VALUE_WORDS, "stretch crop pad corner short:"},
    {"LIMIT", VALUE_WORDS, "memory= steps= compile= run= untrusted"},
    {"LOSS", VALUE_WORDS, "cross-entropy nll bce-with-logits mse l1 huber output"},
    {"OPTIMIZER", VALUE_WORDS, "sgd adam adamw adagrad rmsprop"},
    {"SCHEDULE", VALUE_WORDS, "constant step exponential linear cosine"},
};

/* Returns whether all of a text are words of small letters and digits with '|' between. */
static bool is_words(const char *text)
{
    bool has_bar = false;
    for (; *text; text++) {
        has_bar |= *text == '|';
        if (*text != '|' && *text != '-' && !islower((unsigned char)*text) &&
            !isdigit((unsigned char)*text))
            return false;
    }
    return has_bar;
}

value_completion value_completion_of(const char *metavar)
{
    value_completion v = {VALUE_OTHER, false, ""};
    if (is_words(metavar)) {
        v.kind = VALUE_WORDS;
        (void)snprintf(v.words, sizeof v.words, "%s", metavar);
        for (char *bar = v.words; (bar = strchr(bar, '|')) != NULL;) *bar = ' ';
        return v;
    }
    if (metavar[0] == '[') metavar++;
    const char *equals = strncmp(metavar, "NAME=", 5) == 0 ? metavar + 4 : NULL;
    v.is_named = equals != NULL;
    if (equals) metavar = equals + 1 + (equals[1] == ']');
    size_t n = 0;
    while (isupper((unsigned char)metavar[n])) n++;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds && v.kind == VALUE_OTHER; i++) {
        if (strlen(kinds[i].metavar) != n || strncmp(kinds[i].metavar, metavar, n) != 0) continue;
        v.kind = kinds[i].kind;
        (void)snprintf(v.words, sizeof v.words, "%s", kinds[i].words);
    }
    if (v.kind == VALUE_FILE && metavar[n] == '.' && islower((unsigned char)metavar[n + 1]))
        (void)snprintf(v.words, sizeof v.words, "%.*s",
                       (int)strspn(metavar + n + 1, "abcdefghijklmnopqrstuvwxyz"), metavar + n + 1);
    return v;
}

size_t argument_completions(const char *usage, value_completion out[2])
{
    char first[sizeof out->words] = "";
    size_t n = 0;
    /* alternatives are words; but where the first is a file, "MODEL | --suite", that is meant */
    const bool is_value = usage[0] == '[' || isupper((unsigned char)usage[0]);
    if (is_value || !strstr(usage, " | ")) {
        out[0] = value_completion_of(usage[0] == '[' ? usage + 1 : usage);
        return usage[0] ? 1 : 0;
    }
    for (const char *part = usage; part; part = strstr(part, " | ")) {
        part += part == usage ? 0 : 3;
        n += (size_t)snprintf(first + n, sizeof first - n, "%s%.*s", n > 0 ? " " : "",
                              (int)strcspn(part, " "), part);
        if (n >= sizeof first) break;
    }
    out[0] = (value_completion){VALUE_WORDS, false, ""};
    memcpy(out[0].words, first, sizeof first);
    out[1] = (value_completion){VALUE_FILE, false, ""};
    return 2;
}
