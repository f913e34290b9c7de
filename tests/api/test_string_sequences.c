/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests sequences and optionals of strings, and loops that carry strings, in models that the test
 * encodes. Test values are written as text: "one two|three" is a sequence of two tensors, the first
 * of two strings and the second of one.
 */
#include "support/fixtures/sized_data.h"
#include "support/unit.h"

#include "support/fixtures/build_session.h"
#include "support/fixtures/onnx_writer.h"
#include "support/fixtures/pocl_context.h"

#include <stdlib.h>
#include <string.h>

/* ---- values ---------------------------------------------------------------------------------- */

enum { TENSOR, SEQUENCE = OW_SEQUENCE, OPTIONAL = OW_OPTIONAL, MAX_ITEMS = 8 };

typedef struct word_list {
    const char *words[MAX_ITEMS];
    char text[128];
} word_list;

/* Creates a tensor of strings from text such as "one two". */
static clg_value *words_of(const char *text)
{
    word_list *list = calloc(1, sizeof *list);
    int64_t n = 0;
    clg_value *v;
    assert_non_null(list);
    assert_true(strlen(text) < sizeof list->text);
    memcpy(list->text, text, strlen(text));
    for (char *word = strtok(list->text, " "); word; word = strtok(NULL, " "))
        list->words[n++] = word;
    assert_ok(sized_wrap(CLG_STRING, 1, &n, list->words, free, list, &v));
    return v;
}

/* Creates a sequence of tensors from text such as "one two|three". */
static clg_value *sequence_of(const char *text)
{
    clg_value *items[MAX_ITEMS] = {NULL}, *v;
    size_t n = 0;
    for (const char *at = text; *at; n++) {
        char part[128] = {0};
        const size_t length = strcspn(at, "|");
        memcpy(part, at, length);
        items[n] = words_of(part);
        at += length + (at[length] == '|');
    }
    assert_ok(clg_value_create_sequence(CLG_STRING, n, items, &v));
    while (n > 0) clg_value_free(items[--n]);
    return v;
}

static void append(char *text, size_t size, const char *what)
{
    assert_true(strlen(text) + strlen(what) < size);
    (void)strcat(text, what);
}

static void say(const clg_value *v, char *text, size_t size)
{
    if (clg_value_get_kind(v) == CLG_VALUE_TENSOR) {
        assert_int_equal(clg_value_dtype(v), CLG_STRING);
        const char *const *words = clg_value_data(v);
        for (int64_t i = 0; i < clg_value_n_elements(v); i++) {
            if (i) append(text, size, " ");
            if (words[i]) append(text, size, words[i]); /* NULL is the empty string */
        }
        return;
    }
    for (size_t i = 0; i < clg_value_n_items(v); i++) {
        if (i) append(text, size, "|");
        say(clg_value_item(v, i), text, size);
    }
}

/* ---- models ---------------------------------------------------------------------------------- */

/* Returns a ValueInfoProto of strings: a tensor, a sequence or an optional of tensors. */
static ow_bytes info_of(const char *name, unsigned kind)
{
    return ow_info(name, ow_type_list(kind, ow_type_tensor(CLG_STRING)));
}

static void add_input(ow_model *m, const char *name, unsigned kind)
{
    if (kind == TENSOR)
        ow_input(m, name, CLG_STRING, SIZE_MAX, NULL, NULL);
    else
        ow_put_message(&m->graph, 11, info_of(name, kind));
}

static void add_output(ow_model *m, const char *name, unsigned kind)
{
    if (kind == TENSOR)
        ow_output(m, name, CLG_STRING);
    else
        ow_put_message(&m->graph, 12, info_of(name, kind));
}

static void add_words(ow_model *m, const char *name, const char *word)
{
    const int64_t one = 1;
    ow_bytes t = ow_tensor(name, CLG_STRING, 1, &one);
    ow_put_string(&t, 6, word); /* string_data */
    ow_initializer(m, t);
}

static void add_number(ow_model *m, const char *name, int64_t number)
{
    ow_initializer(m, ow_tensor_raw(name, CLG_INT64, 0, NULL, &number, sizeof number));
}

/* Sets an input from text: to a sequence if the text contains '|', else to a tensor. */
static void set(clg_session *s, const char *name, const char *text)
{
    clg_value *v = strchr(text, '|') ? sequence_of(text) : words_of(text);
    assert_ok(clg_session_set_input(s, name, v));
    clg_value_free(v);
}

static void expect(clg_session *s, const char *name, const char *wanted)
{
    clg_value *v;
    char text[256] = "";
    assert_ok(clg_session_get_output(s, name, &v));
    say(v, text, sizeof text);
    assert_string_equal(text, wanted);
    clg_value_free(v);
}

