# SPDX-License-Identifier: Apache-2.0
import clgraph
import numpy as np
import pyopencl

session = clgraph.InferenceSession("models/linear.onnx")
x = np.load("x.npy")
n, n_bytes = len(x), x.nbytes
value = clgraph.Value(x, device=session)
cl_device = pyopencl.Device.from_int_ptr(session.context.cl_device)
cl_context = pyopencl.Context([cl_device])
queue = pyopencl.CommandQueue(cl_context)
# @BLOCK@
