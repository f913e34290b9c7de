/* SPDX-License-Identifier: Apache-2.0
 *
 * Waits for all commands of an OpenCL queue: by clFinish, or by an event on drivers that still use
 * the queue after clFinish has returned, so that releasing it may crash
 * (QUIRK_FINISHED_QUEUE_USED).
 */
#include "ocl/queue/queue.h"

clg_status queue_drain(ocl_context *ocl, cl_command_queue handle)
{
    cl_event last = NULL;
    if (!context_has_quirk(ocl, QUIRK_FINISHED_QUEUE_USED) || ocl_context_is_lost(ocl))
        return context_check(ocl, cl.Finish(handle), "clFinish");
    bool is_done = cl.EnqueueMarkerWithWaitList(handle, 0, NULL, &last) == CL_SUCCESS;
    if (is_done) {
        is_done = cl.WaitForEvents(1, &last) == CL_SUCCESS;
        (void)cl.ReleaseEvent(last);
    }
    return is_done ? CLG_OK : context_check(ocl, cl.Finish(handle), "clFinish");
}
