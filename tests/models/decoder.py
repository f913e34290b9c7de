# SPDX-License-Identifier: Apache-2.0
"""Writes a small decoder in the style of LLaMA with com.microsoft's operators, and weights for it.

RMSNorm, rotary embedding, grouped-query attention, SwiGLU; made-up weights of a fixed seed; the
structure that onnxruntime-genai's model builder writes. Needs numpy, onnx and onnxruntime (with
onnx-ir, which its quantiser needs).
"""

import math

import numpy
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer
from decoder_sizes import (
    BASE,
    EPSILON,
    HEAD,
    HEADS,
    HIDDEN,
    KV_HEADS,
    LAYERS,
    MIDDLE,
    PLACES,
    VOCABULARY,
)

BLOCK = 32  # weights that have a scale in common


def make_weights():
    rng = numpy.random.default_rng(20240607)

    def draw(rows, columns):
        return (rng.standard_normal((rows, columns)) / math.sqrt(rows)).astype(numpy.float32)

    def scale():
        return (1 + 0.1 * rng.standard_normal(HIDDEN)).astype(numpy.float32)

    w = {
        "embed": rng.standard_normal((VOCABULARY, HIDDEN)).astype(numpy.float32),
        "head": draw(HIDDEN, VOCABULARY),
        "norm": scale(),
    }
    for i in range(LAYERS):
        w.update(
            {
                f"{i}.q": draw(HIDDEN, HEADS * HEAD),
                f"{i}.k": draw(HIDDEN, KV_HEADS * HEAD),
                f"{i}.v": draw(HIDDEN, KV_HEADS * HEAD),
                f"{i}.o": draw(HEADS * HEAD, HIDDEN),
                f"{i}.gate": draw(HIDDEN, MIDDLE),
                f"{i}.up": draw(HIDDEN, MIDDLE),
                f"{i}.down": draw(MIDDLE, HIDDEN),
                f"{i}.before": scale(),
                f"{i}.between": scale(),
            }
        )
    return w


class Writer:
    """Nodes and constants of a graph, named as onnxruntime-genai's builder names them."""

    def __init__(self):
        self.nodes, self.constants = [], []

    def constant(self, name, array):
        self.constants.append(numpy_helper.from_array(numpy.ascontiguousarray(array), name))
        return name

    def node(self, op, inputs, outputs, domain="", **attributes):
        self.nodes.append(
            helper.make_node(
                op, inputs, outputs, name=outputs[0].rsplit("/", 1)[0], domain=domain, **attributes
            )
        )
        return outputs[0]

    def product(self, name, x, w):
        return self.node(
            "MatMul",
            [x, self.constant(f"model.{name}.weight", w)],
            [f"/model/{name}/MatMul/output_0"],
        )


def write_lengths(g):
    """seqlens_k and total_seq_len, of the mask."""
    at = "/model/attn_mask_reformat/"
    axes, one, index = (
        g.constant(f"/model/constants/{name}", numpy.array(v, numpy.int64))
        for name, v in (("axes", [1]), ("one", [1]), ("index", 1))
    )
    total = g.node("ReduceSum", ["attention_mask", axes], [at + "ReduceSum/output_0"], keepdims=1)
    last = g.node("Sub", [total, one], [at + "Sub/output_0"])
    last = g.node("Cast", [last], [at + "Cast/output_0"], to=TensorProto.INT32)
    shape = g.node("Shape", ["attention_mask"], [at + "Shape/output_0"])
    length = g.node("Gather", [shape, index], [at + "Gather/output_0"], axis=0)
    return last, g.node("Cast", [length], [at + "total/Cast/output_0"], to=TensorProto.INT32)


def write_attention(g, w, i, x, lengths, caches, packed):
    at = f"/model/layers.{i}/attn/"
    numbers = dict(
        num_heads=HEADS, kv_num_heads=KV_HEADS, scale=1 / math.sqrt(HEAD), local_window_size=-1
    )
    past = [f"past_key_values.{i}.key", f"past_key_values.{i}.value"]
    present = [f"present.{i}.key", f"present.{i}.value"]
    if packed:
        qkv = numpy.concatenate([w[f"{i}.{n}"] for n in "qkv"], 1)
        inputs = [g.product(f"layers.{i}.attn.qkv_proj", x, qkv), "", "", *past, *lengths, *caches]
        numbers.update(do_rotary=1, rotary_interleaved=0)
    else:
        q, k, v = (g.product(f"layers.{i}.attn.{n}_proj", x, w[f"{i}.{n}"]) for n in "qkv")
        q, k = (
            g.node(
                "RotaryEmbedding",
                [t, "position_ids", *caches],
                [f"{at}{n}_rotary/RotaryEmbedding/output_0"],
                "com.microsoft",
                interleaved=0,
                num_heads=0,
                rotary_embedding_dim=0,
            )
            for n, t in (("q", q), ("k", k))
        )
        inputs = [q, k, v, *past, *lengths]
        numbers.update(do_rotary=0, rotary_interleaved=0)
    y = g.node(
        "GroupQueryAttention",
        inputs,
        [at + "GroupQueryAttention/output_0", *present],
        "com.microsoft",
        **numbers,
    )
    return g.product(f"layers.{i}.attn.o_proj", y, w[f"{i}.o"])


