/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions on the device buffers of weights that weights.c and packing.c share.
 */
#ifndef CLG_SESSION_WEIGHTS_H
#define CLG_SESSION_WEIGHTS_H

#include "session/exec/exec.h"

/* Uploads size_bytes of a constant from offset_bytes to the start of b, in pieces, each of which is
 * unloaded from host memory after its upload if it belongs to a mapped file. */
clg_status weights_upload(session_exec *e, ocl_buffer *b, const tensor *t, size_t offset_bytes,
                          size_t size_bytes);
/* Sets *out_content to the tensor of constant v, borrowed. Returns an error if the host does not
 * have it or it holds strings. */
clg_status weights_content(const session_exec *e, value_id v, const tensor **out_content);
/* Returns whether v is a result of the init plan that is only on the device. */
bool weights_is_computed(const session_exec *e, value_id v);
/* Returns the device buffer of v, which is uploaded first if necessary. The exec owns it, until
 * weights_drop or its own end. */
clg_status weights_bind(session_exec *e, value_id v, ocl_buffer **out_buffer);
/* Writes the key of a packed weight in exec.packed_keys. */
#define PACKING_KEY_BYTES 256
clg_status weights_packing_key(value_id weight, const packing *p, char key[PACKING_KEY_BYTES]);
/* Releases the buffer of v. Call with weights_lock held. */
void weights_drop(session_exec *e, value_id v);

#endif
