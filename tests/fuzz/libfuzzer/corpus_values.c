/* SPDX-License-Identifier: Apache-2.0
 *
 * Corpora of the targets npy, npz and proto.
 */
#include "corpus.h"
#include "fuzz.h"

#include "base/memory.h"
#include "support/scratch.h"
#include "tensor/formats/npy.h"
#include "tensor/formats/npz.h"
#include "tensor/formats/zip.h"

#include <stdio.h>
#include <string.h>

static const float numbers[8] = {1, -2, 3, 0.5f, -0.25f, 6, 7, -8};

/* ---- npy ------------------------------------------------------------------------------------- */

/* Writes a file with this version, header dictionary and 64 bytes of data, or fewer. */
static void npy(const char *name, int version, const char *dictionary, size_t n_data)
{
    uint8_t bytes[512] = "\x93NUMPY";
    const size_t length = strlen(dictionary), n_head = version > 1 ? 12 : 10;
    bytes[6] = (uint8_t)version;
    bytes[8] = (uint8_t)length;
    bytes[9] = (uint8_t)(length >> 8);
    memcpy(bytes + n_head, dictionary, length);
    for (size_t i = 0; i < n_data; i++) bytes[n_head + length + i] = (uint8_t)(i * 37);
    corpus_file("npy", name, bytes, n_head + length + n_data);
}

#define DESCR(descr, fortran, shape)                                                               \
    "{'descr': '" descr "', 'fortran_order': " fortran ", 'shape': " shape ", }    \n"

static void make_npy(void)
{
    npy("f4.npy", 1, DESCR("<f4", "False", "(2, 3)"), 24);
    npy("f4_fortran.npy", 1, DESCR("<f4", "True", "(2, 3, 2)"), 48);
    npy("f8_big.npy", 1, DESCR(">f8", "False", "(4,)"), 32);
    npy("i2_big_fortran.npy", 2, DESCR(">i2", "True", "(3, 2)"), 12);
    npy("u1.npy", 3, DESCR("|u1", "False", "(5,)"), 5);
    npy("i1_zero.npy", 1, DESCR("|i1", "False", "(0, 3)"), 0);
    npy("bool.npy", 1, DESCR("|b1", "False", "(2, 2)"), 4);
    npy("f2.npy", 1, DESCR("<f2", "False", "(2, 2, 1)"), 8);
    npy("i8_scalar.npy", 1, DESCR("<i8", "False", "()"), 8);
    npy("u4.npy", 1, DESCR("=u4", "False", "(2,)"), 8);
    npy("double_quotes.npy", 1, "{\"shape\": (2L,), \"descr\":\"<u2\",\"fortran_order\": False}",
        4);
    npy("short.npy", 1, DESCR("<f4", "False", "(2, 3)"), 20);
    npy("long.npy", 1, DESCR("<f4", "False", "(2, 3)"), 28);
    npy("huge.npy", 1, DESCR("<f4", "False", "(4611686018427387904, 4)"), 16);
    npy("object.npy", 1, DESCR("|O", "False", "(2,)"), 16);
    npy("complex.npy", 1, DESCR("<c8", "False", "(2,)"), 16);
    npy("rank_9.npy", 1, DESCR("<f4", "False", "(1, 1, 1, 1, 1, 1, 1, 1, 1)"), 4);
    npy("negative.npy", 1, DESCR("<f4", "False", "(-1,)"), 4);
    npy("no_shape.npy", 1, "{'descr': '<f4', 'fortran_order': False}\n", 4);
    npy("twice.npy", 1, "{'shape': (1,), 'shape': (1,), 'descr': '<f4', 'fortran_order': False}",
        4);
    npy("other_key.npy", 1, "{'order': 3, 'descr': '<f4'}\n", 4);
    npy("records.npy", 1, "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}\n", 4);
    npy("truth.npy", 1, DESCR("<f4", "Maybe", "(1,)"), 4);
    npy("no_comma.npy", 1, "{'descr': '<f4' 'fortran_order': False, 'shape': (1,)}\n", 4);
    npy("after.npy", 1, DESCR("<f4", "False", "(1,)") "x\n", 4);
    npy("open_string.npy", 1, "{'descr': '<f4\n", 4);
    npy("version_4.npy", 4, DESCR("<f4", "False", "(1,)"), 4);
    corpus_text("npy", "magic.npy", "\x93NUMPY");
    corpus_text("npy", "other.npy", "this is no array");
}

