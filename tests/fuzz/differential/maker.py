# SPDX-License-Identifier: Apache-2.0
"""A case is a small ONNX model with its inputs; a Maker is what the generators of cases draw from.

Everything follows from the seed of a case: the same seed gives the same model and the same bytes.
"""

import random

import ml_dtypes
import numpy
import onnx
from onnx import TensorProto, helper

NUMPY = {
    "float16": numpy.float16,
    "bfloat16": ml_dtypes.bfloat16,
    "float32": numpy.float32,
    "float64": numpy.float64,
    "int8": numpy.int8,
    "int16": numpy.int16,
    "int32": numpy.int32,
    "int64": numpy.int64,
    "uint8": numpy.uint8,
    "uint16": numpy.uint16,
    "uint32": numpy.uint32,
    "uint64": numpy.uint64,
    "bool": numpy.bool_,
    "string": numpy.object_,
    "float8e4m3fn": ml_dtypes.float8_e4m3fn,
    "float8e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "float8e5m2": ml_dtypes.float8_e5m2,
    "float8e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
    "int4": ml_dtypes.int4,
    "uint4": ml_dtypes.uint4,
    "int2": ml_dtypes.int2,
    "uint2": ml_dtypes.uint2,
    "float4e2m1": ml_dtypes.float4_e2m1fn,
}
FLOATS = ["float16", "bfloat16", "float32", "float64"]
SIGNED = ["int8", "int16", "int32", "int64"]
UNSIGNED = ["uint8", "uint16", "uint32", "uint64"]
INTEGERS = SIGNED + UNSIGNED
NUMBERS = FLOATS + INTEGERS
ALL = NUMBERS + ["bool", "string"]
NARROW = [n for n in NUMPY if n.startswith("float8") or n[-1] in "24" and n not in ALL]
NARROW += ["float4e2m1"]
# ONNX's names of types, where they differ from ours.
ONNX_NAMES = {"float": "float32", "double": "float64"}
WORDS = ["", "a", "bc", "Zebra", "the cat", "naïve", "x,y", "0", "A", "the"]


def name_of(dtype):
    """The name of a numpy dtype in NUMPY."""
    dtype = numpy.dtype(dtype)
    for name, known in NUMPY.items():
        if numpy.dtype(known) == dtype:
            return name
    raise KeyError(dtype)


def onnx_name(name):
    """The name of a type of NUMPY in TensorProto."""
    return {v: k for k, v in ONNX_NAMES.items()}.get(name, name).upper()


def element_type(array):
    """ONNX's number of the element type of ARRAY."""
    if array.dtype == numpy.object_ or array.dtype.kind in "US":
        return TensorProto.STRING
    return helper.np_dtype_to_tensor_dtype(array.dtype)


class Map:
    """A map of ONNX: vectors of its keys and of their values."""

    def __init__(self, keys, values):
        self.keys = keys
        self.values = values

    def proto(self, name):
        """The MapProto."""
        kind = element_type(self.keys)
        made = onnx.MapProto(name=name, key_type=kind)
        if kind == TensorProto.STRING:
            made.string_keys.extend(k.encode() for k in self.keys)
        else:
            made.keys.extend(self.keys.tolist())
        made.values.elem_type = onnx.SequenceProto.TENSOR
        scalars = [tensor("", self.values[i:i + 1].reshape(())) for i in range(len(self.values))]
        made.values.tensor_values.extend(scalars)
        return made

    def type(self):
        """The TypeProto."""
        kind = onnx.TypeProto()
        kind.map_type.key_type = element_type(self.keys)
        value = helper.make_tensor_type_proto(element_type(self.values), [])
        kind.map_type.value_type.CopyFrom(value)
        return kind


def arrays(value):
    """The arrays of a value: those of the parts of a sequence, the values of a map."""
    if isinstance(value, list):
        return [a for part in value for a in arrays(part)]
    return [value.values] if isinstance(value, Map) else [value]


def proto(name, value):
    """The message with VALUE, as files of ONNX's test cases have it."""
    if isinstance(value, Map):
        return value.proto(name)
    if isinstance(value, list) and value and isinstance(value[0], Map):
        maps = [v.proto("") for v in value]
        return onnx.SequenceProto(name=name, elem_type=onnx.SequenceProto.MAP, map_values=maps)
    if isinstance(value, list):
        return onnx.numpy_helper.from_list(value, name)
    return tensor(name, value)


