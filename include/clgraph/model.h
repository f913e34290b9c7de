/* SPDX-License-Identifier: Apache-2.0
 *
 * Models, loaded from ONNX files. clgraph.h includes this header, and its rules apply.
 */
#ifndef CLGRAPH_MODEL_H
#define CLGRAPH_MODEL_H

#include <clgraph/value.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the memory of external data, the tensors of a model that are stored outside of it:
 * *out_data points to length_bytes > 0 bytes, valid and unchanged until external_release. location
 * and offset_bytes are what the model has (no offset: 0), and may mean whatever the caller likes;
 * location is valid during the call. An error ends loading, which returns it with its message (of a
 * failed call of the library) or with one about this callback. *out_data NULL is INVALID_ARGUMENT.
 * Called during loading, on its thread, once for each tensor, in no order; not for tensors without
 * elements. */
typedef clg_status (*clg_external_data_callback)(void *user, const char *location,
                                                 uint64_t offset_bytes, uint64_t length_bytes,
                                                 const void **out_data);

/* Says that these bytes of external data, all or a part of a tensor, were copied to a device and
 * will not be read for a while: their owner may let the pages of a mapped file leave memory
 * (madvise(MADV_DONTNEED), VirtualUnlock). They must stay readable, with the same content: other
 * shapes of inputs, other sessions and clg_context_recover read them again, and other threads may
 * be reading them. Any thread; must not call the library. */
typedef void (*clg_unload_callback)(void *user, const void *data, size_t size_bytes);

typedef struct clg_model_options {
    size_t struct_size;
    /* Load a model without its external data, to inspect it; sessions fail with NOT_FOUND. */
    bool allow_external_data_missing;
    /* Load despite unsupported operators, attributes or dtypes: sessions fail as loading would. */
    bool allow_unsupported;
    /* Read the model's files into host memory instead of mapping them. A mapped file that another
     * process truncates while the model lives ends this process (SIGBUS on POSIX systems); a file
     * that was read may change or be removed. Costs memory of the files' size. */
    bool read_files;
    clg_cancel *cancel;       /* cancels loading; may be NULL */
    const clg_limits *limits; /* of loading; copied; NULL: none */
    /* Gives external data from memory, which is not copied (but where an element's address is not a
     * multiple of its size and host code reads it). NULL: from files. No file of data is accessed
     * while it is set, and allow_external_data_missing and read_files do not apply to data. */
    clg_external_data_callback external_data;
    /* Called with external_user when nothing refers to the memory any more; may be NULL. Exactly
     * once for each call of clg_model_load_* that has external_data, also if it fails: then before
     * it returns. Else when the model and all of its sessions are freed, on the thread that frees
     * the last; earlier if no tensor is in the memory. Not if the options themselves are refused
     * (INVALID_ARGUMENT for their struct_size), and ignored without external_data. */
    clg_release_callback external_release;
    void *external_user;                 /* passed to the three callbacks */
    clg_unload_callback external_unload; /* may be NULL */
} clg_model_options;
#define CLG_MODEL_OPTIONS_INIT                                                                     \
    {                                                                                              \
        sizeof(clg_model_options), false, false, false, NULL, NULL, NULL, NULL, NULL, NULL         \
    }

/* One input or output of a model. dims[i] < 0: chosen at run time; dim_names[i] is then its symbol
 * or "". Outputs have the dimensions that are known without a run. */
typedef struct clg_port {
    const char *name;
    clg_value_kind kind;
    clg_dtype dtype; /* CLG_DTYPE_NONE: not known */
    int rank;        /* -1: any */
    int64_t dims[CLG_MAX_RANK];
    const char *dim_names[CLG_MAX_RANK];
    clg_dtype key_dtype; /* of the maps that it is or holds; CLG_DTYPE_NONE: there are none */
} clg_port;

/* Loads an ONNX file, which is mapped and must not change while the model lives, unless
 * options->read_files is set. External data is read from regular files only, relative to the model
 * and never outside its folder, links resolved, unless options->external_data gives it. options may
 * be NULL. Errors: IO,
 * INVALID_MODEL, SHAPE and DATA (impossible shapes and constants), UNSUPPORTED_OPERATOR (all
 * missing operators, with their nodes), UNSUPPORTED_ATTRIBUTE, UNSUPPORTED_DTYPE, CANCELLED. */
CLG_API CLG_MUST_USE clg_status clg_model_load_file(const char *path,
                                                    const clg_model_options *options,
                                                    clg_model **out_model);
/* As clg_model_load_file, from memory, which is copied. External data comes from
 * options->external_data alone. */
CLG_API CLG_MUST_USE clg_status clg_model_load_memory(const void *data, size_t size_bytes,
                                                      const clg_model_options *options,
                                                      clg_model **out_model);
CLG_API void clg_model_free(clg_model *model);

/* ---- saving ---------------------------------------------------------------------------------- */

