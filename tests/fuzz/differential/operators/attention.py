# SPDX-License-Identifier: Apache-2.0
"""Attention, rotary embeddings and embedding layers."""

import numpy
from maker import TensorProto, generator
from onnx import helper

F = "float32"


def heads(m):
    """(query heads, key heads), of which one divides the other."""
    kv = m.pick(1, 2, 3)
    return kv * m.pick(1, 1, 2), kv


@generator("Attention")
def attention(m):
    q_heads, kv_heads = heads(m)
    n, lq, lk = m.int(1, 2), m.int(1, 7), m.int(1, 9)
    size, v_size = m.pick(2, 4, 8), m.pick(2, 4, 8)
    three = m.chance(0.4)
    dtype = m.pick(F, F, F, "float16")
    attributes = m.maybe(0.5, is_causal=m.pick(0, 1)) | m.maybe(0.4, scale=m.float(0.1, 1))
    attributes |= m.maybe(0.2, softcap=m.float(1, 5))

    def operand(length, count, width):
        shape = [n, length, count * width] if three else [n, count, length, width]
        return m.tensor(dtype, shape, -2, 2)

    if three:
        attributes |= {"q_num_heads": q_heads, "kv_num_heads": kv_heads}
    past = m.int(1, 4) if m.chance(0.35) else 0
    total = lk + past
    inputs = [operand(lq, q_heads, size), operand(lk, kv_heads, size)]
    inputs.append(operand(lk, kv_heads, v_size))
    mask = None
    if m.chance(0.5):
        shape = m.pick([lq, total], [1, 1, lq, total], [n, 1, lq, total], [n, q_heads, lq, total])
        if m.chance(0.4):
            mask = m.tensor("bool", shape)
            mask[..., 0] = True  # a row with nothing to attend to has no answer
            attributes.pop("is_causal", None)
        else:
            mask = m.tensor(dtype, shape, -2, 2)
    inputs.append(mask)
    if past:
        inputs.append(m.tensor(dtype, [n, kv_heads, past, size]))
        inputs.append(m.tensor(dtype, [n, kv_heads, past, v_size]))
        return m.case(*inputs, outputs=3, **attributes)
    if m.version >= 24 and m.chance(0.3):
        attributes.pop("is_causal", None)
        lengths = m.n.integers(1, lk + 1, (n,)).astype(numpy.int64)
        return m.case(*inputs, None, None, lengths, **attributes)
    if m.chance(0.2):
        y, _, _, scores = m.node("Attention", inputs, 4, qk_matmul_output_mode=m.pick(0, 1, 2, 3),
                                 **attributes)
        del m.case_.nodes[-1].output[1:]
        m.case_.nodes[-1].output.extend(["", "", scores])
        return m.finish([y, scores])
    return m.case(*inputs, **attributes)