class Case:
    """A graph with its inputs.

    nodes: NodeProtos in order. inputs: {name: array, Map or list of arrays}, in the order of the
    graph.
    constants: {name: array}, initializers. outputs: names. opsets: {domain: version}.
    tolerance: (rtol, atol) of floats in place of that of the element type. steps: by how much
    integers may differ. only: the names of the rivals that count ("ort", "onnx"), for what one of
    them does not do by the standard.
    """

    def __init__(self, row, opsets):
        self.row = row
        self.opsets = opsets
        self.nodes = []
        self.inputs = {}
        self.constants = {}
        self.outputs = []
        self.tolerance = None
        self.steps = 0
        self.only = None
        self.symbolic = False
        self.declared = True

    def model(self, outputs=None):
        """The ModelProto. OUTPUTS: {name: reference array or list}, whose types are declared."""
        symbol = [0]

        def info(name, value, shapes):
            if isinstance(value, Map):
                return helper.make_value_info(name, value.type())
            if isinstance(value, list) and value and isinstance(value[0], Map):
                kind = helper.make_sequence_type_proto(value[0].type())
                return helper.make_value_info(name, kind)
            if isinstance(value, list):
                kind = element_type(value[0]) if value else TensorProto.FLOAT
                return helper.make_tensor_sequence_value_info(name, kind, None)
            shape = list(value.shape) if shapes else None
            if shape is not None and self.symbolic:
                for i in range(len(shape)):
                    symbol[0] += 1
                    shape[i] = f"d{symbol[0]}"
            return helper.make_tensor_value_info(name, element_type(value), shape)

        graph_outputs = []
        for name in self.outputs:
            if outputs is None:
                graph_outputs.append(onnx.ValueInfoProto(name=name))
            else:
                graph_outputs.append(info(name, outputs[name], self.declared))
        graph = helper.make_graph(
            self.nodes,
            "case",
            [info(n, v, True) for n, v in self.inputs.items()],
            graph_outputs,
            [tensor(n, a) for n, a in self.constants.items()],
        )
        opsets = [helper.make_opsetid(d, v) for d, v in self.opsets.items()]
        model = helper.make_model(graph, opset_imports=opsets, producer_name="differential")
        model.ir_version = 8 if self.opsets.get("", 1) < 19 else 10
        if self.opsets.get("", 1) > 22:
            model.ir_version = 11
        return model


def tensor(name, array):
    """The TensorProto of ARRAY."""
    if element_type(array) == TensorProto.STRING:
        flat = [str(s).encode() for s in array.reshape(-1)]
        return helper.make_tensor(name, TensorProto.STRING, array.shape, flat)
    return onnx.numpy_helper.from_array(numpy.ascontiguousarray(array).reshape(array.shape), name)