typedef struct clg_model_save_options {
    size_t struct_size;
    /* Initializers of at least this many bytes, strings excepted, go to a file of external data;
     * 0: none. A model above 2 GiB needs it. Each starts at a multiple of 4096 bytes. */
    size_t external_bytes;
    const char *producer; /* name of the program that makes the model; NULL: clgraph, its version */
} clg_model_save_options;
#define CLG_MODEL_SAVE_OPTIONS_INIT                                                                \
    {                                                                                              \
        sizeof(clg_model_save_options), 0, NULL                                                    \
    }

/* Writes a model, loaded or from a clg_builder, as an ONNX file: operators, attributes, weights,
 * inputs, outputs and declared types as the model has them. The functions of a loaded model are
 * inlined, and its doc strings, metadata and training information are not kept. The same model
 * gives the same bytes. Outputs that declare no type get the inferred one.
 * External data goes to PATH.data. Both files are complete under temporary names before they
 * replace older ones, first the data, then the model; the model may be saved over the files that it
 * was loaded from. options may be NULL. Any thread. Memory: for nodes and names, none for weights.
 * Errors: INVALID_ARGUMENT (more than 2 GiB without its external data), NOT_FOUND (the model was
 * loaded without its external data), UNSUPPORTED_ATTRIBUTE (of a model loaded with
 * allow_unsupported: lists of graphs, or tensors with external data, in attributes that no operator
 * has), IO, OUT_OF_HOST_MEMORY. After an error no file is changed, unless it came from renaming. */
CLG_API CLG_MUST_USE clg_status clg_model_save(const clg_model *model, const char *path,
                                               const clg_model_save_options *options);
/* As clg_model_save, to memory of exactly the file's size, freed by clg_bytes_free.
 * options->external_bytes must be 0. Memory: the file's size once, and the nodes and names. */
CLG_API CLG_MUST_USE clg_status clg_model_save_memory(const clg_model *model,
                                                      const clg_model_save_options *options,
                                                      void **out_data, size_t *out_size_bytes);
CLG_API void clg_bytes_free(void *data); /* accepts NULL */

/* ---- inputs and outputs ---------------------------------------------------------------------- */

CLG_API size_t clg_model_n_inputs(const clg_model *model);
CLG_API size_t clg_model_n_outputs(const clg_model *model);
/* Returns a port in the model's order; borrowed from the model. NULL when index is out of range. */
CLG_API const clg_port *clg_model_input(const clg_model *model, size_t index);
CLG_API const clg_port *clg_model_output(const clg_model *model, size_t index);

/* ---- initializers and parts ------------------------------------------------------------------ */

/* Return the initializers in the order of the graph; borrowed from the model. NULL when index is
 * out of range. */
CLG_API size_t clg_model_n_initializers(const clg_model *model);
CLG_API const clg_port *clg_model_initializer(const clg_model *model, size_t index);
/* Copies the elements of an initializer to a new value. Errors: INVALID_ARGUMENT (index is out of
 * range), NOT_FOUND (the model was loaded without its data). */
CLG_API CLG_MUST_USE clg_status clg_model_initializer_value(const clg_model *model, size_t index,
                                                            clg_value **out_value);

/* Copies a model with other elements for some initializers: names[i] gets those of values[i], a
 * tensor of its dtype and rank in host or device memory. Its sizes may differ: those that the model
 * declares for results of nodes are then dropped, and inferred again. `model` is unchanged and may
 * be freed; other initializers are shared.
 *
 * Any thread. Errors: NOT_FOUND (an initializer), INVALID_ARGUMENT (not a tensor of its dtype and
 * rank), SHAPE (a node does not take the new shape), and why sessions refuse the model. */
CLG_API CLG_MUST_USE clg_status clg_model_replace_initializers(const clg_model *model,
                                                               const char *const *names,
                                                               clg_value *const *values, size_t n,
                                                               clg_model **out_model);

/* Extracts the part of a model between values: a model of the nodes that `outputs` depend on. It
 * ends at the values `inputs`, initializers or results of nodes, which become its inputs, after
 * those of the model that are left; those on which no output depends are left out. outputs are
 * inputs, initializers or results of nodes. Values keep their names. `model` is unchanged and may
 * be freed; initializers are shared. inputs may be NULL when n_inputs is 0.
 *
 * Any thread. Errors: NOT_FOUND (no value has that name), INVALID_ARGUMENT (no outputs, an output
 * twice), UNSUPPORTED_DTYPE (an input is not a tensor, or its dtype is not known before a run), and
 * why sessions refuse the model. */
CLG_API CLG_MUST_USE clg_status clg_model_extract(const clg_model *model, const char *const *inputs,
                                                  size_t n_inputs, const char *const *outputs,
                                                  size_t n_outputs, clg_model **out_model);

#ifdef __cplusplus
}
#endif

#endif