/* ---- sequences ------------------------------------------------------------------------------- */

TEST(string_sequences__are_made_and_changed)
{
    ow_model m = {.ir_version = 8, .opset = 20};
    add_input(&m, "a", TENSOR);
    add_input(&m, "b", TENSOR);
    add_words(&m, "c", "three"); /* a constant */
    add_number(&m, "one", 1);
    add_number(&m, "last", -1);
    ow_simple_node(&m, "SequenceConstruct", "", "a,b", "made");
    ow_simple_node(&m, "SequenceInsert", "", "made,c,one", "longer");
    ow_simple_node(&m, "SequenceErase", "", "longer,last", "shorter");
    ow_simple_node(&m, "SequenceAt", "", "longer,last", "taken");
    ow_bytes join = ow_node("ConcatFromSequence", "", "longer", "joined");
    ow_attribute_int(&join, "axis", 0);
    ow_add_node(&m, join);
    add_output(&m, "longer", SEQUENCE);
    add_output(&m, "shorter", SEQUENCE);
    add_output(&m, "taken", TENSOR);
    add_output(&m, "joined", TENSOR);
    clg_session *s = open_model(context, &m);
    for (int i = 0; i < 3; i++) { /* other strings need another plan; the first ones reuse theirs */
        set(s, "a", i == 1 ? "eins" : "one two");
        set(s, "b", i == 1 ? "zwei drei vier" : "four");
        assert_ok(clg_session_run(s));
        expect(s, "longer", i == 1 ? "eins|three|zwei drei vier" : "one two|three|four");
        expect(s, "shorter", i == 1 ? "eins|three" : "one two|three");
        expect(s, "taken", i == 1 ? "zwei drei vier" : "four");
        expect(s, "joined", i == 1 ? "eins three zwei drei vier" : "one two three four");
    }
    clg_session_free(s);
}

TEST(string_sequences__are_split_and_stacked)
{
    const int64_t parts[] = {1, 3}, two = 2;
    ow_model m = {.ir_version = 8, .opset = 20};
    ow_bytes split = ow_node("SplitToSequence", "", "x,parts", "cut"),
             each = ow_node("SplitToSequence", "", "x", "single"),
             stack = ow_node("ConcatFromSequence", "", "single", "stacked");
    add_input(&m, "x", TENSOR);
    ow_initializer(&m, ow_tensor_raw("parts", CLG_INT64, 1, &two, parts, sizeof parts));
    ow_attribute_int(&each, "keepdims", 0);
    ow_attribute_int(&stack, "axis", 0);
    ow_attribute_int(&stack, "new_axis", 1);
    ow_add_node(&m, split);
    ow_add_node(&m, each);
    ow_add_node(&m, stack);
    add_output(&m, "cut", SEQUENCE);
    add_output(&m, "single", SEQUENCE);
    add_output(&m, "stacked", TENSOR);
    clg_session *s = open_model(context, &m);
    set(s, "x", "a b c d");
    assert_ok(clg_session_run(s));
    expect(s, "cut", "a|b c d");
    expect(s, "single", "a|b|c|d");
    expect(s, "stacked", "a b c d");
    clg_session_free(s);
}

/* Splits a tensor [rows, columns] along the second axis. */
TEST(string_sequences__are_split_across)
{
    const int64_t dims[] = {2, 3};
    ow_model m = {.ir_version = 8, .opset = 20};
    ow_bytes split = ow_node("SplitToSequence", "", "grid", "cut");
    add_input(&m, "x", TENSOR);
    ow_initializer(&m,
                   ow_tensor_raw("dims", CLG_INT64, 1, (const int64_t[]){2}, dims, sizeof dims));
    ow_simple_node(&m, "Reshape", "", "x,dims", "grid");
    ow_attribute_int(&split, "axis", 1);
    ow_add_node(&m, split);
    add_output(&m, "cut", SEQUENCE);
    clg_session *s = open_model(context, &m);
    set(s, "x", "a b c d e f");
    assert_ok(clg_session_run(s));
    expect(s, "cut", "a d|b e|c f");
    clg_session_free(s);
}

