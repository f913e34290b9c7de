/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests the builder of candidates (implementations of a node as lists of steps): lists keep their
 * order, the first error is kept, and calls after an error write only to dummy objects.
 */
#include "support/fakes/failing_alloc.h"
#include "support/unit.h"

#include "step/step.h"

#include <string.h>

typedef struct fixture {
    arena memory;
    step_builder b;
} fixture;

static int set_up(void **state)
{
    static fixture f;
    f = (fixture){0};
    step_builder_init(&f.b, &f.memory, NULL);
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    arena_deinit(&((fixture *)*state)->memory);
    return 0;
}

TEST_WITH(step__builds_lists_in_order, set_up, tear_down)
{
    step_builder *b = &((fixture *)*state)->b;
    candidate *one = step_candidate(b, "one"), *two = step_candidate(b, "two");
    const uint64_t global[2] = {8, 4}, local[2] = {4, 2};
    step *a = step_kernel(b, one, "gemm", "gemm_main", prelude_text(b, "P_A=%d P_T=float", 3));
    step_arg_buffer(b, a, operand_input(1), CLG_FLOAT32);
    step_arg_int(b, a, -7);
    step_arg_long(b, a, INT64_MIN);
    step_arg_float(b, a, 0.5);
    step_arg_local(b, a, 64);
    step_arg_fault(b, a, 3);
    step_range(b, a, 2, global, local);
    step *c = step_copy(b, one, operand_input(0), operand_output(0), 12);
    gemm_problem p = {.a = operand_input(0),
                      .b = operand_input(1),
                      .c = operand_output(0),
                      .m = 1,
                      .n = 1,
                      .k = 1};
    step *g = step_blas_gemm(b, two, &p);
    assert_ok(step_builder_check(b, 2, 1));
    assert_ptr_equal(b->candidates, one);
    assert_ptr_equal(one->next, two);
    assert_ptr_equal(one->steps, a);
    assert_ptr_equal(a->next, c);
    assert_ptr_equal(one->last_step, c);
    assert_ptr_equal(two->steps, g);
    assert_true(two->uses_blas);
    assert_false(one->uses_blas);
    assert_string_equal(a->kernel.prelude, "#define P_A 3\n#define P_T float\n");
    assert_int_equal(a->n_args, 6);
    assert_int_equal(a->args[0].kind, ARG_BUFFER);
    assert_int_equal(a->args[1].as.i, -7);
    assert_true(a->args[2].as.l == INT64_MIN);
    assert_true(a->args[3].as.f == 0.5f);
    assert_int_equal(a->args[4].as.bytes, 64);
    assert_int_equal(a->args[5].kind, ARG_FAULT);
    assert_int_equal(a->local[1], 2);
}

TEST_WITH(step__lists_of_args_are_as_one_by_one, set_up, tear_down)
{
    step_builder *b = &((fixture *)*state)->b;
    candidate *c = step_candidate(b, "c");
    step *s = step_kernel(b, c, "k", "k", "");
    const operand scratch = step_scratch(b, c, 4);
    STEP_BUFFERS(b, s, {operand_input(2), CLG_FLOAT16}, {scratch, CLG_INT4});
    STEP_INTS(b, s, 1, -2, INT32_MAX);
    STEP_LONGS(b, s, INT64_MAX, INT64_MIN);
    STEP_FLOATS(b, s, 0.5, -2);
    assert_ok(b->status);
    static const arg_kind kinds[] = {ARG_BUFFER, ARG_BUFFER, ARG_INT,   ARG_INT,  ARG_INT,
                                     ARG_LONG,   ARG_LONG,   ARG_FLOAT, ARG_FLOAT};
    assert_int_equal(s->n_args, sizeof kinds / sizeof *kinds);
    for (uint32_t i = 0; i < s->n_args; i++) assert_int_equal(s->args[i].kind, kinds[i]);
    assert_int_equal(s->args[0].buffer.index, 2);
    assert_int_equal(s->args[0].dtype, CLG_FLOAT16);
    assert_int_equal(s->args[1].buffer.space, OPERAND_SCRATCH);
    assert_int_equal(s->args[1].dtype, CLG_UINT8); /* offsets in bytes */
    assert_int_equal(s->args[2].as.i, 1);
    assert_int_equal(s->args[3].as.i, -2);
    assert_int_equal(s->args[4].as.i, INT32_MAX);
    assert_true(s->args[5].as.l == INT64_MAX && s->args[6].as.l == INT64_MIN);
    assert_true(s->args[7].as.f == 0.5f && s->args[8].as.f == -2.0f);
    STEP_INTS(b, s, 7, INT64_C(2147483648), INT64_C(2147483649));
    assert_error(b->status, CLG_ERROR_SHAPE, "2147483648");
    assert_int_equal(s->n_args, 10);
}

