/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements image_folder.h.
 */
#include "image_folder.h"

#include "names.h"

#include <stdlib.h>
#include <string.h>

static bool is_image(const char *name)
{
    return path_ends_in(name, ".png") || path_ends_in(name, ".jpg") ||
           path_ends_in(name, ".jpeg") || path_ends_in(name, ".bmp") || path_ends_in(name, ".webp");
}

static int read_names(const char *folder, char ***out_names, size_t *out_n)
{
    const int failed = folder_list(folder, out_names, out_n);
    return failed == 0 ? CODE_DONE : fail_file("'%s' cannot be read: %s", folder, strerror(failed));
}

static void free_names(char **names, size_t n)
{
    for (size_t i = 0; i < n; i++) free(names[i]);
    free(names);
}

/* Takes ownership of the path. */
static void skip(image_folder *list, char *path)
{
    list->skipped = must_resize(list->skipped, list->n_skipped + 1, sizeof *list->skipped);
    list->skipped[list->n_skipped++] = (skipped_file){
        path, path_is_folder(path) ? "a folder" : "its name does not end as those of images do"};
}

/* Appends the images of one folder, and what else is there if there are any; *out_n: how many. */
static int add_images(const char *folder, image_folder *list, size_t *out_n)
{
    char **names = NULL;
    size_t n_names = 0;
    const size_t before = list->n_files;
    const int code = read_names(folder, &names, &n_names);
    if (code != CODE_DONE) return code;
    if (n_names > 0) list->files = must_resize(list->files, before + n_names, sizeof *list->files);
    for (size_t i = 0; i < n_names; i++)
        if (is_image(names[i])) list->files[list->n_files++] = path_join(folder, names[i]);
    for (size_t i = 0; i < n_names && list->n_files > before; i++)
        if (!is_image(names[i])) skip(list, path_join(folder, names[i]));
    free_names(names, n_names);
    *out_n = list->n_files - before;
    return CODE_DONE;
}

static int no_image(const char *folder)
{
    return fail_file("'%s' holds no image: no .png, .jpg, .jpeg, .webp or .bmp", folder);
}

/* Appends the images of a subfolder as the next class. */
static int add_class(const char *folder, const char *name, image_folder *list)
{
    const size_t before = list->n_files;
    size_t n = 0;
    int code = add_images(folder, list, &n);
    if (code != CODE_DONE) return code;
    if (n == 0) return no_image(folder);
    list->classes = must_resize(list->classes, list->n_files, sizeof *list->classes);
    for (size_t i = before; i < list->n_files; i++) list->classes[i] = (int64_t)list->n_classes;
    list->names = must_resize(list->names, list->n_classes + 1, sizeof *list->names);
    list->names[list->n_classes++] = must_copy(name);
    return CODE_DONE;
}

static int add_classes(const char *folder, image_folder *list)
{
    char **names = NULL;
    size_t n_names = 0;
    int code = read_names(folder, &names, &n_names);
    for (size_t i = 0; i < n_names && code == CODE_DONE; i++) {
        char *path = path_join(folder, names[i]);
        const size_t before = list->n_classes;
        const bool is_folder = path_is_folder(path);
        if (is_folder) code = add_class(path, names[i], list);
        if (is_folder && list->n_classes == before)
            fail_hint("'%s' holds no image itself: each of its folders is a class", folder);
        free(path);
    }
    free_names(names, n_names);
    return code;
}

int image_folder_list(const char *folder, image_folder *out_list)
{
    size_t n = 0;
    *out_list = (image_folder){0};
    int code = add_images(folder, out_list, &n);
    if (code == CODE_DONE && n == 0) code = add_classes(folder, out_list);
    if (code == CODE_DONE && out_list->n_files == 0) code = no_image(folder);
    if (code != CODE_DONE) image_folder_free(out_list);
    return code;
}

bool image_folder_has_classes(const char *path)
{
    char **names = NULL;
    size_t n = 0;
    bool has_image = false, has_folder = false;
    if (!path_is_folder(path) || folder_list(path, &names, &n) != 0) return false;
    for (size_t i = 0; i < n && !has_image; i++) {
        char *inside = path_join(path, names[i]);
        has_image = is_image(names[i]);
        has_folder = has_folder || path_is_folder(inside);
        free(inside);
    }
    free_names(names, n);
    return has_folder && !has_image;
}

void image_folder_free(image_folder *list)
{
    for (size_t i = 0; i < list->n_files; i++) free((void *)(uintptr_t)list->files[i]);
    free((void *)list->files);
    free(list->classes);
    free_names(list->names, list->n_classes);
    for (size_t i = 0; i < list->n_skipped; i++) free(list->skipped[i].path);
    free(list->skipped);
    *list = (image_folder){0};
}