/* ---- npz ------------------------------------------------------------------------------------- */

static void take_file(const char *target, const char *name, const char *path)
{
    char *data;
    size_t n;
    fuzz_require(file_read(path, (uint64_t)1 << 20, &data, &n) == CLG_OK);
    corpus_file(target, name, data, n);
    memory_free(data);
}

static tensor *make_tensor(clg_dtype dtype, size_t rank, const int64_t *dims)
{
    shape s;
    tensor *t;
    fuzz_require(shape_make(rank, dims, &s) == CLG_OK);
    fuzz_require(tensor_create(dtype, &s, &t) == CLG_OK);
    memcpy(t->data, numbers, t->size_bytes < sizeof numbers ? t->size_bytes : sizeof numbers);
    return t;
}

/* Writes an archive whose entries are any text. */
static void zip(const char *name, bool compress, uint64_t zip64_from, size_t n,
                const char *const *names, const char *text)
{
    const char *path = scratch_path(name);
    zip_writer w;
    fuzz_require(zip_writer_open(path, compress, &w) == CLG_OK);
    if (zip64_from > 0) w.zip64_from = zip64_from;
    for (size_t i = 0; i < n; i++) {
        fuzz_require(zip_writer_begin(&w, names[i]) == CLG_OK);
        fuzz_require(zip_writer_write(&w, text, strlen(text)) == CLG_OK);
        fuzz_require(zip_writer_end(&w) == CLG_OK);
    }
    fuzz_require(zip_writer_commit(&w) == CLG_OK);
    zip_writer_abandon(&w);
    take_file("npz", name, path);
}

static void make_npz(void)
{
    static const char *const names[] = {"x", "names_y"};
    tensor *const tensors[] = {make_tensor(CLG_FLOAT32, 2, (const int64_t[]){2, 3}),
                               make_tensor(CLG_INT64, 1, (const int64_t[]){2})};
    const char *path = scratch_path("corpus.npz");
    for (int compress = 0; compress < 2; compress++) {
        fuzz_require(npz_save(path, 2, names, tensors, compress) == CLG_OK);
        take_file("npz", compress ? "deflated.npz" : "stored.npz", path);
    }
    fuzz_require(npz_save(path, 0, names, tensors, false) == CLG_OK);
    take_file("npz", "empty.npz", path);
    tensor_free(tensors[0]);
    tensor_free(tensors[1]);
    static const char *const entries[] = {"a.npy", "a.npy", "folder/", "other.txt"};
    zip("zip64.npz", true, 1, 1, entries, "this is no array");
    zip("twice.npz", false, 0, 2, entries, "this is no array");
    zip("others.npz", false, 0, 2, entries + 2, "text");
    corpus_text("npz", "text.npz", "PK\3\4 and no more");
    corpus_file("npz", "end_only.npz", "PK\5\6\0\0\0\0\1\0\1\0\x2e\0\0\0\0\0\0\0\0\0", 22);
}

/* ---- proto ----------------------------------------------------------------------------------- */

static void raw(const char *name, int dtype, size_t n)
{
    const int64_t dims[] = {2};
    corpus_bytes("proto", name, ow_tensor_raw("t", dtype, 1, dims, numbers, n));
}

