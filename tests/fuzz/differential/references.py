# SPDX-License-Identifier: Apache-2.0
"""Operators by the formulas of the standard, in double, for what no rival computes in full.

Where the other implementations fall short of the standard:
- RNN, GRU, LSTM: ONNX Runtime refuses layout 1 and does not clip the input of LSTM's activation h;
  ONNX's reference ignores clip, sequence_lens, activations, their parameters and input_forget, and
  refuses some directions.
- GroupNormalization: ONNX Runtime's kernels and ONNX's reference round where they like in the first
  stage of a narrow stash_type.
- AveragePool: ONNX Runtime lacks float64; ONNX's reference begins windows earlier in ceil_mode, as
  if what they reach beyond the end were padding of both sides.
- SimplifiedLayerNormalization, GlobalLpPool, MaxRoiPool, Multinomial: ONNX's reference lacks them.
- CastMap, DictVectorizer: ONNX Runtime's Python takes maps to float32 alone, its CastMap pads with
  the text "0.f"; ONNX's reference has one of them, whose result lacks the first axis that models
  from where the operator comes expect.
- Erf, Gelu: ONNX Runtime lacks float64; ONNX's reference computes erf in float32.
- OneHot, ReduceL1 to ReduceSumSquare: ONNX Runtime lacks most types; ONNX's reference refuses some
  shapes.
- Gemm before opset 7: ONNX Runtime lacks it; ONNX's reference forgets beta where broadcast is 0.
- Optional: ONNX Runtime lacks the newest version, and ONNX's reference its types.
- Gradient: neither has it. Here it is the central difference of the graph in double.
"""

import copy
import math

import numpy
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

# ---- recurrent layers ----------------------------------------------------------------------------


def elu(x, alpha):
    return numpy.where(x < 0, alpha * numpy.expm1(numpy.minimum(x, 0)), x)


# {name: (function of x, alpha, beta; the default alpha and beta, None where there is none)}
ACTIVATIONS = {
    "Relu": (lambda x, a, b: numpy.maximum(x, 0), None, None),
    "Tanh": (lambda x, a, b: numpy.tanh(x), None, None),
    "Sigmoid": (lambda x, a, b: 0.5 + 0.5 * numpy.tanh(x / 2), None, None),
    "Affine": (lambda x, a, b: a * x + b, 1.0, 0.0),
    "LeakyRelu": (lambda x, a, b: numpy.where(x < 0, a * x, x), 0.01, None),
    "ThresholdedRelu": (lambda x, a, b: numpy.where(x >= a, x, 0), 1.0, None),
    "ScaledTanh": (lambda x, a, b: a * numpy.tanh(b * x), 1.0, 1.0),
    "HardSigmoid": (lambda x, a, b: numpy.clip(a * x + b, 0, 1), 0.2, 0.5),
    "Elu": (lambda x, a, b: elu(x, a), 1.0, None),
    "Softsign": (lambda x, a, b: x / (1 + numpy.abs(x)), None, None),
    "Softplus": (lambda x, a, b: numpy.logaddexp(0, x), None, None),
}
DEFAULTS = {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}


def activations(operator, given, directions):
    """The activation functions of each direction, which clip their input."""
    names = [n.decode() for n in given.get("activations", [])]
    names = names or [n for n in DEFAULTS[operator]] * directions
    alphas, betas = (list(given.get(f"activation_{w}", [])) for w in ("alpha", "beta"))
    limit = given.get("clip", numpy.inf)
    made = []
    for name in names:
        function, alpha, beta = ACTIVATIONS[name]
        alpha = alphas.pop(0) if alpha is not None and alphas else alpha
        beta = betas.pop(0) if beta is not None and betas else beta
        made.append(lambda x, f=function, a=alpha, b=beta: f(numpy.clip(x, -limit, limit), a, b))
    count = len(DEFAULTS[operator])
    return [made[d * count : (d + 1) * count] for d in range(directions)]


