/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests rules that compute an operator once more by others, as test_gradient_rules.c does.
 */
#include "support/unit.h"

#include "support/cases/gradient/composed_cases.h"
#include "support/fixtures/pocl_context.h"

TEST_GROUP(open_context, close_context)

TEST(attention_by_products) { composed_check(context, "attention"); }

TEST(attention_of_onnx_runtime) { composed_check(context, "microsoft_attention"); }

TEST(rotary_embeddings) { composed_check(context, "rotary"); }

TEST(fused_operators) { composed_check(context, "fused"); }

TEST(recurrent_layers) { composed_check(context, "recurrent"); }

TEST(images_at_positions) { composed_check(context, "samples"); }

TEST(transforms_and_determinants) { composed_check(context, "transforms"); }

TEST(moved_windows_and_caches) { composed_check(context, "windows"); }

TEST(control_flow_of_known_counts) { composed_check(context, "control"); }