def write_middle(g, w, i, x):
    at = f"/model/layers.{i}/mlp/act_fn/"
    gate, up = (g.product(f"layers.{i}.mlp.{n}_proj", x, w[f"{i}.{n}"]) for n in ("gate", "up"))
    act = g.node(
        "Mul", [gate, g.node("Sigmoid", [gate], [at + "Sigmoid/output_0"])], [at + "Mul/output_0"]
    )
    both = g.node("Mul", [act, up], [f"/model/layers.{i}/mlp/Mul/output_0"])
    return g.product(f"layers.{i}.mlp.down_proj", both, w[f"{i}.down"])


def make_contrib(w, packed, places=PLACES):
    g = Writer()
    lengths = write_lengths(g)
    angles = numpy.outer(numpy.arange(places), 1 / BASE ** (numpy.arange(0, HEAD, 2) / HEAD))
    caches = [
        g.constant(name, f(angles).astype(numpy.float32))
        for name, f in (("cos_cache", numpy.cos), ("sin_cache", numpy.sin))
    ]
    x = g.node(
        "Gather",
        [g.constant("model.embed_tokens.weight", w["embed"]), "input_ids"],
        ["/model/embed_tokens/Gather/output_0"],
    )

    def skip_norm(name, x, skip, weight, last):
        at = f"/model/{name}/SkipLayerNorm/"
        outputs = [at + "output_0"] if last else [at + "output_0", "", "", at + "output_3"]
        g.node(
            "SkipSimplifiedLayerNormalization",
            [x, skip, g.constant(f"model.{name}.weight", weight)],
            outputs,
            "com.microsoft",
            epsilon=EPSILON,
        )
        return outputs[0], outputs[-1]

    y = g.node(
        "SimplifiedLayerNormalization",
        [x, g.constant("model.layers.0.input_layernorm.weight", w["0.before"])],
        ["/model/layers.0/input_layernorm/LayerNorm/output_0"],
        epsilon=EPSILON,
        axis=-1,
        stash_type=1,
    )
    for i in range(LAYERS):
        y = write_attention(g, w, i, y, lengths, caches, packed)
        y, x = skip_norm(f"layers.{i}.post_attention_layernorm", x, y, w[f"{i}.between"], False)
        y = write_middle(g, w, i, y)
        last = i == LAYERS - 1
        name, weight = (
            ("norm", w["norm"])
            if last
            else (f"layers.{i + 1}.input_layernorm", w[f"{i + 1}.before"])
        )
        y, x = skip_norm(name, x, y, weight, last)
    g.product("lm_head", y, w["head"])
    g.nodes[-1].output[0] = "logits"

    def info(name, dtype, *dims):
        return helper.make_tensor_value_info(name, dtype, dims)

    integer, number = TensorProto.INT64, TensorProto.FLOAT
    inputs = [
        info("input_ids", integer, "batch_size", "sequence_length"),
        info("attention_mask", integer, "batch_size", "total_sequence_length"),
    ]
    if not packed:
        inputs.append(info("position_ids", integer, "batch_size", "sequence_length"))
    outputs = [info("logits", number, "batch_size", "sequence_length", VOCABULARY)]
    for i in range(LAYERS):
        for kind in "key", "value":
            inputs.append(
                info(
                    f"past_key_values.{i}.{kind}",
                    number,
                    "batch_size",
                    KV_HEADS,
                    "past_sequence_length",
                    HEAD,
                )
            )
            outputs.append(
                info(
                    f"present.{i}.{kind}",
                    number,
                    "batch_size",
                    KV_HEADS,
                    "total_sequence_length",
                    HEAD,
                )
            )
    graph = helper.make_graph(g.nodes, "main_graph", inputs, outputs, g.constants)
    return helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)],
        ir_version=10,
    )


def quantise(model, symmetric, kinds=("MatMul",)):
    axes = (("MatMul", 0), ("Gather", 1))
    q = MatMulNBitsQuantizer(
        model, block_size=BLOCK, is_symmetric=symmetric, op_types_to_quantize=kinds, quant_axes=axes
    )
    q.process()
    return q.model.model
