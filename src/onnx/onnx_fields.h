/* SPDX-License-Identifier: Apache-2.0
 *
 * Field numbers of ONNX's messages (onnx.proto), for the importer, for saving, and for the provider
 * for ONNX Runtime. TensorProto's are in tensor/formats/tensor_fields.h.
 */
#ifndef CLG_ONNX_ONNX_FIELDS_H
#define CLG_ONNX_ONNX_FIELDS_H

enum { /* ModelProto */
       MODEL_IR_VERSION = 1,
       MODEL_PRODUCER_NAME = 2,
       MODEL_PRODUCER_VERSION = 3,
       MODEL_GRAPH = 7,
       MODEL_OPSET_IMPORT = 8,
       MODEL_FUNCTIONS = 25
};
enum { OPSET_DOMAIN = 1, OPSET_VERSION = 2 }; /* OperatorSetIdProto */
enum {                                        /* GraphProto */
       GRAPH_NODE = 1,
       GRAPH_NAME = 2,
       GRAPH_INITIALIZER = 5,
       GRAPH_INPUT = 11,
       GRAPH_OUTPUT = 12,
       GRAPH_VALUE_INFO = 13,
       GRAPH_SPARSE_INITIALIZER = 15
};
enum { /* NodeProto */
       NODE_INPUT = 1,
       NODE_OUTPUT = 2,
       NODE_NAME = 3,
       NODE_OP_TYPE = 4,
       NODE_ATTRIBUTE = 5,
       NODE_DOMAIN = 7,
       NODE_OVERLOAD = 8
};
enum { /* AttributeProto */
       ATTR_NAME = 1,
       ATTR_F = 2,
       ATTR_I = 3,
       ATTR_S = 4,
       ATTR_T = 5,
       ATTR_G = 6,
       ATTR_FLOATS = 7,
       ATTR_INTS = 8,
       ATTR_STRINGS = 9,
       ATTR_TENSORS = 10,
       ATTR_GRAPHS = 11,
       ATTR_TYPE = 20,
       ATTR_REF_ATTR_NAME = 21,
       ATTR_SPARSE_TENSOR = 22,
       ATTR_SPARSE_TENSORS = 23
};
/* AttributeProto.AttributeType */
enum { TYPED_FLOAT = 1, TYPED_INT, TYPED_STRING, TYPED_TENSOR, TYPED_GRAPH, TYPED_FLOATS };
enum { TYPED_INTS = 7, TYPED_STRINGS = 8 };
enum { /* FunctionProto */
       FUNCTION_NAME = 1,
       FUNCTION_INPUT = 4,
       FUNCTION_OUTPUT = 5,
       FUNCTION_ATTRIBUTE = 6,
       FUNCTION_NODE = 7,
       FUNCTION_OPSET_IMPORT = 9,
       FUNCTION_DOMAIN = 10,
       FUNCTION_ATTRIBUTE_PROTO = 11,
       FUNCTION_OVERLOAD = 13
};
enum { SPARSE_VALUES = 1, SPARSE_INDICES = 2 };    /* SparseTensorProto */
enum { VALUE_INFO_NAME = 1, VALUE_INFO_TYPE = 2 }; /* ValueInfoProto */
/* TypeProto and the messages inside */
enum { TYPE_TENSOR = 1, TYPE_SEQUENCE = 4, TYPE_MAP = 5, TYPE_SPARSE = 8, TYPE_OPTIONAL = 9 };
enum { TENSOR_ELEMENT = 1, TENSOR_SHAPE = 2 };
enum { SHAPE_DIM = 1, DIM_VALUE = 1, DIM_PARAM = 2 };
enum { LIST_ELEMENT = 1, MAP_KEY = 1, MAP_VALUE = 2 };

#endif