TEST_WITH(step__args_grow_to_their_maximum, set_up, tear_down)
{
    step_builder *b = &((fixture *)*state)->b;
    step *s = step_kernel(b, step_candidate(b, "c"), "k", "k", "");
    for (int i = 0; i < STEP_MAX_ARGS; i++) step_arg_int(b, s, i);
    assert_ok(b->status);
    for (int i = 0; i < STEP_MAX_ARGS; i++) assert_int_equal(s->args[i].as.i, i);
    step_arg_int(b, s, 0);
    assert_error(b->status, CLG_ERROR_INTERNAL, "too many kernel arguments");
}

TEST_WITH(step__ints_must_fit, set_up, tear_down)
{
    step_builder *b = &((fixture *)*state)->b;
    step *s = step_kernel(b, step_candidate(b, "c"), "k", "entry", "");
    step_arg_int(b, s, INT32_MAX);
    step_arg_int(b, s, INT32_MIN);
    assert_ok(b->status);
    step_arg_int(b, s, (int64_t)INT32_MAX + 1);
    assert_error(b->status, CLG_ERROR_SHAPE, "2147483648");
    assert_int_equal(s->n_args, 2);
}

TEST_WITH(step__packings_and_scratch, set_up, tear_down)
{
    step_builder *b = &((fixture *)*state)->b;
    const uint64_t global[1] = {16};
    candidate *c = step_candidate(b, "c");
    operand s0 = step_scratch(b, c, 100), s1 = step_scratch(b, c, 200);
    operand w = step_packing(b, c, 1, "rows nr=8", 400);
    for (int i = 0; i < 2; i++)
        step_range(b, step_pack_kernel(b, c, w, "pack", "pack", ""), 1, global, NULL);
    step *k = step_kernel(b, c, "k", "k", "");
    step_arg_buffer(b, k, s1, CLG_FLOAT32);
    step_arg_buffer(b, k, w, CLG_FLOAT32);
    step_range(b, k, 1, global, NULL);
    assert_ok(step_builder_check(b, 2, 1));
    assert_int_equal(s0.index, 0);
    assert_int_equal(s1.index, 1);
    assert_int_equal(c->scratch_bytes[1], 200);
    assert_int_equal(c->n_packings, 1);
    assert_string_equal(c->packings[0].recipe, "rows nr=8");
    assert_non_null(c->packings[0].steps->next);
    assert_error(step_builder_check(b, 1, 1), CLG_ERROR_INTERNAL,
                 "packs an input that is not there");
    (void)step_pack_kernel(b, c, s0, "pack", "pack", "");
    assert_error(b->status, CLG_ERROR_INTERNAL, "not a packed weight");
}

