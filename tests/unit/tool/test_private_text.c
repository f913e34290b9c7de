/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests what is removed from the texts of a report: paths, names of the user and the machine.
 */
#include "support/unit.h"

/* Both cmocka and cltool have a macro of this name; the tests need cmocka's. */
#undef fail
#include "private_text.h"
#undef fail
#define fail() _fail(__FILE__, __LINE__)

#include <stdlib.h>
#include <string.h>

TEST_GROUP(NULL, NULL)

static const private_names names = {.user = "alice", .host = "wonderland"};

TEST(private_text__removes_paths_and_names)
{
    static const struct {
        const char *text, *clean;
    } cases[] = {
        {"", ""},
        {"nothing here", "nothing here"},
        {"'/people/alice/.cache/pocl' can be written", "'<path>' can be written"},
        {"'/people/al ice/my models/x.onnx': broken", "'<path>': broken"},
        {"OCL_ICD_VENDORS=/people/bob/icd:/people/x y", "OCL_ICD_VENDORS=<path>:<path> y"},
        {"~/.cache/clgraph is full", "<path> is full"},
        {"/data/secret", "<path>"},
        {"(/people/alice/x)", "(<path>)"},
        {"'/etc/OpenCL/vendors/pocl.icd' loads", "'pocl.icd' loads"},
        {"/dev/dri/renderD128 cannot be opened", "renderD128 cannot be opened"},
        {"'/usr/lib/x86_64-linux-gnu/libpocl.so.2'", "'libpocl.so.2'"},
        {"/usr/lib/", "lib"},
        {"C:\\Users\\alice\\x.onnx is missing", "<path> is missing"},
        {"'C:\\Windows\\System32\\OpenCL.dll' loads", "'OpenCL.dll' loads"},
        {"\\\\server\\share\\x", "<path>"},
        {"file:///people/alice/x", "file://<path>"},
        {"45 GFLOP/s, n/a, and/or", "45 GFLOP/s, n/a, and/or"},
        {"a / b // c", "a / b // c"},
        {"owner alice, group render on wonderland.local", "owner <user>, group render on "
                                                          "<host>.local"},
        {"malice, alice2, alice_x, alice-x", "malice, alice2, alice_x, <user>-x"},
        {"ratio 3:4, P:D, 0:0", "ratio 3:4, P:D, 0:0"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *clean = private_text(cases[i].text, &names);
        assert_string_equal(clean, cases[i].clean);
        free(clean);
    }
}

TEST(private_text__takes_unknown_names)
{
    static const private_names unknown = {.user = "", .host = "x"};
    char *clean = private_text("x is not replaced: too short", &unknown);
    assert_string_equal(clean, "x is not replaced: too short");
    free(clean);
}

TEST(private_json__reaches_every_string)
{
    json_t *document = json_pack("{s:[s, {s:s}], s:i, s:{s:[[s]]}}", "a", "/people/x", "b", "alice",
                                 "n", 3, "c", "d", "at wonderland");
    assert_non_null(document);
    private_json(document, &names);
    char *text = json_dumps(document, JSON_COMPACT);
    assert_non_null(text);
    assert_string_equal(text, "{\"a\":[\"<path>\",{\"b\":\"<user>\"}],\"n\":3,"
                              "\"c\":{\"d\":[[\"at <host>\"]]}}");
    free(text);
    json_decref(document);
}

TEST(private_names_get__gives_names_that_end)
{
    private_names found;
    memset(&found, 'x', sizeof found);
    private_names_get(&found);
    assert_true(strlen(found.user) < sizeof found.user);
    assert_true(strlen(found.host) < sizeof found.host);
    assert_null(strchr(found.host, '.'));
}