class Maker:
    """Draws shapes, tensors and attributes, and puts nodes together.

    operator, domain, opset: what is made. version: the version of the operator at that opset.
    """

    def __init__(self, seed, row, operator, domain, opset):
        self.r = random.Random(f"{seed}/{row}")
        self.n = numpy.random.default_rng(self.r.getrandbits(63))
        self.operator = operator
        self.domain = domain
        self.opset = opset
        try:
            self.schema = onnx.defs.get_schema(operator, opset, domain)
            self.version = self.schema.since_version
        except onnx.defs.SchemaError:
            self.schema = None
            self.version = 1
        opsets = {"": opset if domain == "" else self.r.choice([13, 15, 17, 18, 21])}
        if domain:
            opsets[domain] = opset
        self.case_ = Case(row, opsets)
        self.case_.symbolic = self.chance(0.3)
        self.case_.declared = self.chance(0.6)
        self.names = 0

    # Plain numbers.

    def chance(self, p):
        return self.r.random() < p

    def pick(self, *choices):
        return self.r.choice(choices)

    def int(self, low, high):
        """A whole number from LOW to HIGH, both included."""
        return self.r.randint(low, high)

    def float(self, low, high):
        return round(self.r.uniform(low, high), 3)

    def maybe(self, probability, /, **attributes):
        """Each of ATTRIBUTES with PROBABILITY."""
        return {k: v for k, v in attributes.items() if self.chance(probability)}

    # Types.

    def allowed(self, variable):
        """The names of the types that the schema allows for a type variable."""
        for constraint in self.schema.type_constraints:
            if constraint.type_param_str == variable:
                names = [t[7:-1] for t in constraint.allowed_type_strs if t.startswith("tensor(")]
                return [ONNX_NAMES.get(n, n) for n in names]
        raise KeyError(f"{self.operator}: no type variable {variable}")

    def type(self, variable="T", among=None):
        """A type that the schema allows for VARIABLE, float32 more often than others; without
        AMONG, now and then one of 8 bits or less that only few operators have."""
        if among is None:
            among = ALL
            if self.schema and self.chance(0.15) and set(NARROW) & set(self.allowed(variable)):
                among = NARROW
        allowed = [t for t in (self.allowed(variable) if self.schema else among) if t in among]
        if not allowed:
            raise KeyError(f"{self.operator}: no type among {among}")
        if "float32" in allowed and self.chance(0.4):
            return "float32"
        return self.r.choice(sorted(allowed))

    # Shapes.

    def dim(self):
        return self.r.choice([1, 1, 2, 3, 3, 4, 5, 6, 7, 8, 9, 13, 17, 33])

    def shape(self, low=0, high=6, zero=True, most=4000):
        """A shape of rank LOW to HIGH with at most MOST elements; now and then a size is 0."""
        shape = [self.dim() for _ in range(self.int(low, high))]
        while shape and numpy.prod(shape) > most:
            i = self.r.randrange(len(shape))
            shape[i] = max(1, shape[i] // 2)
        if zero and shape and self.chance(0.04):
            shape[self.r.randrange(len(shape))] = 0
        return shape

    def axis(self, rank):
        """An axis of a tensor of RANK, counted from the end in half of the cases."""
        return self.int(-rank, rank - 1)

    def axes(self, rank, low=0):
        """Different axes in any order."""
        axes = self.r.sample(range(rank), self.int(min(low, rank), rank))
        return [a - rank if self.chance(0.3) else a for a in axes]

    def narrowed(self, shape):
        """A shape that broadcasts to SHAPE."""
        shape = [1 if self.chance(0.3) else d for d in shape]
        drop = self.int(0, len(shape)) if self.chance(0.4) else 0
        return shape[drop:]

    # Tensors.

    def tensor(self, dtype, shape, low=None, high=None, special=0.0):
        """A tensor; numbers from LOW to HIGH. SPECIAL: the probability that it has NaN, infinities
        and negative zeros."""
        shape = tuple(int(d) for d in shape)
        if dtype == "string":
            return numpy.array(
                [self.r.choice(WORDS) for _ in range(int(numpy.prod(shape)))], dtype=numpy.object_
            ).reshape(shape)
        if dtype == "bool":
            return self.n.integers(0, 2, shape).astype(numpy.bool_)
        kind = numpy.dtype(NUMPY[dtype])
        if "int" in dtype:
            low = (0 if dtype.startswith("u") else -9) if low is None else low
            limits = ml_dtypes.iinfo(kind)
            high = (int(limits.max) if dtype in NARROW else 9) if high is None else high
            low, high = max(low, int(limits.min)), min(high, int(limits.max))
            return self.n.integers(int(low), int(high), shape, endpoint=True).astype(kind)
        low = -3.0 if low is None else low
        high = 3.0 if high is None else high
        values = numpy.asarray(self.n.uniform(low, high, shape))
        if special and values.size and self.chance(special):
            flat = values.reshape(-1)
            for value in (numpy.nan, numpy.inf, -numpy.inf, 0.0, -0.0):
                flat[self.r.randrange(flat.size)] = value
            values = flat.reshape(shape)
        return values.astype(kind)

    def wide(self, dtype, shape):
        """Integers over the whole range of DTYPE; floats over many magnitudes."""
        kind = numpy.dtype(NUMPY[dtype])
        if dtype in NARROW:
            return self.tensor(dtype, shape, -1000, 1000)
        if kind.kind in "iu":
            info = numpy.iinfo(kind)
            return self.n.integers(info.min, info.max, shape, dtype=kind, endpoint=True)
        return self.tensor(dtype, shape, -1000, 1000)

    def distinct(self, dtype, shape):
        """Numbers that all differ, in any order, so that a choice among them has one answer."""
        count = int(numpy.prod(shape))
        order = self.n.permutation(count)
        kind = numpy.dtype(NUMPY[dtype])
        if kind.kind not in "iu":
            order = order / 8.0 - count / 16.0
        return order.astype(kind).reshape(tuple(shape))

    # Graphs.

    def fresh(self, stem="v"):
        self.names += 1
        return f"{stem}{self.names}"

    def value(self, array, constant=None):
        """The name of a new input, or of an initializer (CONSTANT; by default one of four)."""
        if array is None:
            return ""
        if isinstance(array, str):
            return array
        name = self.fresh("x")
        if constant is None:
            constant = self.chance(0.25)
        if isinstance(array, (list, Map)) or not constant:
            self.case_.inputs[name] = array
        else:
            self.case_.constants[name] = numpy.asarray(array)
        return name

    def node(self, operator, inputs, outputs=1, domain="", **attributes):
        """Adds a node; returns the names of its outputs. INPUTS: names, arrays or None."""
        names = [self.value(i) for i in inputs]
        while names and not names[-1]:
            names.pop()
        results = [self.fresh("y") for _ in range(outputs)]
        attributes = {k: v for k, v in attributes.items() if v is not None}
        self.case_.nodes.append(
            helper.make_node(operator, names, results, domain=domain, **attributes)
        )
        return results

    def case(self, *inputs, outputs=1, optional=False, tolerance=None, steps=0, only=None,
             **attributes):
        """The case of one node of this operator. OPTIONAL: outputs but the first may be left out.
        tolerance, steps, only: as in Case."""
        self.case_.steps = steps
        results = self.node(self.operator, inputs, outputs, self.domain, **attributes)
        if optional and outputs > 1:
            node = self.case_.nodes[-1]
            for i in range(1, outputs):
                if self.chance(0.3):
                    node.output[i] = ""
            while not node.output[-1]:
                node.output.pop()
            results = [o for o in node.output if o]
        return self.finish(results, tolerance, only)

    def finish(self, outputs, tolerance=None, only=None):
        case = self.case_
        case.outputs = list(outputs)
        case.tolerance = tolerance
        case.only = only
        return case


GENERATORS = {}


def generator(*operators, domain=""):
    """Registers a function that makes a case of any of OPERATORS from a Maker."""

    def register(function):
        for operator in operators:
            assert (domain, operator) not in GENERATORS, operator
            GENERATORS[(domain, operator)] = function
        return function

    return register