TEST_WITH(step__work_of_no_size_is_dropped, set_up, tear_down)
{
    step_builder *b = &((fixture *)*state)->b;
    const uint64_t some[2] = {4, 4}, none[2] = {4, 0}, local[2] = {4, 4};
    candidate *c = step_candidate(b, "c");
    step *s[4];
    for (int i = 0; i < 3; i++) s[i] = step_kernel(b, c, "k", "k", "");
    step_range(b, s[1], 2, none, local);
    step_arg_int(b, s[1], 1); /* harmless, though the step was removed */
    step_range(b, s[0], 2, some, local);
    step_range(b, s[2], 2, none, local);
    assert_ptr_equal(c->steps, s[0]);
    assert_null(s[0]->next);
    assert_ptr_equal(c->last_step, s[0]);
    s[3] = step_kernel(b, c, "k", "k", "");
    step_range(b, s[3], 2, some, local);
    assert_ptr_equal(s[0]->next, s[3]);
    (void)step_copy(b, c, operand_input(0), operand_output(0), 0);
    (void)step_fill(b, c, operand_output(0), 0, "abcd", 4);
    assert_null(s[3]->next);
    operand w = step_packing(b, c, 0, "r", 4);
    step *p = step_pack_kernel(b, c, w, "p", "p", "");
    step_range(b, p, 2, none, local);
    assert_null(c->packings[0].steps);
    assert_ok(step_builder_check(b, 1, 1));
}

TEST_WITH(step__fills, set_up, tear_down)
{
    step_builder *b = &((fixture *)*state)->b;
    candidate *c = step_candidate(b, "c");
    step *s = step_fill(b, c, operand_output(0), 8, "abcd", 4);
    assert_ok(b->status);
    assert_memory_equal(s->pattern, "abcd", 4);
    (void)step_fill(b, c, operand_output(0), 9, "abcd", 4);
    assert_error(b->status, CLG_ERROR_INTERNAL, "pattern");
}

TEST_WITH(step__refuses_bad_ranges, set_up, tear_down)
{
    step_builder *b = &((fixture *)*state)->b;
    const uint64_t global[1] = {10}, local[1] = {4};
    step *s = step_kernel(b, step_candidate(b, "c"), "k", "entry", "");
    step_range(b, s, 1, global, local);
    assert_error(b->status, CLG_ERROR_INTERNAL, "entry: global size is not a multiple");
}

TEST_WITH(step__check_finds_what_is_missing, set_up, tear_down)
{
    step_builder *b = &((fixture *)*state)->b;
    const uint64_t global[1] = {4};
    candidate *c = step_candidate(b, "c");
    step *s = step_kernel(b, c, "k", "entry", "");
    assert_error(step_builder_check(b, 1, 1), CLG_ERROR_INTERNAL, "entry) has no index space");
    step_range(b, s, 1, global, NULL);
    assert_ok(step_builder_check(b, 1, 1));
    step_arg_buffer(b, s, operand_input(1), CLG_FLOAT32);
    assert_error(step_builder_check(b, 1, 1), CLG_ERROR_INTERNAL, "operand that is not there");
    assert_ok(step_builder_check(b, 2, 1));
    step_arg_buffer(b, s, (operand){OPERAND_SCRATCH, 0, 0}, CLG_FLOAT32);
    assert_error(step_builder_check(b, 2, 1), CLG_ERROR_INTERNAL, "operand that is not there");
}

TEST_WITH(step__the_first_failure_stays, set_up, tear_down)
{
    step_builder *b = &((fixture *)*state)->b;
    candidate *c = step_candidate(b, "c");
    (void)prelude_text(b, "P_A");
    assert_error(b->status, CLG_ERROR_INTERNAL, "NAME=value");
    assert_string_equal(prelude_text(b, "P_B=1"), "");
    const uint64_t global[1] = {4};
    step *s = step_kernel(b, c, "k", "k", "");
    step_arg_int(b, s, 1);
    step_range(b, s, 1, global, NULL);
    assert_null(c->steps);
    candidate *other = step_candidate(b, "other");
    (void)step_copy(b, other, operand_input(0), operand_output(0), 4);
    (void)step_scratch(b, other, 4);
    (void)step_packing(b, other, 0, "r", 4);
    assert_null(c->next);
    assert_int_equal(b->status, CLG_ERROR_INTERNAL);
}

