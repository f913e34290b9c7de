/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests how the OpenCL library is found: names in order with reasons, a library in a vendor's
 * folder, the entry points of Pixel phones, and a library that another one opens. The libraries are
 * those of tests/libraries.
 */
#include "support/unit.h"

#include "support/scratch.h"

#include "ocl/library/opencl_library.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LIBRARIES CLG_TEST_BUILD_DIR "/tests/libraries/"

typedef struct functions {
    int (*flush)(void), (*finish)(void);
    bool wants_more; /* a function that no library here has */
} functions;

static bool take(const opencl_library *library, const char **out_missing, void *user)
{
    functions *f = user;
    int (*wait)(void);
    *out_missing = "clFlush";
    if (!opencl_library_function(library, *out_missing, &f->flush, sizeof f->flush)) return false;
    *out_missing = "clFinish";
    if (!opencl_library_function(library, *out_missing, &f->finish, sizeof f->finish)) return false;
    *out_missing = "clWaitForEvents";
    return !f->wants_more || opencl_library_function(library, *out_missing, &wait, sizeof wait);
}

static bool open_names(const opencl_names *names, functions *f, opencl_attempts *out_attempts)
{
    return opencl_library_open(names, take, f, out_attempts);
}

TEST(opencl_library__is_found_in_a_vendor_folder)
{
    char path[4096];
    assert_int_equal(mkdir(scratch_path("vendor"), 0700), 0);
    (void)snprintf(path, sizeof path, "%s", scratch_path("vendor/libOpenCL.so"));
    assert_int_equal(symlink(LIBRARIES "fake_opencl.so", path), 0);
    const char *const list[] = {"libno-such-opencl.so", path, "libnever-tried.so", NULL};
    const opencl_names names = {.names = list};
    functions f = {0};
    opencl_attempts attempts;
    assert_true(open_names(&names, &f, &attempts));
    assert_int_equal(f.flush(), 11);
    assert_int_equal(f.finish(), 12);
    assert_int_equal(attempts.count, 2);
    assert_string_equal(attempts.each[0].name, "libno-such-opencl.so");
    assert_non_null(strstr(attempts.each[0].why, "libno-such-opencl.so"));
    assert_null(attempts.each[0].missing);
    assert_string_equal(attempts.each[1].name, path);
    assert_string_equal(attempts.each[1].why, "");
}

TEST(opencl_library__that_lacks_a_function_is_passed_over)
{
    const char *const list[] = {LIBRARIES "fake_opencl.so", "libno-such-opencl.so", NULL};
    const opencl_names names = {.names = list};
    functions f = {.wants_more = true};
    opencl_attempts attempts;
    assert_false(open_names(&names, &f, &attempts));
    assert_int_equal(attempts.count, 2);
    assert_string_equal(attempts.each[0].missing, "clWaitForEvents");
    assert_string_equal(attempts.each[0].why, "it lacks clWaitForEvents");
    assert_true(attempts.each[1].why[0] != '\0');
}

TEST(opencl_library__entry_points_of_pixel_phones_are_used)
{
    const char *const list[] = {LIBRARIES "fake_pixel.so", NULL};
    const opencl_names names = {.names = list};
    functions f = {0};
    opencl_attempts attempts;
    assert_true(open_names(&names, &f, &attempts));
    assert_int_equal(f.flush(), 21);
    assert_int_equal(f.finish(), 22);
    f.wants_more = true;
    assert_false(open_names(&names, &f, &attempts));
    assert_string_equal(attempts.each[0].missing, "clWaitForEvents");
}

TEST(opencl_library__is_opened_by_another_where_the_process_may_not)
{
    const char *const list[] = {"vendor:" LIBRARIES "fake_opencl.so", NULL};
    opencl_names names = {.names = list,
                          .opener = LIBRARIES "fake_opener.so",
                          .opener_function = "android_load_sphal_library"};
    functions f = {0};
    opencl_attempts attempts;
    assert_true(open_names(&names, &f, &attempts));
    assert_int_equal(f.finish(), 12);

    names.opener_function = "android_load_no_library";
    assert_false(open_names(&names, &f, &attempts));
    assert_non_null(
        strstr(attempts.each[0].why, "vendor:")); /* dlopen's reason, not the opener's */
    names.opener = "libno-such-opener.so";
    assert_false(open_names(&names, &f, &attempts));
    names.opener = NULL;
    assert_false(open_names(&names, &f, &attempts));
}
