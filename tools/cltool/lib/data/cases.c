/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds ONNX test cases below a folder.
 */
#include "cases.h"

#include "host.h"
#include "names.h"

#include <stdlib.h>
#include <string.h>

#define MAX_DEPTH 16 /* of folders; links may be cyclic */

static void append(case_list *list, const char *folder)
{
    if (list->count == list->capacity) {
        list->capacity = list->capacity * 2 + 64;
        list->items = must_resize(list->items, list->capacity, sizeof *list->items);
    }
    char *path = must_copy(folder);
    size_t n = strlen(path);
    while (n > 1 && host_is_separator(path[n - 1])) path[--n] = '\0';
    list->items[list->count++] = (test_case){.path = path, .name = must_copy(path_base(path))};
}

static int find(const char *folder, int depth, case_list *list)
{
    char **names = NULL;
    size_t n = 0;
    char *model = path_join(folder, "model.onnx");
    bool is_case = path_exists(model);
    free(model);
    if (is_case) {
        append(list, folder);
        return CODE_DONE;
    }
    int failed = folder_list(folder, &names, &n);
    if (failed != 0)
        return fail_file("the folder '%s' cannot be read: %s", folder, strerror(failed));
    int code = CODE_DONE;
    for (size_t i = 0; i < n; i++) {
        char *path = path_join(folder, names[i]);
        if (code == CODE_DONE && depth < MAX_DEPTH && path_is_folder(path))
            code = find(path, depth + 1, list);
        free(path);
        free(names[i]);
    }
    free(names);
    return code;
}

int cases_find(const char *folder, case_list *list)
{
    if (!path_exists(folder)) return fail_file("there is not a folder '%s'", folder);
    if (!path_is_folder(folder)) return fail_file("'%s' is not a folder", folder);
    return find(folder, 0, list);
}

void cases_free(case_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->items[i].path);
        free(list->items[i].name);
        free(list->items[i].reason);
    }
    free(list->items);
    *list = (case_list){0};
}