TEST_WITH(step__preludes, set_up, tear_down)
{
    step_builder *b = &((fixture *)*state)->b;
    assert_string_equal(prelude_text(b, "%s", ""), "");
    assert_string_equal(prelude_text(b, "A=1  B= C=x=y "),
                        "#define A 1\n#define B \n#define C x=y\n");
    assert_ok(b->status);
    char long_words[3000];
    memset(long_words, 'a', sizeof long_words - 1);
    long_words[sizeof long_words - 1] = '\0';
    (void)prelude_text(b, "A=%s", long_words);
    assert_error(b->status, CLG_ERROR_INTERNAL, "too long");
}

static clg_status build(void *user)
{
    (void)user;
    fixture f = {0};
    const uint64_t global[1] = {16};
    step_builder *b = &f.b;
    step_builder_init(b, &f.memory, NULL);
    for (int i = 0; i < 30; i++) {
        candidate *c = step_candidate(b, "c");
        operand w = step_packing(b, c, 0, "r", 4);
        step_range(b, step_pack_kernel(b, c, w, "p", "p", ""), 1, global, NULL);
        step *s =
            step_kernel_generated(b, c, "k", "k", prelude_text(b, "A=%d", i), "kernel void k() {}");
        for (int k = 0; k < 20; k++) step_arg_int(b, s, k);
        step_range(b, s, 1, global, NULL);
    }
    clg_status status = step_builder_check(b, 1, 1);
    arena_deinit(&f.memory);
    return status;
}

/* Checks that equal texts are stored once, so that the texts of equal kernels have equal addresses.
 */
TEST(step__texts_are_kept_once)
{
    step_texts texts = {0};
    char one[] = "__kernel void f() {}", other[] = "__kernel void f() {}";
    const char *kept = step_texts_keep(&texts, one);
    assert_non_null(kept);
    assert_ptr_not_equal(kept, one);
    one[0] = 'x';
    assert_string_equal(kept, other);
    assert_ptr_equal(step_texts_keep(&texts, other), kept);
    assert_ptr_equal(step_texts_keep(&texts, kept), kept);
    assert_null(step_texts_find(&texts, "key", 3));
    assert_ptr_equal(step_texts_keep_as(&texts, "key", 3, other), kept);
    assert_ptr_equal(step_texts_find(&texts, "key", 3), kept);
    assert_null(step_texts_find(&texts, "ke", 2));
    step_texts_deinit(&texts);
    assert_null(step_texts_find(&texts, "key", 3));
}

TEST_WITH(step__clones_outlive_what_they_were_made_of, set_up, tear_down)
{
    step_builder *b = &((fixture *)*state)->b;
    arena memory = {0};
    step_texts texts = {0};
    const uint64_t global[1] = {8};
    step *s = step_kernel(b, step_candidate(b, "c"), "gemm", "main", prelude_text(b, "P_A=1"));
    step_arg_int(b, s, 5);
    step_arg_buffer(b, s, operand_output(2), CLG_INT8);
    step_range(b, s, 1, global, NULL);
    s->label = "gemm 5";
    s->next = s;
    const step *own = step_clone(s, &memory, NULL), *shared = step_clone(s, &memory, &texts),
               *again = step_clone(s, &memory, &texts);
    assert_true(own && shared && again);
    assert_ptr_equal(shared->kernel.prelude, again->kernel.prelude);
    arena_clear(((fixture *)*state)->b.memory);
    const step *const clones[] = {own, shared, again};
    for (size_t i = 0; i < 3; i++) {
        assert_null(clones[i]->next);
        assert_string_equal(clones[i]->kernel.source, "gemm");
        assert_string_equal(clones[i]->kernel.entry, "main");
        assert_string_equal(clones[i]->kernel.prelude, "#define P_A 1\n");
        assert_string_equal(clones[i]->label, "gemm 5");
        assert_null(clones[i]->kernel.body);
        assert_int_equal(clones[i]->n_args, 2);
        assert_int_equal(clones[i]->args[0].as.i, 5);
        assert_int_equal(clones[i]->args[1].buffer.index, 2);
        assert_int_equal(clones[i]->global[0], 8);
    }
    arena_deinit(&memory);
    step_texts_deinit(&texts);
}

