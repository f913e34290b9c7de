/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests the tables of names of the OpenCL library, those of other systems included.
 */
#include "support/unit.h"

#include "ocl/library/opencl_names.h"

#include <string.h>

static bool has(const opencl_names *table, const char *name)
{
    for (size_t i = 0; table->names[i]; i++)
        if (strcmp(table->names[i], name) == 0) return true;
    return false;
}

/* A name is a file name or an absolute path: nothing is relative to the working directory. */
TEST(opencl_names__tables_are_well_formed)
{
    assert_true(n_opencl_name_tables > 0);
    for (size_t t = 0; t < n_opencl_name_tables; t++) {
        const opencl_names *table = &opencl_name_tables[t];
        size_t n = 0;
        for (; table->names[n]; n++) {
            const char *name = table->names[n], *slash = strchr(name, '/');
            assert_true(*name != '\0');
            assert_true(!slash || slash == name);
            assert_null(strstr(name, ".."));
            assert_null(strchr(name, '\\'));
            for (size_t i = 0; i < n; i++) assert_string_not_equal(table->names[i], name);
        }
        assert_in_range(n, 1, OPENCL_MAX_NAMES);
        assert_int_equal(table->opener != NULL, table->opener_function != NULL);
        assert_true(*table->hint != '\0');
        assert_ptr_equal(
            opencl_names_of(table->system, table->pointer_bits ? table->pointer_bits : 64), table);
    }
}

TEST(opencl_names__each_system_has_its_places)
{
    static const struct {
        const char *system;
        unsigned bits;
        const char *name;
    } cases[] = {
        {"Linux", 64, "libOpenCL.so.1"},
        {"Linux", 32, "libOpenCL.so"},
        {"Android", 64, "libOpenCL.so"},
        {"Android", 64, "libOpenCL-pixel.so"},
        {"Android", 64, "libOpenCL-car.so"},
        {"Android", 64, "/vendor/lib64/libOpenCL.so"},
        {"Android", 64, "/system/vendor/lib64/egl/libGLES_mali.so"},
        {"Android", 32, "/system/vendor/lib/libOpenCL.so"},
        {"Android", 32, "/system/vendor/lib/libPVROCL.so"},
        {"macOS", 64, "/System/Library/Frameworks/OpenCL.framework/OpenCL"},
        {"macOS", 64, "/System/Library/Frameworks/OpenCL.framework/Versions/Current/OpenCL"},
        {"FreeBSD", 64, "/usr/local/lib/libOpenCL.so.1"},
        {"NetBSD", 64, "/usr/pkg/lib/libOpenCL.so.1"},
        {"OpenBSD", 64, "libOpenCL.so"},
        {"Windows", 64, "OpenCL.dll"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const opencl_names *table = opencl_names_of(cases[i].system, cases[i].bits);
        assert_non_null(table);
        assert_true(has(table, cases[i].name));
    }
    assert_null(opencl_names_of("Plan 9", 64));
    assert_non_null(opencl_names_here());
}

/* A process opens no library of the other pointer size. */
TEST(opencl_names__android_folders_fit_the_pointers)
{
    const opencl_names *wide = opencl_names_of("Android", 64),
                       *narrow = opencl_names_of("Android", 32);
    for (size_t i = 0; wide->names[i]; i++) assert_null(strstr(wide->names[i], "/lib/"));
    for (size_t i = 0; narrow->names[i]; i++) assert_null(strstr(narrow->names[i], "lib64"));
    assert_string_equal(wide->names[0], "libOpenCL.so");
    assert_non_null(wide->opener);
}

/* A file in the working directory or beside a document must never be loaded. */
TEST(opencl_names__windows_searches_its_own_folder_alone)
{
    const opencl_names *table = opencl_names_of("Windows", 64);
    assert_true(table->system_folder_only);
    for (size_t i = 0; table->names[i]; i++) assert_null(strpbrk(table->names[i], "/\\:"));
}
