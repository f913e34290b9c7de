/* SPDX-License-Identifier: Apache-2.0
 *
 * Models for lives of sessions (session_life.h) whose inputs or outputs are more than tensors of numbers, and what such
 * a life does with them.
 */
#ifndef CLG_TESTS_SESSION_LIFE_VALUES_H
#define CLG_TESTS_SESSION_LIFE_VALUES_H

#include <clgraph/clgraph.h>

clg_status session_life_sequence_model(clg_model **out_model);
clg_status session_life_use_sequence(clg_context *context, clg_session *s);

clg_status session_life_add_classes(clg_builder *g);
clg_status session_life_use_classes(clg_context *context, clg_session *s);

clg_status session_life_map_model(clg_model **out_model);
clg_status session_life_use_map(clg_context *context, clg_session *s);

#endif
