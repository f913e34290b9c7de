# SPDX-License-Identifier: Apache-2.0
"""Matrix products."""

import numpy
from maker import FLOATS, generator


def matrices(m, batched=True):
    """Shapes (m, k) and (k, n) with batches that broadcast; now and then a vector."""
    rows, k, n = m.dim(), m.r.choice([1, 2, 5, 8, 16, 31, 64, 100]), m.dim()
    if m.chance(0.04):
        rows = 0
    batch = m.shape(0, 3, zero=False, most=12) if batched else []
    a, b = m.narrowed(batch) + [rows, k], m.narrowed(batch) + [k, n]
    if batched and m.chance(0.1):
        a = [k]
    elif batched and m.chance(0.1):
        b = [k]
    return a, b


@generator("MatMul")
def matmul(m):
    a, b = matrices(m)
    dtype = m.type()
    return m.case(m.tensor(dtype, a), m.tensor(dtype, b))


@generator("Gemm")
def gemm(m):
    a, b = matrices(m, batched=False)
    dtype = m.type()
    out = [a[0], b[1]]
    attributes = m.maybe(0.5, alpha=m.float(-2, 2), beta=m.float(-2, 2))
    if dtype not in FLOATS:
        attributes = {k: float(round(v)) for k, v in attributes.items()}
    if m.chance(0.4):
        a, attributes["transA"] = a[::-1], 1
    if m.chance(0.4):
        b, attributes["transB"] = b[::-1], 1
    bias = m.narrowed(out)
    if m.version < 7:
        bias = out
    given = m.version < 11 or m.chance(0.7)
    c = m.tensor(dtype, bias) if given else None
    return m.case(m.tensor(dtype, a), m.tensor(dtype, b), c, **attributes)


@generator("Einsum")
def einsum(m):
    letters = "abcde"
    sizes = {c: m.int(1, 6) for c in letters}
    terms = []
    for _ in range(m.pick(1, 2, 2, 3)):
        terms.append("".join(m.r.sample(letters, m.int(1, 3))))
    used = sorted(set("".join(terms)))
    equation = ",".join(terms)
    if m.chance(0.8):
        equation += "->" + "".join(m.r.sample(used, m.int(0, len(used))))
    dtype = m.type("T", FLOATS + ["int32", "int64"])
    low, high = (-2, 2) if dtype in FLOATS else (-3, 3)
    operands = [m.tensor(dtype, [sizes[c] for c in t], low, high) for t in terms]
    return m.case(*operands, equation=equation)


@generator("Det")
def det(m):
    n = m.int(1, 6)
    return m.case(m.tensor(m.type(), m.shape(0, 2, most=20) + [n, n], -1.5, 1.5))


@generator("MatMulInteger")
def matmul_integer(m):
    a, b = matrices(m)
    if len(a) < 2 or len(b) < 2:
        a, b = [3, 7], [7, 5]
    ta, tb = m.pick("uint8", "uint8", "int8"), m.pick("uint8", "int8")
    za = zb = None
    if m.chance(0.6):
        za = m.tensor(ta, [] if m.chance(0.7) else [1])
    if m.chance(0.6):
        zb = m.tensor(tb, [b[-1]] if m.chance(0.4) and len(b) == 2 else [])
    return m.case(m.wide(ta, a), m.wide(tb, b), za, zb)


@generator("FusedMatMul", domain="com.microsoft")
def fused_matmul(m):
    a, b = matrices(m)
    if len(a) < 2 or len(b) < 2:
        a, b = [3, 7], [7, 5]
    attributes = m.maybe(0.5, alpha=m.float(-2, 2))
    if m.chance(0.4):
        a[-2], a[-1] = a[-1], a[-2]
        attributes["transA"] = 1
    if m.chance(0.4):
        b[-2], b[-1] = b[-1], b[-2]
        attributes["transB"] = 1
    return m.case(m.tensor("float32", a), m.tensor("float32", b), **attributes)


@generator("FusedGemm", domain="com.microsoft")
def fused_gemm(m):
    a, b = matrices(m, batched=False)
    attributes = {"activation": m.pick("Relu", "Sigmoid", "Tanh", "LeakyRelu")}
    if attributes["activation"] == "LeakyRelu":
        attributes["activation_alpha"] = m.float(0.05, 0.5)
    attributes |= m.maybe(0.5, alpha=m.float(-2, 2), beta=m.float(-2, 2))
    c = m.tensor("float32", m.narrowed([a[0], b[1]]))
    return m.case(m.tensor("float32", a), m.tensor("float32", b), c, **attributes)


@generator("MatMulNBits", domain="com.microsoft")
def matmul_nbits(m):
    bits, block = m.pick(4, 4, 8), m.pick(16, 32, 64)
    k, n, rows = m.pick(16, 32, 48, 100, 128), m.pick(1, 5, 8, 16), m.int(1, 5)
    blocks = -(-k // block)
    packed = m.n.integers(0, 256, (n, blocks, block * bits // 8)).astype(numpy.uint8)
    scales = m.tensor("float32", [n * blocks], 0.01, 0.2)
    zeros = None
    if m.chance(0.5):
        zeros = m.n.integers(0, 256, (n * -(-blocks * bits // 8),)).astype(numpy.uint8)
    a = m.tensor("float32", [rows, k] if m.chance(0.5) else [m.int(1, 2), rows, k])
    inputs = [a, m.value(packed, True), m.value(scales, True)]
    inputs.append(None if zeros is None else m.value(zeros, True))
    return m.case(*inputs, K=k, N=n, bits=bits, block_size=block)


@generator("MatMulIntegerToFloat", domain="com.microsoft")
def matmul_integer_to_float(m):
    a, b = matrices(m, batched=False)
    a[0] = max(a[0], 1)
    ta, tb = m.pick("uint8", "int8"), m.pick("uint8", "int8")
    if ta == "int8":
        tb = "int8"
    columns = m.chance(0.4)
    sa = numpy.array(m.float(0.01, 0.1), numpy.float32)
    sb = m.tensor("float32", [b[1]] if columns else [], 0.01, 0.1)
    za = m.tensor(ta, []) if m.chance(0.5) else None
    zb = m.tensor(tb, [b[1]] if columns else []) if m.chance(0.5) else None
    bias = m.tensor("float32", [b[1]]) if m.chance(0.5) else None
    return m.case(m.wide(ta, a), m.wide(tb, b), sa, sb, za, zb, bias)


@generator("DynamicQuantizeMatMul", domain="com.microsoft")
def dynamic_quantize_matmul(m):
    a, b = matrices(m, batched=False)
    a[0] = max(a[0], 1)
    tb = m.pick("uint8", "int8")
    columns = m.chance(0.4)
    scale = m.tensor("float32", [b[1]] if columns else [], 0.01, 0.1)
    zero = m.tensor(tb, [b[1]] if columns else []) if m.chance(0.5) else None
    bias = m.tensor("float32", [b[1]]) if m.chance(0.5) else None
    x = m.tensor("float32", a)
    return m.case(x, m.wide(tb, b), scale, zero, bias, tolerance=(1e-2, 0.05))

