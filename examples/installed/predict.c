/* SPDX-License-Identifier: Apache-2.0
 *
 * A minimal program that uses an installed clgraph. The CMakeLists.txt and the Makefile in this
 * folder show how to build it with CMake, and with make and pkg-config.
 *
 *     predict MODEL    runs the model once, with all inputs zero, and prints the size of output 0
 */
#include <clgraph/clgraph.h>

#include <stdio.h>

int main(int argc, char **argv)
{
    clg_context *context = NULL;
    clg_model *model = NULL;
    clg_session *session = NULL;
    clg_value *output = NULL;
    if (argc != 2) {
        fprintf(stderr, "usage: predict MODEL\n");
        return 2;
    }
    clg_status status = clg_context_create(NULL, NULL, &context);
    if (status == CLG_OK) status = clg_model_load_file(argv[1], NULL, &model);
    if (status == CLG_OK) status = clg_session_create(context, model, NULL, &session);
    for (size_t i = 0; status == CLG_OK && i < clg_model_n_inputs(model); i++) {
        const clg_port *port = clg_model_input(model, i);
        int64_t dims[CLG_MAX_RANK];
        clg_value *zeros = NULL;
        for (int d = 0; d < port->rank; d++) dims[d] = port->dims[d] < 0 ? 1 : port->dims[d];
        status =
            clg_value_create(port->dtype, port->rank < 0 ? 0 : (size_t)port->rank, dims, &zeros);
        if (status == CLG_OK) status = clg_session_set_input(session, port->name, zeros);
        clg_value_free(zeros);
    }
    if (status == CLG_OK) status = clg_session_run(session);
    if (status == CLG_OK)
        status = clg_session_get_output(session, clg_model_output(model, 0)->name, &output);
    if (status == CLG_OK)
        printf("clgraph %s on %s: %s has %lld elements\n", clg_version(),
               clg_context_device(context)->name, clg_model_output(model, 0)->name,
               (long long)clg_value_n_elements(output));
    else
        fprintf(stderr, "predict: %s\n", clg_last_error());
    clg_value_free(output);
    clg_session_free(session);
    clg_model_free(model);
    clg_context_free(context);
    return status == CLG_OK ? 0 : 1;
}