def rnn_step(x, h, c, gates, given, f):
    (w, r, wb, rb), _ = gates
    return f[0](x @ w[0].T + h @ r[0].T + wb[0] + rb[0]), c


def gru_step(x, h, c, gates, given, f):
    (w, r, wb, rb), _ = gates
    z, reset = (f[0](x @ w[k].T + h @ r[k].T + wb[k] + rb[k]) for k in (0, 1))
    if given.get("linear_before_reset", 0):
        inner = reset * (h @ r[2].T + rb[2])
    else:
        inner = (reset * h) @ r[2].T + rb[2]
    return (1 - z) * f[1](x @ w[2].T + inner + wb[2]) + z * h, c


def lstm_step(x, h, c, gates, given, f):
    (w, r, wb, rb), (p_i, p_o, p_f) = gates
    i, o, forget, cell = (x @ w[k].T + h @ r[k].T + wb[k] + rb[k] for k in range(4))
    i = f[0](i + p_i * c)
    forget = 1 - i if given.get("input_forget", 0) else f[0](forget + p_f * c)
    c = forget * c + i * f[1](cell)
    return f[0](o + p_o * c) * f[2](c), c


STEPS = {"RNN": (1, rnn_step), "GRU": (3, gru_step), "LSTM": (4, lstm_step)}


def recurrent(node, given, inputs):
    """Y, Y_h and Y_c, one sequence after another: each for its own length, in its direction."""
    n_gates, step = STEPS[node.op_type]
    x, w, r, b, lens, h0, c0, p = inputs
    batch_first = given.get("layout", 0)
    x = x.swapaxes(0, 1) if batch_first else x
    h0, c0 = (s if s is None or not batch_first else s.swapaxes(0, 1) for s in (h0, c0))
    length, batch, _ = x.shape
    directions, hidden = r.shape[0], r.shape[2]
    b = numpy.zeros((directions, 2 * n_gates * hidden)) if b is None else b
    p = numpy.zeros((directions, 3 * hidden)) if p is None else p
    lens = [length] * batch if lens is None else lens.astype(int)
    y = numpy.zeros((length, directions, batch, hidden))
    last = [numpy.zeros((directions, batch, hidden)) if s is None else s.copy() for s in (h0, c0)]
    functions = activations(node.op_type, given, directions)
    for d in range(directions):
        parts = [a.reshape(n_gates, hidden, -1) for a in (w[d], r[d])]
        gates = (*parts, *b[d].reshape(2, n_gates, hidden)), p[d].reshape(3, hidden)
        backwards = d == 1 or given.get("direction") == b"reverse"
        for k in range(batch):
            h, c = (s[d, k] for s in last)
            times = range(lens[k])
            for t in reversed(times) if backwards else times:
                h, c = step(x[t, k], h, c, gates, given, functions[d])
                y[t, d, k] = h
            last[0][d, k], last[1][d, k] = h, c
    if batch_first:
        return [y.transpose(2, 0, 1, 3)] + [s.swapaxes(0, 1) for s in last]
    return [y] + last


# ---- functions, reductions, normalizations, pools ------------------------------------------------


def erf(node, given, inputs):
    return [numpy.vectorize(math.erf, otypes=[float])(inputs[0])]


def gelu(node, given, inputs):
    x = inputs[0]
    if given.get("approximate") == b"tanh":
        return [x / (1 + numpy.exp(-numpy.sqrt(8 / numpy.pi) * (x + 0.044715 * x**3)))]
    return [x / 2 * numpy.vectorize(math.erfc, otypes=[float])(-x / numpy.sqrt(2))]


def gemm(node, given, inputs):
    a, b, c = inputs
    a = a.T if given.get("transA", 0) else a
    b = b.T if given.get("transB", 0) else b
    return [given.get("alpha", 1.0) * (a @ b) + given.get("beta", 1.0) * c]


def one_hot(node, given, inputs):
    where, depth, (off, on) = inputs[0], int(inputs[1].reshape(-1)[0]), inputs[2]
    axis = given.get("axis", -1) % (where.ndim + 1)
    classes = numpy.arange(depth).reshape([depth] + [1] * (where.ndim - axis))
    where = numpy.where(where < 0, where + depth, where)
    return [numpy.where(numpy.expand_dims(where, axis) == classes, on, off)]


