#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes decoder models of true shapes with random weights of 4 bits, through the model builder of
onnxruntime-genai, which runs offline from a configuration.

    make_llm.py FOLDER [MODEL...]           into FOLDER/MODEL, a folder that onnxruntime-genai reads
    make_llm.py --check FOLDER [MODEL...]   generates 96 tokens with ONNX Runtime and prints them

Models:

    tiny        2 layers of 64, 512 tokens, the structure of Qwen2: packed projections with bias,
                embedding shared with the output (GatherBlockQuantized), MatMulNBits
    tiny_qdq    the same with DequantizeLinear (block-wise, opset 21) before MatMul and an embedding
                of float32
    tiny_acc4   the same as tiny with accuracy_level 4 (tiny has 0)
    qwen05      the shape of Qwen2.5-0.5B: 24 layers of 896, 14 heads, 2 of keys, 151936 tokens
    llama1b     the shape of Llama-3.2-1B: 16 layers of 2048, 32 heads, 8 of keys, 128256 tokens
    qwen05_acc4, llama1b_acc4  these with accuracy_level 4, made only when named

Weights come from a fixed seed. Layers outweigh the embedding in the residual stream and attention
is sharp, so that greedy generation does not repeat itself; the last norm spreads the logits
(standard deviation LOGITS). The text of such a model means nothing; its tokenizer has one token
for each byte.

Needs the Python packages onnxruntime-genai, transformers and torch. Exits with 77 without them.
Memory: 4 to 8 bytes per weight. The models of a folder are left alone where they exist.
"""

import argparse
import json
import math
import pathlib
import shutil
import subprocess
import sys
import tempfile

LOGITS, EMBED = 3.0, 0.05  # standard deviations of the logits and of the embedding
SEED = 20261127
BUILDER = "onnxruntime_genai.models.builder"

TINY = dict(
    vocab_size=512,
    hidden_size=64,
    intermediate_size=160,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=512,
    rope_theta=10000.0,
    tie_word_embeddings=True,
)
QWEN05 = dict(
    vocab_size=151936,
    hidden_size=896,
    intermediate_size=4864,
    num_hidden_layers=24,
    num_attention_heads=14,
    num_key_value_heads=2,
    max_position_embeddings=32768,
    rope_theta=1000000.0,
    tie_word_embeddings=True,
)
LLAMA1B = dict(
    vocab_size=128256,
    hidden_size=2048,
    intermediate_size=8192,
    num_hidden_layers=16,
    num_attention_heads=32,
    num_key_value_heads=8,
    head_dim=64,
    max_position_embeddings=131072,
    rope_parameters={
        "rope_type": "llama3",
        "rope_theta": 500000.0,
        "factor": 32.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    },
    tie_word_embeddings=True,
)

# Name: class of transformers' configuration, sizes, options of the builder.
MODELS = {
    "tiny": ("Qwen2", TINY, ("accuracy_level=0",)),
    "tiny_qdq": ("Qwen2", TINY, ("use_qdq=true", "shared_embeddings=false")),
    "tiny_acc4": ("Qwen2", TINY, ("accuracy_level=4",)),
    "qwen05": ("Qwen2", QWEN05, ("accuracy_level=0",)),
    "qwen05_acc4": ("Qwen2", QWEN05, ("accuracy_level=4",)),
    "llama1b": ("Llama", LLAMA1B, ("accuracy_level=0",)),
    "llama1b_acc4": ("Llama", LLAMA1B, ("accuracy_level=4",)),
}
DEFAULT = ("tiny", "tiny_qdq", "tiny_acc4", "qwen05", "llama1b")


def gain_of(name):
    """By how much a projection's deviation differs from 1/sqrt(fan-in)."""
    if "q_proj" in name or "k_proj" in name:
        return 2.0  # sharp attention: which token is seen changes from step to step
    if "layers.0.self_attn.o_proj" in name:
        return EMBED  # as large as the embedding, to which it is added
    return 1.5 if "down_proj" in name else 1.0


