/* SPDX-License-Identifier: Apache-2.0
 *
 * Prints docs/opencl.md from the library's tables of names and of advice. `cmake --build BUILD
 * --target docs_opencl` writes the file, the test lint.opencl_doc compares it.
 */
#include "ocl/diagnose/advice.h"
#include "ocl/library/opencl_names.h"

#include <stdio.h>

static void print_names(void)
{
    puts("## Names of the library\n");
    puts("In this order; the first library that has all functions of OpenCL 1.2 is used. Before "
         "them, the");
    puts("functions that the process has loaded already, with the application's own loader for "
         "example.\n");
    puts("| system | names |\n|---|---|");
    for (size_t i = 0; i < n_opencl_name_tables; i++) {
        const opencl_names *row = &opencl_name_tables[i];
        printf("| %s", row->system);
        if (row->pointer_bits) printf(", %u bits", row->pointer_bits);
        printf(" | ");
        for (size_t n = 0; row->names[n]; n++) printf("%s`%s`", n > 0 ? ", " : "", row->names[n]);
        if (row->opener) printf("; also by `%s` of `%s`", row->opener_function, row->opener);
        if (row->system_folder_only) printf(", in System32 alone");
        puts(" |");
    }
    puts(
        "\nA library with `enableOpenCL` and `loadOpenCLPointer`, as on Pixel phones, is asked for "
        "each");
    puts("function by the second, after a call of the first.\n");
}

static void print_android(void)
{
    puts("## Android\n");
    puts("From Android 12 on an app sees the vendor's library only if its manifest names it, in "
         "`<application>`:\n\n```xml");
    for (size_t n = 0; n < 3; n++)
        printf("<uses-native-library android:name=\"%s\" android:required=\"false\"/>\n",
               opencl_names_of("Android", 64)->names[n]);
    printf("<uses-native-library android:name=\"%s\" android:required=\"false\"/>\n```\n\n",
           opencl_names_of("Android", 64)->opener);
}

static void print_package(const char *package) { printf(package ? " `%s` |" : " none |", package); }

static void print_packages(void)
{
    puts("## Packages\n");
    puts("| system | command | loader | any processor | NVIDIA | AMD | Intel | Mesa (rusticl) |");
    puts("|---|---|---|---|---|---|---|---|");
    for (size_t i = 0; i < n_distributions; i++) {
        const distribution *d = &distributions[i];
        printf("| %s | `%s` |", d->title, d->install);
        print_package(d->loader);
        print_package(d->cpu);
        for (size_t v = 0; v < 3; v++) print_package(advice_package(&card_vendors[v], d));
        print_package(d->mesa);
        puts("");
    }
    puts("\nMesa's rusticl shows a GPU only where `RUSTICL_ENABLE` names its driver. A user has to "
         "be in the");
    puts("groups `render` and `video` to open a GPU's device node.\n");
}

int main(void)
{
    puts("<!-- Generated from src/ocl/library/opencl_names.c and src/ocl/diagnose/advice.c:");
    puts("     cmake --build build --target docs_opencl -->");
    puts("# How OpenCL is found\n");
    puts("The library opens OpenCL when it is first used, so a program starts on a machine without "
         "it.");
    puts("`cltool devices --diagnose` reports what was tried on a machine, and what is missing.\n");
    print_names();
    print_android();
    print_packages();
    puts("## Containers and virtual machines\n");
    puts("| within | to do |\n|---|---|");
    for (size_t i = 0; i < n_surroundings; i++)
        printf("| %s | %s |\n", surroundings[i].name, surroundings[i].advice);
    return 0;
}