@generator("RotaryEmbedding")
def rotary(m):
    n, length, count, size = m.int(1, 3), m.int(1, 5), m.int(1, 3), m.pick(2, 4, 8)
    three = m.chance(0.4)
    part = m.pick(0, 0, size // 2 // 2 * 2) if size >= 4 else 0
    half = (part or size) // 2
    x = m.tensor(F, [n, length, count * size] if three else [n, count, length, size])
    attributes = m.maybe(0.6, interleaved=m.pick(0, 1))
    if part:
        attributes["rotary_embedding_dim"] = part
    if three:
        attributes["num_heads"] = count
    if m.chance(0.5):
        rows = m.int(length, 12)
        where = m.n.integers(0, rows, (n, length)).astype(numpy.int64)
        return m.case(x, m.tensor(F, [rows, half]), m.tensor(F, [rows, half]), where, **attributes)
    shape = [n, length, half]
    return m.case(x, m.tensor(F, shape), m.tensor(F, shape), **attributes)


@generator("LinearAttention")
def linear_attention(m):
    n, length, count = m.int(1, 2), m.int(1, 5), m.int(1, 3)
    size, v_size = m.pick(2, 4), m.pick(2, 4)
    rule = m.pick("linear", "gated", "delta", "gated_delta")
    q, k = (m.tensor(F, [n, length, count * size], -1, 1) for _ in range(2))
    v = m.tensor(F, [n, length, count * v_size], -1, 1)
    past = m.tensor(F, [n, count, size, v_size], -1, 1) if m.chance(0.5) else None
    decay = m.tensor(F, [n, length, count], -1, -0.1) if "gated" in rule else None
    beta = m.tensor(F, [n, length, count], 0.1, 0.9) if "delta" in rule else None
    attributes = m.maybe(0.5, scale=m.float(0.2, 1))
    return m.case(q, k, v, past, decay, beta, outputs=2, update_rule=rule, q_num_heads=count,
                  kv_num_heads=count, **attributes)


@generator("FlexAttention", domain="ai.onnx.preview")
def flex_attention(m):
    q_heads, kv_heads = heads(m)
    n, lq, lk, size, v_size = m.int(1, 2), m.int(1, 6), m.int(1, 6), m.pick(2, 4), m.pick(2, 4)
    m.case_.opsets[""] = 26
    attributes = m.maybe(0.5, scale=m.float(0.2, 1))
    scores = [n, q_heads, lq, lk]
    if m.chance(0.5):
        attributes["score_mod"] = modifier(m, "score", scores)
    if m.chance(0.4):
        attributes["prob_mod"] = modifier(m, "prob", scores)
    return m.case(
        m.tensor(F, [n, q_heads, lq, size]), m.tensor(F, [n, kv_heads, lk, size]),
        m.tensor(F, [n, kv_heads, lk, v_size]), **attributes)


def modifier(m, name, shape):
    """A graph that changes scores or probabilities: a function of them, a factor or a bias."""
    info = helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
    out = helper.make_tensor_value_info(f"{name}_out", TensorProto.FLOAT, shape)
    how = m.pick("unary", "factor", "bias", "softcap")
    constants = []
    if how == "unary":
        nodes = [helper.make_node(m.pick("Tanh", "Abs", "Neg"), [name], [out.name])]
    elif how == "softcap":
        constants = [helper.make_tensor("cap", TensorProto.FLOAT, [], [m.float(1, 5)])]
        nodes = [helper.make_node("Div", [name, "cap"], ["less"]),
                 helper.make_node("Tanh", ["less"], ["limited"]),
                 helper.make_node("Mul", ["limited", "cap"], [out.name])]
    else:
        some = m.tensor(F, m.narrowed(shape), -1, 1)
        constants = [helper.make_tensor("other", TensorProto.FLOAT, some.shape, some.reshape(-1))]
        operator = "Mul" if how == "factor" else "Add"
        nodes = [helper.make_node(operator, [name, "other"], [out.name])]
    return helper.make_graph(nodes, name, [info], [out], constants)


@generator("Attention", domain="com.microsoft")
def contrib_attention(m):
    n, length, count, size = m.int(1, 3), m.int(1, 6), m.int(1, 3), m.pick(2, 4, 8)
    hidden, width = count * size, m.pick(4, 6, 8)
    x = m.tensor(F, [n, length, width], -1, 1)
    w = m.value(m.tensor(F, [width, 3 * hidden], -0.5, 0.5), m.chance(0.7))
    b = m.tensor(F, [3 * hidden], -0.5, 0.5)
    mask = None
    if m.chance(0.5):
        mask = m.n.integers(1, length + 1, (n,)).astype(numpy.int32)
        if m.chance(0.5):
            mask = (numpy.arange(length)[None] < mask[:, None]).astype(numpy.int32)
    attributes = {"num_heads": count} | m.maybe(0.3, unidirectional=1)
    return m.case(x, w, b, mask, **attributes)


@generator("MultiHeadAttention", domain="com.microsoft")
def multi_head(m):
    n, lq, lk, count, size = m.int(1, 3), m.int(1, 6), m.int(1, 6), m.int(1, 3), m.pick(2, 4, 8)
    q = m.tensor(F, [n, lq, count * size], -1, 1)
    k, v = (m.tensor(F, [n, lk, count * size], -1, 1) for _ in range(2))
    bias = m.tensor(F, [3 * count * size], -0.5, 0.5) if m.chance(0.1) else None  # refused
    mask = None
    if m.chance(0.4):
        lens = m.n.integers(1, lk + 1, (n,))
        mask = (numpy.arange(lk)[None] < lens[:, None]).astype(numpy.int32)
    extra = m.tensor(F, [n, count, lq, lk], -1, 1) if m.chance(0.4) else None
    scale = m.maybe(0.4, scale=m.float(0.2, 1))
    return m.case(q, k, v, bias, mask, extra, num_heads=count, **scale)


@generator("GroupQueryAttention", domain="com.microsoft")
def group_query(m):
    q_heads, kv_heads = heads(m)
    n, size, most = m.int(1, 2), 16, 12
    prompt = m.chance(0.5)
    length = m.int(1, 5) if prompt else 1
    past = 0 if prompt else m.int(1, 6)
    total = past + length
    q = m.tensor(F, [n, length, q_heads * size], -1, 1)
    k, v = (m.tensor(F, [n, length, kv_heads * size], -1, 1) for _ in range(2))
    cache = [m.tensor(F, [n, kv_heads, past, size], -1, 1) for _ in range(2)]
    lens = numpy.full((n,), total - 1, numpy.int32)
    inputs = [q, k, v] + [m.value(c, False) for c in cache]
    inputs += [m.value(lens, False), m.value(numpy.array(total, numpy.int32), True)]
    attributes = {"num_heads": q_heads, "kv_num_heads": kv_heads}
    attributes |= m.maybe(0.3, scale=m.float(0.1, 1))
    if m.chance(0.4):
        inputs += [m.value(m.tensor(F, [most, size // 2]), True) for _ in range(2)]
        attributes |= {"do_rotary": 1} | m.maybe(0.5, rotary_interleaved=m.pick(0, 1))
    return m.case(*inputs, outputs=3, **attributes)


@generator("RotaryEmbedding", domain="com.microsoft")
def contrib_rotary(m):
    n, length, count, size, rows = m.int(1, 2), m.int(1, 5), m.int(1, 3), m.pick(4, 8), 10
    x = m.tensor(F, [n, length, count * size] if m.chance(0.6) else [n, count, length, size])
    if m.chance(0.5):
        where = numpy.array([m.int(0, rows - length)], numpy.int64)
    else:
        where = m.n.integers(0, rows, (n, length)).astype(numpy.int64)
    caches = [m.value(m.tensor(F, [rows, size // 2]), True) for _ in range(2)]
    return m.case(x, m.value(where, m.chance(0.4)), *caches, **m.maybe(0.5, interleaved=1))


def embedding(m):
    n, length, hidden, words = m.int(1, 3), m.int(1, 6), m.pick(4, 8), 12
    ids = m.n.integers(0, words, (n, length)).astype(numpy.int32)
    segments = m.n.integers(0, 2, (n, length)).astype(numpy.int32)
    mask = None
    if m.chance(0.5):
        lens = m.n.integers(1, length + 1, (n,))
        mask = (numpy.arange(length)[None] < lens[:, None]).astype(numpy.int32)
    return length, hidden, words, ids, segments, mask


@generator("EmbedLayerNormalization", domain="com.microsoft")
def embed(m):
    length, hidden, words, ids, segments, mask = embedding(m)
    m.case_.symbolic = False  # ONNX Runtime needs the sizes of the tables
    tables = [m.tensor(F, [words, hidden]), m.tensor(F, [length + 2, hidden])]
    third = m.chance(0.6)
    tables.append(m.tensor(F, [2, hidden]) if third else None)
    return m.case(ids, segments if third else None, *tables, m.tensor(F, [hidden]),
                  m.tensor(F, [hidden]), mask, outputs=2)


@generator("QEmbedLayerNormalization", domain="com.microsoft")
def q_embed(m):
    length, hidden, words, ids, segments, mask = embedding(m)
    kind = m.pick("uint8", "int8")
    shapes = [[words, hidden], [length + 2, hidden], [2, hidden], [hidden], [hidden]]
    tables = [m.value(m.wide(kind, s), True) for s in shapes]
    scales = [m.value(numpy.array(m.float(0.005, 0.05), numpy.float32), True) for _ in shapes]
    zeros = [m.value(m.tensor(kind, [], 0, 5), True) for _ in shapes]
    return m.case(ids, segments, *tables, mask, *scales, *zeros, outputs=2)


@generator("QAttention", domain="com.microsoft")
def q_attention(m):
    n, length, count, size = m.int(1, 2), m.int(1, 6), m.int(1, 3), m.pick(2, 4, 8)
    hidden = count * size
    kind = m.pick("uint8", "int8")
    x = m.wide("uint8", [n, length, hidden])
    w = m.value(m.wide(kind, [hidden, 3 * hidden]), True)
    b = m.tensor(F, [3 * hidden], -0.5, 0.5)
    scales = [m.value(numpy.array(v, numpy.float32), True) for v in (0.01, 0.01)]
    mask = m.n.integers(1, length + 1, (n,)).astype(numpy.int32) if m.chance(0.5) else None
    zeros = [m.value(m.tensor("uint8", [], 120, 130), True),
             m.value(m.tensor(kind, [], *((120, 130) if kind == "uint8" else (-3, 3))), True)]
    return m.case(x, w, b, *scales, mask, *zeros, num_heads=count, **m.maybe(0.3, unidirectional=1))
