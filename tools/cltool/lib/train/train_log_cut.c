/* SPDX-License-Identifier: Apache-2.0
 *
 * A training that was killed may have logged steps after its last checkpoint, which it does again.
 * See train_log_cut.h.
 */
#include "train_log_cut.h"

#include "host.h"
#include "names.h"
#include "output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_LINE_BYTES 1024 /* of any line that train_log.c writes */

/* Reads the step of a line of JSON. Returns false when it has none. */
static bool json_step(const char *line, uint64_t *out_step)
{
    json_t *object = json_loads(line, 0, NULL);
    const json_t *number = json_object_get(object, "step");
    const bool found = json_is_integer(number) && json_integer_value(number) >= 0;
    if (found) *out_step = (uint64_t)json_integer_value(number);
    json_decref(object);
    return found;
}

/* Reads the step of a line of CSV, its second column; 0 for the header. */
static bool csv_step(const char *line, size_t index, uint64_t *out_step)
{
    static const char header[] = "epoch,step,";
    *out_step = 0;
    if (index == 0) return strncmp(line, header, sizeof header - 1) == 0;
    const char *comma = strchr(line, ',');
    char *end;
    if (!comma || comma[1] < '0' || comma[1] > '9') return false;
    errno = 0;
    *out_step = strtoull(comma + 1, &end, 10);
    return errno == 0 && *end == ',';
}

/* Finds where the first line that goes away begins. */
static int find_end(const char *path, FILE *stream, bool is_csv, uint64_t step, uint64_t *out_end)
{
    char line[MAX_LINE_BYTES];
    *out_end = 0;
    for (size_t i = 0; fgets(line, sizeof line, stream); i++) {
        const size_t n = strlen(line);
        uint64_t found = 0;
        if ((n == 0 || line[n - 1] != '\n') && feof(stream)) return CODE_DONE;
        if (n == 0 || line[n - 1] != '\n' ||
            !(is_csv ? csv_step(line, i, &found) : json_step(line, &found)))
            return fail_file("'%s', line %zu: it is not of a log that 'cltool train' wrote",
                             printable(path), i + 1);
        if (found > step) return CODE_DONE;
        *out_end += n;
    }
    return ferror(stream) ? fail_file("'%s' cannot be read: %s", printable(path), strerror(errno))
                          : CODE_DONE;
}

/* Reads the first n bytes; free(). */
static int read_start(const char *path, FILE *stream, size_t n, char **out_bytes)
{
    *out_bytes = must_alloc(n + 1, 1);
    if (host_seek(stream, 0) == 0 && fread(*out_bytes, 1, n, stream) == n) return CODE_DONE;
    return fail_file("'%s' cannot be read", printable(path));
}

int train_log_cut(const char *path, bool is_csv, uint64_t step, uint64_t *out_size_bytes)
{
    uint64_t size_bytes = 0;
    int64_t modified;
    char *bytes = NULL;
    *out_size_bytes = 0;
    if (!path_exists(path)) return CODE_DONE;
    FILE *stream = path_is_folder(path) ? NULL : host_open(path, "rb");
    if (!stream)
        return fail_file("'%s' cannot be read: %s", printable(path),
                         path_is_folder(path) ? "it is a folder" : strerror(errno));
    int code = find_end(path, stream, is_csv, step, out_size_bytes);
    const int failed = host_stat(path, &size_bytes, &modified);
    if (code == CODE_DONE && failed != 0)
        code = fail_file("'%s' cannot be read: %s", printable(path), strerror(failed));
    const bool is_longer = *out_size_bytes < size_bytes;
    if (code == CODE_DONE && is_longer)
        code = read_start(path, stream, (size_t)*out_size_bytes, &bytes);
    (void)fclose(stream);
    if (code == CODE_DONE && is_longer) code = output_write(path, bytes, (size_t)*out_size_bytes);
    if (code == CODE_DONE && is_longer)
        output_note("'%s': the lines of steps after %llu are removed", printable(path),
                    (unsigned long long)step);
    free(bytes);
    return code;
}