def fill(model, hidden):
    """Draws the weights of the seed; the last norm gives logits the deviation LOGITS."""
    torch.manual_seed(SEED)
    with torch.no_grad():
        for name, p in model.named_parameters():
            if "embed_tokens" in name:
                p.normal_(0, EMBED)
            elif name == "model.norm.weight":
                p.fill_(LOGITS / (EMBED * math.sqrt(hidden)))
            elif "norm" in name:
                p.normal_(1, 0.1)
            elif name.endswith("bias"):
                p.normal_(0, 0.2)
            else:
                p.normal_(0, gain_of(name) / math.sqrt(p.shape[1]))


def write_tokenizer(folder):
    """A byte-level tokenizer without merges: 256 tokens, and the two that start and end a text."""
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    made = tokenizers.Tokenizer(
        tokenizers.models.BPE(vocab={c: i for i, c in enumerate(alphabet)}, merges=[])
    )
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, bos_token="<|begin|>", eos_token="<|end|>"
    ).save_pretrained(folder)


def write_source(family, sizes, folder):
    """A folder as a model hub would have it: weights, configuration and tokenizer."""
    config = getattr(transformers, family + "Config")(
        **sizes, rms_norm_eps=1e-6, bos_token_id=256, eos_token_id=257, dtype="float32"
    )
    model = getattr(transformers, family + "ForCausalLM")(config)
    fill(model, sizes["hidden_size"])
    model.save_pretrained(folder)
    write_tokenizer(folder)


def make(name, folder):
    family, sizes, options = MODELS[name]
    if (folder / "genai_config.json").exists():
        print(f"exists: {folder}")
        return
    with tempfile.TemporaryDirectory(dir=folder.parent) as work:
        work = pathlib.Path(work)
        write_source(family, sizes, work / "source")
        command = [sys.executable, "-m", BUILDER, "-i", work / "source", "-o", work / "made"]
        command += ["-p", "int4", "-e", "cpu", "-c", work / "cache", "--extra_options"]
        done = subprocess.run([*command, "block_size=32", *options], capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{name}: the builder ended with {done.returncode}: {done.stderr[-4000:]}")
        shutil.rmtree(folder, ignore_errors=True)
        (work / "made").rename(folder)
    size = sum(f.stat().st_size for f in folder.iterdir())
    print(f"wrote: {folder}, {size / 1e6:.1f} MB")


def check(name, folder):
    """Whether 96 greedy steps after a prompt of 8 write at least 50 different tokens."""
    config = json.loads((folder / "genai_config.json").read_text())
    decoder = config["model"]["decoder"]
    session = onnxruntime.InferenceSession(str(folder / decoder["filename"]))
    empty = numpy.zeros((1, decoder["num_key_value_heads"], 0, decoder["head_size"]), numpy.float32)
    feeds = {i.name: empty for i in session.get_inputs() if i.name.startswith("past")}
    total = 8
    ids = numpy.random.default_rng(1).integers(0, 250, (1, total))
    outputs, written = [o.name for o in session.get_outputs()], []
    asked = {i.name for i in session.get_inputs()}
    for _ in range(96):
        feeds["input_ids"] = ids
        feeds["attention_mask"] = numpy.ones((1, total), numpy.int64)
        if "position_ids" in asked:
            feeds["position_ids"] = numpy.arange(total - ids.shape[1], total)[None]
        got = dict(zip(outputs, session.run(None, feeds)))
        written.append(int(got["logits"][0, -1].argmax()))
        feeds = {
            n.replace("present", "past_key_values"): v for n, v in got.items() if n != "logits"
        }
        ids, total = numpy.array([[written[-1]]]), total + 1
    different, spread = len(set(written)), got["logits"].std()
    print(f"{name}: {different} different tokens of 96, logits' deviation {spread:.2f}: {written}")
    return different >= 50


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=", ".join(MODELS))
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    good = True
    for name in options.models or DEFAULT:
        if name not in MODELS:
            parser.error(f"no model {name}; there are {', '.join(MODELS)}")
        folder = options.folder.resolve() / name
        folder.parent.mkdir(parents=True, exist_ok=True)
        if options.check:
            good &= check(name, folder)
        else:
            make(name, folder)
    sys.exit(0 if good else 1)


try:
    import numpy
    import onnxruntime
    import onnxruntime_genai
    import tokenizers
    import torch
    import transformers
except ImportError as missing:
    print(f"skipped: {missing}; needed are onnxruntime-genai, transformers and torch of PyPI")
    sys.exit(77)
main()
