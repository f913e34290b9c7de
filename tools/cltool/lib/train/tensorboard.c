/* SPDX-License-Identifier: Apache-2.0
 *
 * A record is the length of its data (8 bytes, little-endian), the masked CRC-32C of these bytes,
 * the data, and their masked CRC-32C. The data are messages of TensorFlow's event.proto.
 */
#include "tensorboard.h"

#include "host.h"
#include "names.h"
#include "output.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define VERSION "brain.Event:2"

/* Fields of Event, Summary and Summary.Value, with their wire types. */
enum {
    EVENT_WALL_TIME = 1 << 3 | 1,
    EVENT_STEP = 2 << 3 | 0,
    EVENT_FILE_VERSION = 3 << 3 | 2,
    EVENT_SUMMARY = 5 << 3 | 2,
    SUMMARY_VALUE = 1 << 3 | 2,
    VALUE_TAG = 1 << 3 | 2,
    VALUE_SIMPLE_VALUE = 2 << 3 | 5
};

typedef struct message {
    unsigned char bytes[512];
    size_t size;
} message;

/* ---- bytes ----------------------------------------------------------------------------------- */

/* Returns the CRC-32C (Castagnoli), rotated and offset as TFRecord has it. */
static uint32_t masked_crc(const unsigned char *bytes, size_t n)
{
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < n; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0x82F63B78u : 0);
    }
    crc = ~crc;
    return (crc >> 15 | crc << 17) + 0xA282EAD8u;
}

static void put_little(message *m, uint64_t number, int n_bytes)
{
    for (int i = 0; i < n_bytes; i++) m->bytes[m->size++] = (unsigned char)(number >> 8 * i);
}

static void put_varint(message *m, uint64_t number)
{
    for (; number > 127; number >>= 7) m->bytes[m->size++] = (unsigned char)(number | 128);
    m->bytes[m->size++] = (unsigned char)number;
}

static void put_bytes(message *m, uint64_t field, const void *bytes, size_t n)
{
    put_varint(m, field);
    put_varint(m, n);
    memcpy(m->bytes + m->size, bytes, n);
    m->size += n;
}

static message start_event(void)
{
    message m = {.size = 0};
    uint64_t bits;
    const double now = (double)time(NULL);
    memcpy(&bits, &now, sizeof bits);
    put_varint(&m, EVENT_WALL_TIME);
    put_little(&m, bits, 8);
    return m;
}

static int write_record(const tensorboard *t, const message *data)
{
    message head = {.size = 0}, tail = {.size = 0};
    put_little(&head, data->size, 8);
    put_little(&head, masked_crc(head.bytes, 8), 4);
    put_little(&tail, masked_crc(data->bytes, data->size), 4);
    if (fwrite(head.bytes, 1, head.size, t->file) == head.size &&
        fwrite(data->bytes, 1, data->size, t->file) == data->size &&
        fwrite(tail.bytes, 1, tail.size, t->file) == tail.size && fflush(t->file) == 0)
        return CODE_DONE;
    return output_fail(t->path);
}

/* ---- events ---------------------------------------------------------------------------------- */

int tensorboard_open(const char *folder, tensorboard *out)
{
    *out = (tensorboard){0};
    const int code = folder_make(folder);
    if (code != CODE_DONE) return code;
    for (int i = 0; !out->path || path_exists(out->path); i++) {
        char *file =
            i == 0 ? must_printf("events.out.tfevents.%lld.cltool", (long long)time(NULL))
                   : must_printf("events.out.tfevents.%lld.cltool.%d", (long long)time(NULL), i);
        free(out->path);
        out->path = path_join(folder, file);
        free(file);
    }
    out->file = host_open(out->path, "wb");
    if (!out->file) return output_fail(out->path);
    message event = start_event();
    put_bytes(&event, EVENT_FILE_VERSION, VERSION, strlen(VERSION));
    return write_record(out, &event);
}

int tensorboard_scalar(tensorboard *t, const char *tag, int64_t step, double number)
{
    message value = {.size = 0}, summary = {.size = 0}, event = start_event();
    uint32_t bits;
    const float rounded = (float)number;
    memcpy(&bits, &rounded, sizeof bits);
    put_bytes(&value, VALUE_TAG, tag, strlen(tag));
    put_varint(&value, VALUE_SIMPLE_VALUE);
    put_little(&value, bits, 4);
    put_bytes(&summary, SUMMARY_VALUE, value.bytes, value.size);
    put_varint(&event, EVENT_STEP);
    put_varint(&event, (uint64_t)step);
    put_bytes(&event, EVENT_SUMMARY, summary.bytes, summary.size);
    return write_record(t, &event);
}

int tensorboard_close(tensorboard *t)
{
    int code = CODE_DONE;
    if (t->file && fclose(t->file) != 0) code = output_fail(t->path);
    free(t->path);
    *t = (tensorboard){0};
    return code;
}
