/* SPDX-License-Identifier: Apache-2.0
 *
 * Every entry of the operator table says how a gradient passes through it: by a rule, not at all
 * (zero), or why it cannot.
 */
#include "support/unit.h"

#include "ops/grad/grad_rule.h"

#include <stdio.h>

TEST(every_entry_says_how_a_gradient_passes)
{
    size_t n_missing = 0, n_rules = 0;
    for (size_t f = 0; f < n_op_families; f++)
        for (size_t i = 0; i < *op_families[f].n_rows; i++) {
            const op_row *row = &op_families[f].rows[i];
            n_rules += row->grad && row->grad->rule;
            if (row->grad) continue;
            (void)fprintf(stderr, "%s: %s%s%s of opset %d has no .grad\n", op_families[f].name,
                          row->domain ? row->domain : "", row->domain ? "." : "", row->name,
                          row->since);
            n_missing++;
        }
    assert_int_equal(n_missing, 0);
    assert_true(n_rules > 0);
}

/* A row has a rule or a reason, and formulas only for the rules that read them. */
TEST(entries_are_consistent)
{
    for (size_t f = 0; f < n_op_families; f++)
        for (size_t i = 0; i < *op_families[f].n_rows; i++) {
            const op_grad *grad = op_families[f].rows[i].grad;
            if (!grad) continue;
            assert_false(grad->rule && grad->reason);
            const bool reads =
                grad->rule == grad_pass_formula || grad->rule == grad_pass_reduce_formula;
            const bool has = grad->formulas[0] || grad->formulas[1] || grad->formulas[2];
            assert_int_equal(reads, has);
        }
}
