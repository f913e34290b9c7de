/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests HTML pages: what is escaped, and that graphs of thousands of nodes give bounded pages.
 */
#include "support/unit.h"

/* Both cmocka and cltool have a macro of this name; the tests need cmocka's. */
#undef fail
#include "html_model.h"
#undef fail
#define fail() _fail(__FILE__, __LINE__)

#include <stdlib.h>
#include <string.h>

TEST_GROUP(NULL, NULL)

TEST(html_add__escapes_names)
{
    static const struct {
        const char *text, *html;
    } cases[] = {{"a/b_1", "a/b_1"},
                 {"</script><img src=x onerror='f()'>",
                  "&lt;/script&gt;&lt;img src=x onerror=&#39;f()&#39;&gt;"},
                 {"\"&\"", "&quot;&amp;&quot;"},
                 {"\xC3\xA9\xF0\x9F\x98\x80", "\xC3\xA9\xF0\x9F\x98\x80"},
                 {"\xFF\x01\x7F", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},
                 {"", ""}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        text_buffer b = {0};
        html_add(&b, cases[i].text, 0);
        char *text = text_buffer_take(&b);
        assert_string_equal(text, cases[i].html);
        free(text);
    }
}

TEST(html_add__cuts_between_characters)
{
    text_buffer b = {0};
    html_add(&b,
             "ab\xC3\xA9"
             "d",
             3);
    char *text = text_buffer_take(&b);
    assert_string_equal(text, "ab...");
    free(text);
}

static void add_node(clg_builder *builder, const char *op_type, size_t i)
{
    char name[32], x[32], y[32];
    (void)snprintf(name, sizeof name, "node%zu", i);
    (void)snprintf(x, sizeof x, "x%zu", i);
    (void)snprintf(y, sizeof y, "x%zu", i + 1);
    assert_int_equal(clg_builder_node(builder, "", op_type, name, 1, (const char *[]){x}, 1,
                                      (const char *[]){y}),
                     CLG_OK);
}

/* Returns the page of a chain of n nodes. */
static char *page_of_chain(size_t n)
{
    clg_builder *builder;
    clg_model *model;
    clg_node_info *nodes;
    size_t n_nodes;
    char y[32], *text;
    clg_model_info info = CLG_MODEL_INFO_INIT;
    assert_int_equal(clg_builder_create(13, &builder), CLG_OK);
    assert_int_equal(clg_builder_input(builder, "x0", CLG_FLOAT32, 1, (int64_t[]){4}, NULL),
                     CLG_OK);
    for (size_t i = 0; i < n; i++) add_node(builder, "Relu", i);
    (void)snprintf(y, sizeof y, "x%zu", n);
    assert_int_equal(clg_builder_output(builder, y), CLG_OK);
    assert_int_equal(clg_builder_build(builder, &model), CLG_OK);
    clg_builder_free(builder);
    assert_int_equal(clg_model_get_info(model, &info), CLG_OK);
    assert_int_equal(clg_model_nodes(model, &nodes, &n_nodes), CLG_OK);
    const model_page page = {.model_name = "</title><script>alert(1)</script>",
                             .model = model,
                             .info = &info,
                             .nodes = nodes,
                             .n_nodes = n_nodes};
    assert_int_equal(html_model(&page, &text), CODE_DONE);
    clg_node_list_free(nodes, n_nodes);
    clg_model_free(model);
    return text;
}

static size_t count(const char *text, const char *word)
{
    size_t n = 0;
    for (const char *at = text; (at = strstr(at, word)) != NULL; at += strlen(word)) n++;
    return n;
}

TEST(html_model__draws_each_node_and_names_nothing_unescaped)
{
    char *text = page_of_chain(12);
    assert_int_equal(count(text, "<rect "), 12 + 2);
    assert_int_equal(count(text, "<script>"), 1); /* its own */
    assert_null(strstr(text, "alert(1)</script>"));
    assert_non_null(strstr(text, "&lt;script&gt;alert(1)"));
    assert_non_null(strstr(text, "float32 [4]"));
    assert_null(strstr(text, "not drawn"));
    free(text);
}

TEST(html_model__is_bounded_for_thousands_of_nodes)
{
    char *text = page_of_chain(5000);
    assert_int_equal(count(text, "<rect "), 2000 + 2);
    assert_non_null(strstr(text, "3000 more are not drawn"));
    assert_true(strlen(text) < 3000000);
    free(text);
}
