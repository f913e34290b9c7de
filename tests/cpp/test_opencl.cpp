/* SPDX-License-Identifier: Apache-2.0
 *
 * OpenCL objects shared through the C++ interface.
 */
#include <clgraph/cpp/opencl.hpp>

#include "check.hpp"
#include "models.hpp"

TEST(opencl__shares_contexts_buffers_and_events)
{
    const auto own = clgraph::context::create();
    cl_context cl = clgraph::opencl::context_of(own);
    cl_device_id device = clgraph::opencl::device_of(own);
    CHECK(cl && device);
    const auto context = clgraph::opencl::create_context(cl, device);
    clgraph::session session(context, models::linear());
    CHECK(clgraph::opencl::queue_of(session));

    cl_int error = CL_SUCCESS;
    float x[4] = {0, 0, 1, 1};
    cl_mem memory =
        clCreateBuffer(cl, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof x, x, &error);
    CHECK_EQ(error, CL_SUCCESS);
    {
        const clgraph::value second_row =
            clgraph::opencl::wrap(context, memory, CLG_FLOAT32, {1, 2}, 2 * sizeof(float));
        const auto buffer = clgraph::opencl::buffer_of(second_row);
        CHECK(buffer.memory == memory && buffer.offset_bytes == 8);
        session.set_input("x", second_row);
        clgraph::opencl::wait_for_events(session, {});
        session.run();
        cl_event event = clgraph::opencl::event_of(session);
        CHECK_EQ(clWaitForEvents(1, &event), CL_SUCCESS);
        CHECK_EQ(clReleaseEvent(event), CL_SUCCESS);
        CHECK_EQ(session.get_output("y").get_double(1), 26.0);
        CHECK(check::throws([&] { (void)clgraph::opencl::buffer_of(session.get_output("y")); },
                            CLG_ERROR_INVALID_ARGUMENT));
        session.unset_input("x");
    }
    CHECK_EQ(clReleaseMemObject(memory), CL_SUCCESS);
}
