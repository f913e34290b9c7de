#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Small decoders with weights of 4 bits, as exporters write them, generate text beside ONNX
Runtime.

    decoder_models.py CLTOOL [--kernels simd|simt] [--device SELECTOR] [--keep FOLDER]

A decoder in the style of LLaMA (RMSNorm, rotary embedding, grouped-query attention, SwiGLU) with
made-up weights of a fixed seed, in four exported forms:

    torch       ONNX's own operators, from PyTorch's TorchScript exporter
    torch_int4  the same with its matrix products quantised by ONNX Runtime: MatMulNBits
    contrib     com.microsoft's GroupQueryAttention, RotaryEmbedding,
                SkipSimplifiedLayerNormalization and MatMulNBits, in the structure that
                onnxruntime-genai's model builder writes
    packed      the same with queries, keys and values in one matrix product, rotated inside of the
                attention, and the embedding's table in 4 bits: GatherBlockQuantized

Each reads prompts of several lengths and then takes 20 steps. clgraph goes its own way: it is given
back its own caches and its own most likely token, which must be ONNX Runtime's in each step; logits
must agree to 2e-4 of the largest.

Needs the Python packages numpy, onnx and onnxruntime (with onnx-ir, which its quantiser needs) of
PyPI, in a virtual environment for one; the forms `torch` also PyTorch, which may be another
Python's: $CLG_PYTHON, this one, or /usr/bin/python3, where Debian's python3-torch is. Exits with 77
where the former are missing; leaves out the latter with a message.
"""

import argparse
import math
import os
import pathlib
import subprocess
import sys
import tempfile

from decoder_sizes import BASE, EPSILON, HEAD, HEADS, HIDDEN, KV_HEADS, LAYERS, VOCABULARY

STEPS, TOLERANCE = 20, 2e-4
PROMPTS = (1, 7, 33)


# ---- PyTorch: run by a Python that has it --------------------------------------------------------


def export_torch(path):
    """The decoder as a module, written by the TorchScript exporter. Weights come from weights.npz
    beside the file.
    """
    import numpy
    import torch
    from torch import nn

    weights = {
        name: torch.from_numpy(a) for name, a in numpy.load(path.with_name("weights.npz")).items()
    }

    class Norm(nn.Module):
        def __init__(self, name):
            super().__init__()
            self.weight = nn.Parameter(weights[name])

        def forward(self, x):
            return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + EPSILON))

    def linear(name):
        w = weights[name]
        made = nn.Linear(w.shape[0], w.shape[1], bias=False)
        made.weight = nn.Parameter(w.t().contiguous())
        return made

    def turn(x, cos, sin):
        a, b = x.chunk(2, -1)
        return x * cos + torch.cat((-b, a), -1) * sin

    class Layer(nn.Module):
        def __init__(self, i):
            super().__init__()
            for name in "q", "k", "v", "o", "gate", "up", "down":
                setattr(self, name, linear(f"{i}.{name}"))
            self.before, self.between = Norm(f"{i}.before"), Norm(f"{i}.between")

        def forward(self, x, mask, cos, sin, key, value):
            batch, places, _ = x.shape
            y = self.before(x)
            q = self.q(y).view(batch, places, HEADS, HEAD).transpose(1, 2)
            k = self.k(y).view(batch, places, KV_HEADS, HEAD).transpose(1, 2)
            v = self.v(y).view(batch, places, KV_HEADS, HEAD).transpose(1, 2)
            k = torch.cat((key, turn(k, cos, sin)), 2)
            v = torch.cat((value, v), 2)
            total = k.shape[2]

            def shared(t):
                many = t[:, :, None].expand(batch, KV_HEADS, HEADS // KV_HEADS, total, HEAD)
                return many.reshape(batch, HEADS, total, HEAD)

            scores = turn(q, cos, sin) @ shared(k).transpose(2, 3) / math.sqrt(HEAD) + mask
            seen = (
                (torch.softmax(scores, -1) @ shared(v))
                .transpose(1, 2)
                .reshape(batch, places, HIDDEN)
            )
            x = x + self.o(seen)
            y = self.between(x)
            return x + self.down(nn.functional.silu(self.gate(y)) * self.up(y)), k, v

    class Decoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(VOCABULARY, HIDDEN, _weight=weights["embed"])
            self.layers = nn.ModuleList(Layer(i) for i in range(LAYERS))
            self.norm, self.head = Norm("norm"), linear("head")
            self.register_buffer("rates", 1 / BASE ** (torch.arange(0, HEAD, 2) / HEAD))

        def forward(self, ids, attention_mask, position_ids, *past):
            angles = position_ids[:, :, None].float() * self.rates
            angles = torch.cat((angles, angles), -1)[:, None]
            cos, sin = angles.cos(), angles.sin()
            keys = torch.arange(attention_mask.shape[1])
            later = keys[None, None, None] > position_ids[:, None, :, None]
            hidden = later | (attention_mask[:, None, None] == 0)
            mask = torch.zeros(hidden.shape).masked_fill(hidden, torch.finfo(torch.float32).min)
            x, present = self.embed(ids), []
            for i, layer in enumerate(self.layers):
                x, k, v = layer(x, mask, cos, sin, past[2 * i], past[2 * i + 1])
                present += [k, v]
            return (self.head(self.norm(x)), *present)

    past_names = [f"past_key_values.{i}.{kind}" for i in range(LAYERS) for kind in ("key", "value")]
    present_names = [f"present.{i}.{kind}" for i in range(LAYERS) for kind in ("key", "value")]
    past = [torch.zeros(1, KV_HEADS, 4, HEAD) for _ in past_names]
    inputs = (
        torch.zeros(1, 3, dtype=torch.long),
        torch.ones(1, 7, dtype=torch.long),
        torch.arange(4, 7)[None],
        *past,
    )
    axes = {
        "input_ids": {0: "batch", 1: "places"},
        "attention_mask": {0: "batch", 1: "total"},
        "position_ids": {0: "batch", 1: "places"},
        **{name: {0: "batch", 2: "past"} for name in past_names},
    }
    torch.onnx.export(
        Decoder().eval(),
        inputs,
        str(path),
        opset_version=14,
        dynamic_axes=axes,
        input_names=["input_ids", "attention_mask", "position_ids", *past_names],
        output_names=["logits", *present_names],
    )


def torch_python():
    for candidate in (os.environ.get("CLG_PYTHON"), sys.executable, "/usr/bin/python3"):
        if (
            candidate
            and subprocess.run(
                [candidate, "-c", "import torch, numpy"], capture_output=True
            ).returncode
            == 0
        ):
            return candidate
    return None


# ---- generating ----------------------------------------------------------------------------------


def feeds_of(names, ids, total, past):
    """What a step is given: new tokens, a mask of all there are, their places, the caches."""
    n = len(ids)
    every = {
        "input_ids": numpy.array([ids], numpy.int64),
        "attention_mask": numpy.ones((1, total), numpy.int64),
        "position_ids": numpy.arange(total - n, total, dtype=numpy.int64)[None],
    }
    return {name: past[name] if name in past else every[name] for name in names}


def empty_past():
    none = numpy.zeros((1, KV_HEADS, 0, HEAD), numpy.float32)
    return {f"past_key_values.{i}.{kind}": none for i in range(LAYERS) for kind in ("key", "value")}


def next_past(outputs):
    return {
        name.replace("present", "past_key_values"): v
        for name, v in outputs.items()
        if name.startswith("present")
    }


class Reference:
    def __init__(self, path):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(
            str(path), options, providers=["CPUExecutionProvider"]
        )
        self.inputs = [i.name for i in self.session.get_inputs()]
        self.outputs = [o.name for o in self.session.get_outputs()]

    def run(self, feeds):
        return dict(zip(self.outputs, self.session.run(self.outputs, feeds)))


class Tool:
    def __init__(self, path, options, folder):
        self.path, self.options, self.folder = path, options, folder

    def run(self, feeds):
        arguments, made = [], self.folder / "made"
        for i, (name, array) in enumerate(feeds.items()):
            numpy.save(self.folder / f"{i}.npy", array)
            arguments += ["-i", f"{name}={self.folder / f'{i}.npy'}"]
        done = subprocess.run(
            [
                self.options.cltool,
                "run",
                str(self.path),
                *arguments,
                *self.options.more,
                "-o",
                str(made),
                "--force",
                "--json",
            ],
            capture_output=True,
            text=True,
        )
        if done.returncode != 0:
            sys.exit(
                f"{self.path.stem}: cltool ended with {done.returncode}: {done.stdout}{done.stderr}"
            )
        return {o["name"]: numpy.load(made / o["file"]) for o in json.loads(done.stdout)["outputs"]}


def generate(name, path, length, options, folder):
    """Whether clgraph writes what ONNX Runtime writes; prints how far the logits are apart."""
    reference, tool = Reference(path), Tool(path, options, folder)
    ids = list(numpy.random.default_rng(length).integers(0, VOCABULARY, length))
    total, past, own_past, worst, written = length, empty_past(), empty_past(), 0.0, []
    for step in range(STEPS + 1):
        wanted = reference.run(feeds_of(reference.inputs, ids, total, past))
        got = tool.run(feeds_of(reference.inputs, ids, total, own_past))
        for output in wanted:
            if got[output].shape != wanted[output].shape:
                print(
                    f"FAIL  {name}, prompt {length}, step {step}: {output} is "
                    f"{got[output].shape}, not {wanted[output].shape}"
                )
                return False
        size = numpy.abs(wanted["logits"]).max()
        worst = max(worst, float(numpy.abs(got["logits"] - wanted["logits"]).max() / size))
        token, own = (int(o["logits"][0, -1].argmax()) for o in (wanted, got))
        written.append(own)
        if token != own or not worst <= TOLERANCE:
            print(
                f"FAIL  {name}, prompt {length}, step {step}: token {own}, not {token}; "
                f"logits differ by {worst:.1e}"
            )
            return False
        ids, total = [token], total + 1
        past, own_past = next_past(wanted), next_past(got)
    print(
        f"pass  {name}, prompt of {length}: {STEPS} steps, {len(set(written))} different tokens, "
        f"logits differ by {worst:.1e}"
    )
    return True


def write_models(folder):
    w = make_weights()
    numpy.savez(folder / "weights.npz", **w)
    python = torch_python()
    if python:
        path = folder / "torch.onnx"
        subprocess.run([python, __file__, "--export", str(path)], check=True, capture_output=True)
        yield "torch", path
        onnx.save(quantise(onnx.load(path), False), folder / "torch_int4.onnx")
        yield "torch_int4", folder / "torch_int4.onnx"
    else:
        print(
            "left out: torch, torch_int4: no Python with PyTorch; on Debian it is in the package "
            "python3-torch"
        )
    onnx.save(quantise(make_contrib(w, False), True), folder / "contrib.onnx")
    yield "contrib", folder / "contrib.onnx"
    onnx.save(quantise(make_contrib(w, True), True, ("MatMul", "Gather")), folder / "packed.onnx")
    yield "packed", folder / "packed.onnx"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cltool")
    parser.add_argument("--kernels", default="simd")
    parser.add_argument("--device")
    parser.add_argument("--keep", type=pathlib.Path)
    options = parser.parse_args()
    options.more = [
        "--kernels",
        options.kernels,
        *(["-d", options.device] if options.device else []),
    ]
    with tempfile.TemporaryDirectory() as made:
        folder = options.keep or pathlib.Path(made)
        folder.mkdir(parents=True, exist_ok=True)
        good = True
        for name, path in write_models(folder):
            for length in PROMPTS:
                good &= generate(name, path, length, options, pathlib.Path(made))
    sys.exit(0 if good else 1)


if len(sys.argv) == 3 and sys.argv[1] == "--export":
    export_torch(pathlib.Path(sys.argv[2]))
    sys.exit(0)
try:
    import json
    import logging

    import numpy
    import onnx
    import onnxruntime
    from decoder import make_contrib, make_weights, quantise
except ImportError as missing:
    print(f"skipped: {missing}; needed are numpy, onnx, onnx-ir and onnxruntime of PyPI")
    sys.exit(77)
logging.disable(logging.INFO)  # of the quantiser
main()
