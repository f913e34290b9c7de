#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A decoder language model by clgraph's generator, beside ONNX Runtime and onnxruntime-genai.

    generate.py FOLDER [--device SELECTOR] [--steps N] [--check-only] [--rounds N] [--prompt N]
                [--new N] [--threads N] [--kernels simd|simt] [--tolerance T]
                [--cache growing|reserved] [--chunk N] [--own] [--exact]

FOLDER is one of onnxruntime-genai's. First the logits of N (200) steps are compared with those of
ONNX Runtime's CPU provider: both get the same tokens, of which every second is the most likely one
and the others are drawn, so that there are at least 50 different ones; exits with 1 where a logit
differs by more than T (1e-3) times the largest. MatMulNBits with accuracy_level 4 rounds
activations to 8 bits, which amplifies differences of the last bits (docs/quantization.md): with
--own, logits of ONNX Runtime without graph optimisations are compared too, and clgraph's may differ
by 1.5 times as much as those do. With --exact, prints how far the logits of both are from those in
float64 (exact_decoder.py, which needs onnx). Then both generate text in turn, --rounds times: a
prompt of --prompt tokens, then --new tokens greedily. Times are of the processor (user and system
time of the process, all threads), which other work disturbs less, per token; best with one thread
each: --threads 1 sets POCL_MAX_PTHREAD_COUNT for a child process. Prints medians and ratios.

Needs numpy and onnxruntime; for the times also onnxruntime-genai of PyPI. PYTHONPATH has clgraph.
Exits with 77 where onnxruntime is missing.
"""

import argparse
import json
import os
import pathlib
import resource
import statistics
import sys
import time

import numpy as np


def processor_s():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


# ---- logits --------------------------------------------------------------------------------------


class Reference:
    """ONNX Runtime's session with its caches, token by token."""

    def __init__(self, folder, threads, optimised=True):
        config = json.loads((folder / "genai_config.json").read_text())["model"]["decoder"]
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        # Activations in float32, which by default become int8 where weights are DequantizeLinear's.
        options.add_session_config_entry("session.qdq_matmulnbits_accuracy_level", "0")
        if not optimised:
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        self.path = folder / config["filename"]
        self.session = onnxruntime.InferenceSession(
            str(self.path), options, providers=["CPUExecutionProvider"]
        )
        self.outputs = [o.name for o in self.session.get_outputs()]
        self.inputs = {i.name for i in self.session.get_inputs()}
        self.caches = {}
        for port in self.session.get_inputs():
            if port.name.startswith("past"):
                dtype = np.float16 if "16" in port.type else np.float32
                heads, size = config["num_key_value_heads"], config["head_size"]
                self.caches[port.name] = np.zeros((1, heads, 0, size), dtype)
        self.length = 0

    def logits(self, tokens):
        self.length += len(tokens)
        feed = {
            "input_ids": np.array([tokens], np.int64),
            "attention_mask": np.ones((1, self.length), np.int64),
            "position_ids": np.arange(self.length - len(tokens), self.length)[None],
        }
        feed = {name: a for name, a in feed.items() if name in self.inputs}
        results = dict(zip(self.outputs, self.session.run(None, {**feed, **self.caches})))
        for name in self.caches:
            self.caches[name] = results[name.replace("past_key_values", "present")]
        return results["logits"][0, -1].astype(np.float32)


def relative_difference(a, b):
    return float(np.abs(a - b).max() / np.abs(b).max())


def compare(generator, folder, arguments):
    """Whether the logits agree; prints the largest differences."""
    reference = Reference(folder, arguments.threads)
    other = Reference(folder, arguments.threads, optimised=False) if arguments.own else None
    draws = np.random.default_rng(1)
    tokens = [int(t) for t in draws.integers(0, 256, 16)]
    generator.append(tokens)
    expected = reference.logits(tokens)
    worst = relative = own = 0.0
    plain = other.logits(tokens) if other else expected
    n_same, seen, kept = 0, set(), []
    for step in range(arguments.steps):
        got = generator.logits()
        worst = max(worst, float(np.abs(got - expected).max()))
        relative = max(relative, relative_difference(got, expected))
        own = max(own, relative_difference(plain, expected))
        n_same += int(got.argmax() == expected.argmax())
        if arguments.exact:
            kept.append((got, expected))
        token = int(expected.argmax()) if step % 2 else int(draws.integers(0, 256))
        seen.add(token)
        tokens.append(token)
        generator.append([token])
        expected = reference.logits([token])
        plain = other.logits([token]) if other else expected
    good = relative <= max(arguments.tolerance, 1.5 * own) and len(seen) >= min(
        50, arguments.steps // 4
    )
    print(
        f"{'pass' if good else 'FAIL'}  {folder.name}: {arguments.steps} steps, {len(seen)} "
        f"different tokens, largest difference of a logit {worst:.2e}, {relative:.2e} of the "
        f"largest; {n_same} most likely tokens are the same"
        + (f"; ONNX Runtime without optimisations: {own:.2e}" if other else "")
    )
    if kept:
        from exact_decoder import ExactDecoder  # needs onnx

        exact = ExactDecoder(reference.path).logits(tokens[:-1])[-len(kept) :]
        mine, theirs = (
            max(float(np.abs(pair[i] - row).max()) for pair, row in zip(kept, exact))
            for i in (0, 1)
        )
        print(f"largest difference from float64: clgraph {mine:.2e}, ONNX Runtime {theirs:.2e}")
    generator.rewind(0)
    return good


