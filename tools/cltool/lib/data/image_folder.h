/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists the images of a folder: those in it or, where there are none, those of its subfolders, each
 * of which is a class.
 */
#ifndef CLTOOL_IMAGE_FOLDER_H
#define CLTOOL_IMAGE_FOLDER_H

#include "failure.h"

typedef struct skipped_file {
    char *path;
    const char *why;
} skipped_file;

typedef struct image_folder {
    const char **files; /* sorted by name; those of a class together, classes sorted by name */
    int64_t *classes;   /* of each file; NULL: the folder has no classes */
    size_t n_files;
    char **names; /* of the classes, n_classes of them: those of the subfolders */
    size_t n_classes;
    skipped_file *skipped; /* what else is in folders that have images */
    size_t n_skipped;
} image_folder; /* all zeros is valid and empty */

/* Lists a folder. A folder without images, or a class without any, is an error; names that begin
 * with a dot are skipped. */
int image_folder_list(const char *folder, image_folder *out_list);
/* Returns whether a folder holds no image, and at least one folder. */
bool image_folder_has_classes(const char *path);
void image_folder_free(image_folder *list);

#endif