/* A tensor of two elements whose field `number` has them as varints. */
static void varints(const char *name, int dtype, unsigned number)
{
    const int64_t dims[] = {2}, values[] = {1, -1};
    ow_bytes t = ow_tensor("t", dtype, 1, dims);
    ow_put_packed_ints(&t, number, 2, values);
    corpus_bytes("proto", name, t);
}

static ow_bytes scalar(int dtype, size_t n)
{
    return ow_tensor_raw("", dtype, 0, NULL, numbers, n);
}

static ow_bytes scalars(size_t n)
{
    ow_bytes s = {0};
    for (size_t i = 0; i < n; i++) ow_put_message(&s, 3, scalar(CLG_FLOAT32, 4));
    return s;
}

/* Field numbers of SequenceProto and OptionalProto. */
enum { TENSOR = 3, SPARSE = 4, SEQUENCE = 5, MAP = 6, OPTIONAL = 7 };

static ow_bytes map(int key_type, size_t n_values)
{
    ow_bytes m = {0};
    ow_put_int(&m, 2, key_type);
    if (key_type == CLG_STRING) {
        ow_put_string(&m, 4, "yes");
        ow_put_string(&m, 4, "");
    } else {
        ow_put_packed_ints(&m, 3, 2, (const int64_t[]){4, -7});
    }
    ow_put_message(&m, 5, scalars(n_values));
    return m;
}

static void make_values(void)
{
    ow_bytes list = {0}, nested = {0};
    ow_put_string(&list, 1, "name");
    ow_put_int(&list, 2, 1);
    ow_put_message(&list, TENSOR, scalar(CLG_FLOAT32, 4));
    ow_put_message(&list, TENSOR, scalar(CLG_FLOAT32, 4));
    ow_put_message(&nested, SEQUENCE, list);
    corpus_bytes("proto", "optional_sequence.pb", nested);
    list = nested = (ow_bytes){0};
    ow_put_message(&list, OPTIONAL, scalars(1));
    ow_put_message(&nested, SEQUENCE, list);
    corpus_bytes("proto", "nested.pb", nested);
    static const int keys[] = {CLG_INT64, CLG_STRING, CLG_FLOAT32};
    static const char *const names[] = {"map_int.pb", "map_text.pb", "map_float.pb"};
    for (int i = 0; i < 3; i++) {
        corpus_bytes("proto", names[i], map(keys[i], 2));
        list = (ow_bytes){0};
        ow_put_message(&list, MAP, map(keys[i], 2));
        char name[40];
        (void)snprintf(name, sizeof name, "list_of_%s", names[i]);
        corpus_bytes("proto", name, list);
    }
    corpus_bytes("proto", "map_few.pb", map(CLG_INT64, 1));
    ow_bytes vectors = {0}, m = map(CLG_INT64, 0);
    ow_put_message(&vectors, TENSOR, ow_tensor_raw("", 1, 1, (const int64_t[]){1}, numbers, 4));
    ow_put_message(&m, 5, vectors);
    corpus_bytes("proto", "map_vectors.pb", m);
    list = (ow_bytes){0};
    ow_put_message(&list, SPARSE, (ow_bytes){0});
    corpus_bytes("proto", "sparse.pb", list);
    list = (ow_bytes){0};
    ow_put_message(&list, TENSOR, scalar(CLG_FLOAT32, 4));
    ow_put_message(&list, TENSOR, scalar(CLG_INT64, 8));
    corpus_bytes("proto", "mixed.pb", list);
    list = (ow_bytes){0};
    for (int i = 0; i < 70; i++) {
        ow_bytes outer = {0};
        ow_put_message(&outer, SEQUENCE, list);
        list = outer;
    }
    corpus_bytes("proto", "deep.pb", list);
}

