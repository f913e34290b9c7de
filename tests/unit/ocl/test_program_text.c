/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests the program text that is compiled for each kernel: only that kernel of its file, with the
 * line numbers of the file.
 */
#include "support/unit.h"

#include "base/strbuf.h"
#include "ocl/program.h"
#include "step/kernel_source.h"

#include <stdio.h>
#include <string.h>

static size_t count(const char *string, const char *word)
{
    size_t n = 0;
    for (const char *at = string; (at = strstr(at, word)) != NULL; at++) n++;
    return n;
}

/* Returns the number of lines before the first occurrence of a word; SIZE_MAX when there is none.
 */
static size_t line_of(const char *string, const char *word)
{
    size_t n = 0;
    const char *found = strstr(string, word);
    for (const char *at = string; found && at < found; at++) n += *at == '\n';
    return found ? n : SIZE_MAX;
}

/* Returns the end of the body of the kernel that starts at `kernel`: of the line with its first
 * brace if that closes it too, else at the first brace in column 1. */
static const char *end_of(const char *kernel)
{
    const char *open = strchr(kernel, '{'), *line_end = open ? strchr(open, '\n') : NULL;
    return line_end && line_end[-1] == '}' ? line_end : strstr(kernel, "\n}\n");
}

static void check_kernel(const kernel_source *source, const char *name)
{
    char head[128];
    strbuf t;
    const kernel_ref ref = {.source = source->name, .entry = name, .prelude = ""};
    assert_ok(program_text(&ref, &t));
    (void)snprintf(head, sizeof head, "\n__kernel void %s(", name);
    assert_int_equal(count(strbuf_data(&t), "\n__kernel void "), count(source->text, head));
    assert_int_equal(count(strbuf_data(&t), "\n__kernel void "), count(strbuf_data(&t), head));
    assert_int_equal(count(strbuf_data(&t), "\n"), count(source->text, "\n"));
    assert_int_equal(line_of(strbuf_data(&t), head), line_of(source->text, head));
    /* #if lines stay, lines about other kernels are removed, and braces are balanced, except where
     * a file has one in each branch of an #if */
    assert_int_equal(count(strbuf_data(&t), "\n#if"), count(source->text, "\n#if"));
    assert_int_equal(count(strbuf_data(&t), "\n#endif"), count(source->text, "\n#endif"));
    const char *kernel = strstr(strbuf_data(&t), head), *end = end_of(kernel);
    for (const char *at = strbuf_data(&t); (at = strstr(at, "\n#pragma unroll")) != NULL; at++)
        assert_true(at < end && (at > kernel || line_of(source->text, "__kernel void ") >
                                                    line_of(strbuf_data(&t), "#pragma unroll")));
    const size_t open = count(strbuf_data(&t), "{") - count(strbuf_data(&t), "}");
    assert_true(open == 0 || open == count(source->text, "{") - count(source->text, "}"));
    assert_int_equal(strbuf_data(&t)[t.size_bytes], '\0');
    strbuf_deinit(&t);
}

TEST(program_text__has_one_kernel_of_a_file)
{
    size_t n = 0;
    for (size_t i = 0; i < n_kernel_sources; i++)
        for (const char *at = kernel_sources[i].text;
             (at = strstr(at, "\n__kernel void ")) != NULL;) {
            char name[64] = "";
            at += strlen("\n__kernel void ");
            const size_t length = strcspn(at, "(");
            assert_true(length < sizeof name);
            memcpy(name, at, length);
            check_kernel(&kernel_sources[i], name);
            n++;
        }
    assert_true(n > 100);
}

TEST(program_text__of_generated_kernels_is_whole)
{
    strbuf t;
    const kernel_ref ref = {.source = "chain",
                            .entry = "one",
                            .prelude = "#define P_T 1\n",
                            .body =
                                "__kernel void one(int a)\n{\n}\n__kernel void two(int a)\n{\n}\n"};
    assert_ok(program_text(&ref, &t));
    assert_int_equal(count(strbuf_data(&t), "__kernel void "), 2);
    assert_int_equal(count(strbuf_data(&t), "#define P_T 1"), 1);
    strbuf_deinit(&t);
}

TEST(program_text__joins_numbers)
{
    strbuf t;
    kernel_ref ref = {.source = "chain",
                      .entry = "one",
                      .prelude = "",
                      .packed = "iblf",
                      .body = "WORK_GROUP_SIZE(1, 1, 1)\n"
                              "__kernel void one(int a, __global float *x, long x_off, float f)\n"
                              "{\n}\n"};
    assert_ok(program_text(&ref, &t));
    assert_int_equal(count(strbuf_data(&t), "__kernel void "), 1);
    assert_int_equal(count(strbuf_data(&t), "WORK_GROUP_SIZE(1, 1, 1)\n"
                                            "__kernel void one(__global void *b0, "
                                            "__global volatile int *begun, "
                                            "const packed_args numbers)\n"),
                     1);
    assert_int_equal(count(strbuf_data(&t), "void called_one(int a, __global float *x, "), 1);
    assert_int_equal(count(strbuf_data(&t), "{ long n[4]; }"), 1);
    assert_int_equal(count(strbuf_data(&t), "const int step = (int)numbers.n[3];"), 1);
    assert_int_equal(count(strbuf_data(&t), "if (begun && begun[1] != step) begun[1] = step;"), 1);
    assert_int_equal(count(strbuf_data(&t), "called_one((int)numbers.n[0], b0, numbers.n[1], "
                                            "as_float((int)numbers.n[2]));"),
                     1);
    assert_int_equal(count(strbuf_data(&t), "WORK_GROUP_SIZE(1, 1, 1)"), 1);
    strbuf_deinit(&t);
    ref.entry = "two";
    assert_int_equal(program_text(&ref, &t), CLG_ERROR_INTERNAL);
    ref.body =
        "#if A\n__kernel void two(int a)\n{\n}\n#else\n__kernel void two(const int b)\n{\n}\n"
        "#endif\n";
    ref.packed = "i";
    assert_ok(program_text(&ref, &t));
    assert_int_equal(count(strbuf_data(&t), "void called_two("), 2);
    assert_int_equal(count(strbuf_data(&t), "__kernel void "), 1);
    assert_int_equal(count(strbuf_data(&t), "#endif\ntypedef struct packed_args "), 1);
    strbuf_deinit(&t);
}

TEST(program_text__for_parts_has_functions_first)
{
    strbuf whole, part;
    kernel_ref ref = {.source = "gemm_plain", .entry = "gemm_plain", .prelude = "#define P_X 1\n"};
    assert_ok(program_text(&ref, &whole));
    assert_null(strstr(strbuf_data(&whole), "P_PART_DIM"));
    for (uint32_t dim = 0; dim < 3; dim++) {
        char head[64];
        ref.part = dim + 1;
        assert_ok(program_text(&ref, &part));
        (void)snprintf(head, sizeof head, "#define P_PART_DIM %u\n#define P_PART_OTHER %u\n", dim,
                       dim == 0 ? 1u : 0u);
        assert_int_equal(strncmp(strbuf_data(&part), head, strlen(head)), 0);
        assert_true(part.size_bytes > whole.size_bytes);
        assert_string_equal(strbuf_data(&part) + part.size_bytes - whole.size_bytes,
                            strbuf_data(&whole));
        strbuf_deinit(&part);
    }
    strbuf_deinit(&whole);
}