REDUCTIONS = {
    "ReduceL1": lambda x, a: numpy.abs(x).sum(a, keepdims=True),
    "ReduceL2": lambda x, a: numpy.sqrt(numpy.square(x).sum(a, keepdims=True)),
    "ReduceLogSum": lambda x, a: numpy.log(x.sum(a, keepdims=True)),
    "ReduceLogSumExp": lambda x, a: numpy.logaddexp.reduce(x, a, keepdims=True),
    "ReduceSumSquare": lambda x, a: numpy.square(x).sum(a, keepdims=True),
}


def reduce(node, given, inputs):
    x = inputs[0]
    axes = given.get("axes")
    if len(inputs) > 1 and inputs[1] is not None:
        axes = inputs[1].astype(int).tolist()
    if not axes and given.get("noop_with_empty_axes", 0):
        axes, kept = (), x.shape
    else:
        axes = tuple(a % x.ndim for a in axes) if axes else tuple(range(x.ndim))
        kept = [
            1 if i in axes else d
            for i, d in enumerate(x.shape)
            if i not in axes or given.get("keepdims", 1)
        ]
    return [REDUCTIONS[node.op_type](x, axes).reshape(kept)]


def root_mean_square(node, given, inputs):
    x, scale = inputs[:2]
    axes = tuple(range(given.get("axis", -1) % x.ndim, x.ndim))
    size = numpy.prod([x.shape[a] for a in axes])
    norm = numpy.sqrt((x * x).sum(axes, keepdims=True) / size + given.get("epsilon", 1e-5))
    return [x / norm * scale]


def group_normalization(node, given, inputs):
    """GroupNormalization 21: the first stage in the precision of stash_type."""
    x, scale, bias = inputs
    groups = given["num_groups"]
    stash = helper.tensor_dtype_to_np_dtype(given.get("stash_type", TensorProto.FLOAT))
    rows = x.astype(stash).astype(float).reshape(x.shape[0], groups, -1)
    spread = numpy.sqrt(rows.var(2, keepdims=True) + given.get("epsilon", 1e-5))
    normal = ((rows - rows.mean(2, keepdims=True)) / spread).astype(stash).astype(float)
    wide = [1, x.shape[1]] + [1] * (x.ndim - 2)
    return [normal.reshape(x.shape) * scale.reshape(wide) + bias.reshape(wide)]


def average_pool(node, given, inputs):
    """The sum over an axis after the other, by the product of what the windows count of each."""
    y, counts = inputs[0], numpy.ones(())
    for axis in range(len(given["kernel_shape"])):
        taken, counted = windows(y.shape[2 + axis], axis, given)
        y = numpy.moveaxis(numpy.moveaxis(y, 2 + axis, -1) @ taken.T, -1, 2 + axis)
        counts = counts[..., None] * counted
    return [y / counts]


