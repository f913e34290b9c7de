/* SPDX-License-Identifier: Apache-2.0
 *
 * A stream's worker over a session that divides nodes among devices: such a session has no device
 * memory itself, so that slots are host memory, from which the first part reads, and the
 * results are values of the run. Batches of several workers overlap, each on another device.
 */
#include "session/stream/stream.h"

bool worker_is_hosted(const stream_worker *worker) { return !session_has_plans(worker->session); }

size_t stream_n_workers(const clg_session *s)
{
    return session_has_plans(s) ? 1 : s->several->n_parts(s->multi) + 1;
}

clg_status worker_open_hosted(stream_worker *worker, const stream_port *port, slot_tensor *t)
{
    shape dims = port->dims;
    tensor *rows;
    dims.dims[0] = (int64_t)worker->stream->batch;
    CLG_TRY(tensor_create(port->dtype, &dims, &rows));
    const clg_status status = value_create_host(rows, &t->value);
    if (status == CLG_OK) t->host = rows->data;
    tensor_free(rows);
    return status;
}

static clg_status take_outputs(stream_slot *slot)
{
    const clg_stream *stream = slot->worker->stream;
    clg_session *s = slot->worker->session;
    for (size_t k = 0; k < stream->n_outputs; k++) {
        const session_output *out = &s->outputs[stream->outputs[k].index];
        slot_tensor *t = &slot->outputs[k];
        clg_value *v;
        t->dtype = out->dtype;
        t->dims = out->dims;
        if (out->dtype == CLG_DTYPE_NONE) continue; /* begin_download refuses it */
        CLG_TRY(session_output_host(s, stream->outputs[k].index, &v));
        t->known = tensor_retain(v->host);
        value_free(v);
    }
    return CLG_OK;
}

clg_status worker_run_hosted(stream_slot *slot)
{
    const clg_stream *stream = slot->worker->stream;
    clg_session *s = slot->worker->session;
    for (size_t k = 0; k < stream->n_inputs; k++)
        CLG_TRY(session_set_input(s, stream->inputs[k].index, slot->inputs[k].value));
    CLG_TRY(session_run(s));
    return take_outputs(slot);
}