static void make_proto(void)
{
    const int64_t dims[] = {2}, any[] = {-1}, large[] = {INT64_MAX, 4}, zero[] = {0};
    raw("raw_float.pb", CLG_FLOAT32, 8);
    raw("raw_double.pb", CLG_FLOAT64, 16);
    raw("raw_int4.pb", CLG_INT4, 1);
    raw("raw_bool.pb", CLG_BOOL, 2);
    raw("raw_complex.pb", CLG_COMPLEX64, 16);
    raw("raw_short.pb", CLG_INT16, 3);
    raw("unknown_type.pb", 99, 8);
    varints("int32.pb", CLG_INT32, 5);
    varints("int8.pb", CLG_INT8, 5);
    varints("half.pb", CLG_FLOAT16, 5);
    varints("bool.pb", CLG_BOOL, 5);
    varints("uint4.pb", CLG_UINT4, 5);
    varints("int64.pb", CLG_INT64, 7);
    varints("uint32.pb", CLG_UINT32, 11);
    varints("uint64.pb", CLG_UINT64, 11);
    varints("wrong_field.pb", CLG_UINT64, 5);
    ow_bytes t = ow_tensor("t", CLG_FLOAT32, 1, dims);
    ow_put_packed_floats(&t, 4, 2, numbers);
    corpus_bytes("proto", "float.pb", t);
    t = ow_tensor("t", CLG_FLOAT32, 1, dims);
    ow_put_float(&t, 4, 1);
    ow_put_float(&t, 4, 2);
    corpus_bytes("proto", "float_single.pb", t);
    t = ow_tensor("t", CLG_FLOAT64, 1, dims);
    ow_put_bytes(&t, 10, numbers, 16);
    corpus_bytes("proto", "double.pb", t);
    t = ow_tensor("t", CLG_STRING, 1, dims);
    ow_put_string(&t, 6, "one");
    ow_put_string(&t, 6, "");
    corpus_bytes("proto", "strings.pb", t);
    t = ow_tensor("t", CLG_STRING, 1, dims);
    ow_put_bytes(&t, 6, "a\0b", 3);
    ow_put_string(&t, 6, "");
    corpus_bytes("proto", "string_nul.pb", t);
    corpus_bytes("proto", "negative.pb", ow_tensor("t", CLG_FLOAT32, 1, any));
    corpus_bytes("proto", "large.pb", ow_tensor("t", CLG_FLOAT32, 2, large));
    corpus_bytes("proto", "zero.pb", ow_tensor("t", CLG_FLOAT32, 1, zero));
    corpus_bytes("proto", "no_data.pb", ow_tensor("", CLG_FLOAT32, 1, dims));
    corpus_bytes("proto", "external.pb",
                 ow_tensor_external("t", CLG_FLOAT32, 1, dims, "w", "8", "8"));
    corpus_bytes("proto", "external_all.pb",
                 ow_tensor_external("t", CLG_FLOAT32, 1, dims, "w", "56", NULL));
    corpus_bytes("proto", "external_bad.pb",
                 ow_tensor_external("t", CLG_FLOAT32, 1, dims, "w", "1x", "99999999999999999999"));
    corpus_bytes("proto", "external_nowhere.pb",
                 ow_tensor_external("t", CLG_FLOAT32, 1, dims, "", NULL, NULL));
    t = ow_tensor("t", CLG_FLOAT32, 1, dims); /* data in two fields, a segment, unknown fields */
    ow_put_packed_floats(&t, 4, 2, numbers);
    ow_put_bytes(&t, 9, numbers, 8);
    corpus_bytes("proto", "two_fields.pb", t);
    t = ow_tensor("t", CLG_FLOAT32, 1, dims);
    ow_put_bytes(&t, 3, "\x08\0\x10\2", 4);
    ow_put_string(&t, 12, "doc");
    ow_put_bytes(&t, 9, numbers, 8);
    corpus_bytes("proto", "segment.pb", t);
    corpus_text("proto", "empty.pb", "");
    corpus_text("proto", "cut.pb", "\x0a\xff");
}

void corpus_values(void)
{
    make_npy();
    make_npz();
    make_proto();
    make_values();
}