def windows(size, axis, given):
    """Of an axis: a row for each window, 1 where it has an element; how many each counts."""
    kernel = given["kernel_shape"]
    step = given.get("strides", [1] * len(kernel))[axis]
    dilation = given.get("dilations", [1] * len(kernel))[axis]
    reach, auto = (kernel[axis] - 1) * dilation + 1, given.get("auto_pad", b"NOTSET")
    pads = given.get("pads", [0] * 2 * len(kernel))
    begin, end = (pads[axis], pads[len(kernel) + axis]) if auto == b"NOTSET" else (0, 0)
    if auto in (b"SAME_UPPER", b"SAME_LOWER"):
        total = max((-(-size // step) - 1) * step + reach - size, 0)
        begin = total // 2 if auto == b"SAME_UPPER" else total - total // 2
        end = total - begin
    rest = size + begin + end - reach
    count = (-(-rest // step) if given.get("ceil_mode", 0) else rest // step) + 1
    count -= (count - 1) * step >= size + begin  # the last one would begin behind all elements
    at = numpy.arange(count)[:, None, None] * step + numpy.arange(kernel[axis])[:, None] * dilation
    taken = (at == begin + numpy.arange(size)).sum(1)
    padded = (at[..., 0] < size + begin + end).sum(1)
    return taken, padded if given.get("count_include_pad", 0) else taken.sum(1)


def global_lp_pool(node, given, inputs):
    x, p = inputs[0], given.get("p", 2)
    axes = tuple(range(2, x.ndim))
    largest = numpy.abs(x).max(axes, keepdims=True)
    largest[largest == 0] = 1
    return [largest * ((numpy.abs(x) / largest) ** p).sum(axes, keepdims=True) ** (1 / p)]


def max_roi_pool(node, given, inputs):
    """Bins as in Fast R-CNN: rounded corners, overlapping bins, 0 where a bin is empty."""
    x, rois = inputs
    scale, (ph, pw) = given.get("spatial_scale", 1.0), given["pooled_shape"]
    y = numpy.zeros((len(rois), x.shape[1], ph, pw))
    for k, roi in enumerate(rois):
        left, top, right, bottom = (int(numpy.floor(v * scale + 0.5)) for v in roi[1:])
        sizes = max(bottom - top + 1, 1), max(right - left + 1, 1)
        for i in range(ph):
            rows = bins(i, ph, sizes[0], top, x.shape[2])
            for j in range(pw):
                columns = bins(j, pw, sizes[1], left, x.shape[3])
                part = x[int(roi[0]), :, rows, columns]
                y[k, :, i, j] = part.max((1, 2)) if part.size else 0
    return [y]


def bins(i, count, size, start, end):
    """The slice of an axis that bin I of COUNT covers."""
    low = i * size // count + start
    high = -(-(i + 1) * size // count) + start
    return slice(min(max(low, 0), end), min(max(high, 0), end))


def multinomial(node, given, inputs):
    """The classes of which there is no doubt: those whose probability is 1."""
    classes = inputs[0].argmax(1)
    return [numpy.repeat(classes[:, None], given.get("sample_size", 1), 1)]


# ---- maps and optionals --------------------------------------------------------------------------


def text(number):
    """A float32 as Cast writes it."""
    return numpy.format_float_positional(numpy.float32(number), trim="-")


def cast_map(node, given, inputs):
    """Y: [1, n], values in the order of their keys; SPARSE: at their keys, 0 elsewhere."""
    pairs = dict(zip(inputs[0].keys.tolist(), inputs[0].values.tolist()))
    keys = sorted(pairs)
    if given.get("map_form") == b"SPARSE":
        keys = range(given["max_map"])
    values = [pairs.get(k, 0) for k in keys]
    how = given.get("cast_to", b"TO_FLOAT")
    if how == b"TO_STRING":
        values = [v if isinstance(v, str) else text(v) for v in values]
        return [numpy.array([values], numpy.object_)]
    values = [float(v) for v in values]
    if how == b"TO_INT64":
        return [numpy.array([[int(v) for v in values]], numpy.int64)]
    return [numpy.array([values], numpy.float32)]


def dict_vectorizer(node, given, inputs):
    """Y: [1, n], a value for each word of the vocabulary."""
    x = inputs[0]
    words = [w.decode() for w in given.get("string_vocabulary", [])]
    y = numpy.zeros((1, len(words or given["int64_vocabulary"])), x.values.dtype)
    if x.values.dtype == numpy.object_:
        y[:] = ""
    pairs = dict(zip(x.keys.tolist(), x.values))
    for i, word in enumerate(words or given["int64_vocabulary"]):
        if word in pairs:
            y[0, i] = pairs[word]
    return [y]


def optional_element(case, values):
    """What OptionalHasElement or OptionalGetElement says of an Optional, or of a plain value."""
    last = case.nodes[-1]
    inputs = case.nodes[0].input
    if last.op_type == "OptionalGetElement":
        return {last.output[0]: values[inputs[0]]}
    return {last.output[0]: numpy.array(len(inputs) > 0)}


def in_double(values):
    return {n: v.astype(float) if v.dtype.kind == "f" else v for n, v in values.items()}


def gradient(case, values):
    """The derivatives of Gradient's y by each of its inputs: central differences."""
    node = case.nodes[-1]
    graph = copy.copy(case)
    graph.nodes = case.nodes[:-1]
    graph.outputs = [helper.get_node_attr_value(node, "y").decode()]
    graph.inputs, graph.constants = in_double(case.inputs), in_double(case.constants)
    evaluator = ReferenceEvaluator(graph.model())
    step = 2.0**-14
    results = {}
    for name, result in zip(node.input, node.output):
        slopes = numpy.zeros(values[name].shape)
        for at in numpy.ndindex(slopes.shape):
            sides = []
            for sign in (1, -1):
                feeds = {n: v.copy() for n, v in graph.inputs.items()}
                feeds[name][at] += sign * step
                sides.append(evaluator.run(None, feeds)[0])
            slopes[at] = (sides[0] - sides[1]) / (2 * step)
        results[result] = slopes.astype(values[name].dtype)
    return results


# {(domain, operator): function of the node, its attributes and its inputs as doubles, None where
# omitted}. It returns the outputs.
REFERENCES = {
    ("", "RNN"): recurrent,
    ("", "GRU"): recurrent,
    ("", "LSTM"): recurrent,
    ("", "OneHot"): one_hot,
    ("", "Erf"): erf,
    ("", "Gelu"): gelu,
    ("", "SimplifiedLayerNormalization"): root_mean_square,
    ("com.microsoft", "SimplifiedLayerNormalization"): root_mean_square,
    ("", "RMSNormalization"): root_mean_square,
    ("", "AveragePool"): average_pool,
    ("", "GlobalLpPool"): global_lp_pool,
    ("", "MaxRoiPool"): max_roi_pool,
    ("", "Multinomial"): multinomial,
    ("ai.onnx.ml", "CastMap"): cast_map,
    ("ai.onnx.ml", "DictVectorizer"): dict_vectorizer,
}
REFERENCES |= {("", name): reduce for name in REDUCTIONS}
OF_MAPS = [cast_map, dict_vectorizer]
OPTIONALS = {"Optional", "OptionalHasElement", "OptionalGetElement"}
MAX_INPUTS = 8


def reference_of(case):
    """The function for a case of one node, of an Optional and its reader, or of a graph and its
    Gradient; None without one."""
    if {n.op_type for n in case.nodes} <= OPTIONALS:
        return optional_element
    if case.nodes[-1].op_type == "Gradient":
        return gradient
    if len(case.nodes) != 1:
        return None
    node = case.nodes[0]
    if (node.domain, node.op_type) == ("", "Gemm") and case.opsets[""] < 7:
        return gemm
    if node.op_type == "GroupNormalization" and case.opsets[""] >= 21:
        return group_normalization
    return REFERENCES.get((node.domain, node.op_type))


def compute(case):
    """{output: value} of a case that reference_of knows, in the type of its first input."""
    function = reference_of(case)
    values = case.inputs | case.constants
    if function in (optional_element, gradient):
        return function(case, values)
    node = case.nodes[0]
    given = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    if function in OF_MAPS:
        return {node.output[0]: function(node, given, [values[n] for n in node.input])[0]}
    inputs = [values[n].astype(float) if n else None for n in node.input]
    inputs += [None] * (MAX_INPUTS - len(inputs))
    kind = values[node.input[2 if function is one_hot else 0]].dtype
    if node.op_type == "Multinomial":
        kind = helper.tensor_dtype_to_np_dtype(given.get("dtype", TensorProto.INT32))
    count = MAX_INPUTS if function is recurrent else len(node.input)
    results = function(node, given, inputs[:count])
    if kind.kind in "iu":  # what exceeds the type wraps
        results = [v.astype(numpy.int64) for v in results]
    return {n: v.astype(kind) for n, v in zip(node.output, results) if n}