TEST(string_sequences__are_inputs_and_outputs)
{
    ow_model m = {.ir_version = 8, .opset = 20};
    add_input(&m, "x", SEQUENCE);
    add_number(&m, "first", 0);
    ow_simple_node(&m, "Identity", "", "x", "same");
    ow_simple_node(&m, "SequenceAt", "", "x,first", "taken");
    ow_simple_node(&m, "Optional", "", "taken", "wrapped");
    ow_simple_node(&m, "OptionalGetElement", "", "wrapped", "found");
    add_output(&m, "same", SEQUENCE);
    add_output(&m, "wrapped", OPTIONAL);
    add_output(&m, "found", TENSOR);
    clg_session *s = open_model(context, &m);
    set(s, "x", "one two|three");
    assert_ok(clg_session_run(s));
    expect(s, "same", "one two|three");
    expect(s, "wrapped", "one two");
    expect(s, "found", "one two");
    set(s, "x", "four|five six|seven");
    assert_ok(clg_session_run(s));
    expect(s, "same", "four|five six|seven");
    expect(s, "found", "four");
    clg_session_free(s);
}

/* ---- bodies ---------------------------------------------------------------------------------- */

/* Appends y to the strings of each tensor of x, and splits them at commas. */
TEST(string_sequences__are_mapped)
{
    ow_model m = {.ir_version = 8, .opset = 20}, body = {0};
    ow_bytes map = ow_node("SequenceMap", "", "x,y", "mapped"),
             split = ow_node("StringSplit", "", "both", "parts,counts");
    add_input(&body, "word", TENSOR);
    add_input(&body, "more", TENSOR);
    ow_simple_node(&body, "StringConcat", "", "word,more", "both");
    ow_attribute_string(&split, "delimiter", ",");
    ow_add_node(&body, split);
    add_output(&body, "parts", TENSOR);
    ow_attribute_graph(&map, "body", body.graph);
    add_input(&m, "x", SEQUENCE);
    add_input(&m, "y", TENSOR);
    ow_add_node(&m, map);
    add_output(&m, "mapped", SEQUENCE);
    clg_session *s = open_model(context, &m);
    set(s, "x", "a,b|c d,e,f");
    set(s, "y", ",z");
    assert_ok(clg_session_run(s));
    expect(s, "mapped", "a b z|c z   d e f z"); /* [1,3]; [2,4], shorter rows end in "" */
    clg_session_free(s);
}

/* Runs three iterations that each append an x: as a growing sequence, and stacked. */
TEST(string_sequences__are_carried_by_loops)
{
    ow_model m = {.ir_version = 8, .opset = 20}, body = {0};
    ow_bytes loop = ow_node("Loop", "", "n,,x,none", "last,list,rows"),
             empty = ow_node("SequenceEmpty", "", "", "none");
    ow_loop_inputs(&body);
    add_input(&body, "word", TENSOR);
    add_input(&body, "list", SEQUENCE);
    add_words(&body, "x", "x");
    ow_simple_node(&body, "Identity", "", "on", "goes");
    ow_simple_node(&body, "StringConcat", "", "word,x", "longer");
    ow_simple_node(&body, "SequenceInsert", "", "list,longer", "grown");
    ow_simple_node(&body, "Identity", "", "longer", "row");
    ow_output(&body, "goes", CLG_BOOL);
    add_output(&body, "longer", TENSOR);
    add_output(&body, "grown", SEQUENCE);
    add_output(&body, "row", TENSOR);
    ow_attribute_graph(&loop, "body", body.graph);
    ow_attribute_int(&empty, "dtype", CLG_STRING);
    add_input(&m, "x", TENSOR);
    add_number(&m, "n", 3);
    ow_add_node(&m, empty);
    ow_add_node(&m, loop);
    add_output(&m, "last", TENSOR);
    add_output(&m, "list", SEQUENCE);
    add_output(&m, "rows", TENSOR);
    clg_session *s = open_model(context, &m);
    set(s, "x", "a b");
    assert_ok(clg_session_run(s));
    expect(s, "last", "axxx bxxx");
    expect(s, "list", "ax bx|axx bxx|axxx bxxx");
    expect(s, "rows", "ax bx axx bxx axxx bxxx");
    clg_session_free(s);
}

/* Inputs that Scan slices must have memory on the device. */
TEST(string_sequences__scan_refuses_them)
{
    ow_model m = {.ir_version = 8, .opset = 20}, body = {0};
    ow_bytes scan = ow_node("Scan", "", "x", "y");
    add_input(&body, "a", TENSOR);
    ow_simple_node(&body, "Identity", "", "a", "b");
    add_output(&body, "b", TENSOR);
    ow_attribute_int(&scan, "num_scan_inputs", 1);
    ow_attribute_graph(&scan, "body", body.graph);
    add_input(&m, "x", TENSOR);
    ow_add_node(&m, scan);
    add_output(&m, "y", TENSOR);
    clg_session *s = open_model(context, &m);
    set(s, "x", "a b");
    assert_error(clg_session_run(s), CLG_ERROR_UNSUPPORTED_DTYPE, "strings cannot be placed");
    clg_session_free(s);
}

TEST_GROUP(open_context, close_host_context)