/* Adds a step with the generated kernel `body` and `items` work-items per work-group. Its arguments
 * are an int, a buffer, a long, a float and a fault code. */
static step *numbers_step(step_builder *b, const char *body, uint64_t items)
{
    const uint64_t global[1] = {8};
    step *s = step_kernel_generated(b, step_candidate(b, "c"), "chain", "k", "", body);
    step_arg_int(b, s, 1);
    step_arg_buffer(b, s, operand_input(0), CLG_FLOAT32);
    step_arg_long(b, s, 2);
    step_arg_float(b, s, 0.5);
    step_arg_fault(b, s, 1);
    step_range(b, s, 1, global, &items);
    return s;
}

TEST_WITH(step__numbers_are_joined_where_groups_have_one_item, set_up, tear_down)
{
    step_builder *b = &((fixture *)*state)->b;
    step_texts texts = {0};
    const uint64_t one = 1;
    const char *plain = "__kernel void k(int a)\n{\n}\n// not a kernel's: __local\n";
    const char *shared = "__kernel void k(int a)\n{\n    __local float x[4];\n}\n";
    b->texts = &texts;
    const step *alone = numbers_step(b, plain, 1), *again = numbers_step(b, plain, 1);
    const step *grouped = numbers_step(b, plain, 2), *sharing = numbers_step(b, shared, 1);
    const step *mixed = numbers_step(b,
                                     "#if A\n__kernel void k(int a)\n{\n}\n#else\n"
                                     "__kernel void k(int a)\n{\n__local int x;\n}\n#endif\n",
                                     1);
    const step *short_body = numbers_step(b, "__kernel void k(int a) { f(a); }\n__local", 1);
    const step *open = numbers_step(b, "__kernel void k(int a)\n{\n", 1);
    const step *other = numbers_step(b, "__kernel void other(int a)\n{\n}\n", 1);
    step *drawing = numbers_step(b, plain, 1), *local = numbers_step(b, plain, 1);
    step_arg_key(b, drawing, 1);
    step_arg_local(b, local, 16);
    candidate *c = step_candidate(b, "packs");
    step *few = step_kernel_generated(b, c, "chain", "k", "", plain);
    step_arg_int(b, few, 1);
    step_range(b, few, 1, &one, &one);
    step *packs = step_pack_kernel(b, c, step_packing(b, c, 0, "recipe", 16), "pack_panels",
                                   "pack_panels", "");
    for (int i = 0; i < 5; i++) step_arg_int(b, packs, i);
    step_range(b, packs, 1, &one, &one);
    assert_ok(b->status);
    assert_ok(step_builder_pack_args(b));
    assert_string_equal(alone->kernel.packed, "ibllfbi");
    assert_ptr_equal(alone->kernel.packed, again->kernel.packed);
    assert_string_equal(packs->kernel.packed, "iiiii");
    assert_string_equal(short_body->kernel.packed, "ibllfbi");
    assert_null(open->kernel.packed);
    assert_null(grouped->kernel.packed);
    assert_null(sharing->kernel.packed);
    assert_null(mixed->kernel.packed);
    assert_null(other->kernel.packed);
    assert_null(drawing->kernel.packed);
    assert_null(local->kernel.packed);
    assert_null(few->kernel.packed);
    step_texts_deinit(&texts);
}

static clg_status join_alone(void *unused)
{
    (void)unused;
    arena memory = {0};
    step_texts texts = {0};
    step_builder b;
    step_builder_init(&b, &memory, &texts);
    (void)numbers_step(&b, "__kernel void k(int a)\n{\n}\n", 1);
    clg_status status = b.status;
    if (status == CLG_OK) status = step_builder_pack_args(&b);
    arena_deinit(&memory);
    step_texts_deinit(&texts);
    return status;
}

TEST(step__joining_survives_every_failed_allocation)
{
    assert_true(fault_loop_alone(join_alone, NULL) > 5);
}

TEST(step__survives_every_failed_allocation) { assert_true(fault_loop_alone(build, NULL) > 5); }
