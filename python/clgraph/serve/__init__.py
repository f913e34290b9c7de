# SPDX-License-Identifier: Apache-2.0
"""A server for models: `python -m clgraph.serve model.onnx`, on KServe's ModelServer.

The open inference protocol v2 by REST and gRPC; needs `pip install clgraph[serve]`. Options are in
`python -m clgraph.serve --help` and docs/serving.md.

_options, _tensors, _batching, _model and _sources know nothing of KServe; _repository, _rest, _grpc
and _server are its parts for clgraph.
"""
