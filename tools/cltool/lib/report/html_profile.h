/* SPDX-License-Identifier: Apache-2.0
 *
 * The page of `cltool profile --html`: where the time goes, in tables, a roofline, a timeline and
 * the graph.
 */
#ifndef CLTOOL_HTML_PROFILE_H
#define CLTOOL_HTML_PROFILE_H

#include "html_page.h"
#include "profile_rows.h"

/* Something that the host did before the last run, or the last run itself. */
typedef struct host_event {
    char name[32];
    double start_ms, ms;
} host_event;

typedef struct profile_page {
    const char *model_name; /* of the file, without its folder */
    const clg_device_info *device;
    const char *precision;
    const profile_rows *rows;
    const clg_model *model;
    clg_session *session;
    const clg_shape_override *shapes; /* of the inputs */
    size_t n_shapes;
    const host_event *events; /* in order, from loading on */
    size_t n_events;
} profile_page;

/* Returns the page in *out_text, which the caller frees with free(). */
int html_profile(const profile_page *p, char **out_text);

/* Append sections of the page. */
void html_add_roofline(text_buffer *b, const profile_rows *rows);
void html_add_timeline(text_buffer *b, const profile_page *p);
/* Returns the class of an operator's colour, 0 to 7: the seven slowest have their own. */
int html_operator_colour(const profile_rows *rows, const char *op_type);
/* Appends the operators that have a colour of their own, with it. */
void html_add_colour_key(text_buffer *b, const profile_rows *rows);

#endif
