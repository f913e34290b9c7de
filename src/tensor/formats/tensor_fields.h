/* SPDX-License-Identifier: Apache-2.0
 *
 * Field numbers of ONNX's TensorProto (onnx.proto), for reading, saving and the provider for ONNX
 * Runtime.
 */
#ifndef CLG_TENSOR_FORMATS_TENSOR_FIELDS_H
#define CLG_TENSOR_FORMATS_TENSOR_FIELDS_H

enum { /* TensorProto */
       DIMS = 1,
       DATA_TYPE = 2,
       SEGMENT = 3,
       FLOAT_DATA = 4,
       INT32_DATA = 5,
       STRING_DATA = 6,
       INT64_DATA = 7,
       NAME = 8,
       RAW_DATA = 9,
       DOUBLE_DATA = 10,
       UINT64_DATA = 11,
       EXTERNAL_DATA = 13,
       DATA_LOCATION = 14
};
enum { ENTRY_KEY = 1, ENTRY_VALUE = 2 }; /* StringStringEntryProto */
enum { LOCATION_EXTERNAL = 1 };          /* TensorProto.DataLocation */

#endif