# ---- times ---------------------------------------------------------------------------------------


def ours(generator, prompt, n_new):
    """Seconds of the prompt and its first token, and of each token after it."""
    generator.rewind(0)
    generator.set_sampling()
    generator.append(prompt)
    start = processor_s()
    generator.next()
    middle = processor_s()
    for _ in range(n_new):
        generator.end = None
        generator.next()
    return middle - start, (processor_s() - middle) / n_new


def genai_model(folder, threads):
    config = og.Config(str(folder))
    config.clear_providers()
    config.overlay(
        json.dumps({"model": {"decoder": {"session_options": {"intra_op_num_threads": threads}}}})
    )
    return og.Model(config)


def theirs(model, prompt, n_new):
    parameters = og.GeneratorParams(model)
    length = len(prompt) + n_new + 1
    parameters.set_search_options(min_length=length, max_length=length, do_sample=False)
    generator = og.Generator(model, parameters)
    start = processor_s()
    generator.append_tokens(np.array([prompt], np.int32))
    generator.generate_next_token()
    middle = processor_s()
    for _ in range(n_new):
        generator.generate_next_token()
    return middle - start, (processor_s() - middle) / n_new


def measure(generator, folder, arguments):
    model = genai_model(folder, arguments.threads)
    prompt = [int(t) for t in np.random.default_rng(2).integers(0, 256, arguments.prompt)]
    ours(generator, prompt, arguments.new)  # compiles
    theirs(model, prompt, 4)
    rounds = []
    for _ in range(arguments.rounds):
        rounds.append(
            (ours(generator, prompt, arguments.new), theirs(model, prompt, arguments.new))
        )
    for what, index in ("prompt", 0), ("new token", 1):
        n = arguments.prompt if index == 0 else 1
        mine = [a[index] / n for a, _ in rounds]
        other = [b[index] / n for _, b in rounds]
        ratio = statistics.median(a / b for a, b in zip(mine, other))
        print(
            f"{what}: clgraph {1e3 * statistics.median(mine):.2f} ms of processor time a token "
            f"({1 / statistics.median(mine):.1f} tokens/s), onnxruntime-genai "
            f"{og.__version__} {1e3 * statistics.median(other):.2f} ms "
            f"({1 / statistics.median(other):.1f}); ratio {ratio:.2f}"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--device", default="pocl")
    parser.add_argument("--kernels", default="auto")
    parser.add_argument("--cache", default="auto")
    parser.add_argument("--chunk", type=int, default=0)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--tolerance", type=float, default=1e-3)
    parser.add_argument("--check-only", action="store_true")
    parser.add_argument("--own", action="store_true")
    parser.add_argument("--exact", action="store_true")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--prompt", type=int, default=128)
    parser.add_argument("--new", type=int, default=32)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    if os.environ.get("POCL_MAX_PTHREAD_COUNT") != str(arguments.threads):
        os.environ["POCL_MAX_PTHREAD_COUNT"] = str(arguments.threads)
        os.execv(sys.executable, [sys.executable, *sys.argv])
    start = time.perf_counter()
    generator = clgraph.Generator(
        arguments.folder,
        arguments.device,
        kernels=arguments.kernels,
        cache=arguments.cache,
        chunk=arguments.chunk,
    )
    print(
        f"opened in {time.perf_counter() - start:.1f} s: {generator.model_type}, "
        f"{generator.n_layers} layers, {generator.vocabulary} tokens, caches {generator.cache}"
    )
    good = compare(generator, arguments.folder, arguments) if arguments.steps else True
    if not arguments.check_only and og:
        measure(generator, arguments.folder, arguments)
    stats = generator.stats
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"caches of {stats.capacity} tokens: {stats.cache_bytes / 1e6:.1f} MB; peak of the process "
        f"{peak:.0f} MiB"
    )
    return 0 if good else 1


if __name__ == "__main__":
    try:
        import onnxruntime
    except ImportError as missing:
        print(f"skipped: {missing}; needed are onnxruntime and numpy, and onnxruntime-genai")
        sys.exit(77)
    try:
        import onnxruntime_genai as og
    except ImportError:
        og = None
        print("onnxruntime-genai is not there: nothing is timed")
    import clgraph

    sys.exit(main())
