#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""onnxruntime-genai writes the same text with clgraph's provider as with its CPU provider.

    genai.py PROVIDER_LIBRARY [--tokens N] [--selector SELECTOR] [--keep FOLDER]

A small decoder with made-up weights (tests/models/decoder.py) generates N tokens (220) greedily, in
float32 and with weights of 4 bits. The tokens must be the same, at least 20 of them different, and
ONNX Runtime must have assigned at least 95 % of the nodes to clgraph.

Needs onnxruntime, onnxruntime-genai, onnx, onnx-ir and numpy of PyPI; exits with 77 without.
"""

import argparse
import json
import pathlib
import sys
import tempfile

PROVIDER = "ClgraphExecutionProvider"
PROMPT = [17, 201, 5, 99, 42]
PLACES = 512


def write_folder(folder, model):
    """A folder as genai's model builder makes it."""
    onnx.save(model, folder / "model.onnx")
    caches = {
        f"{kind}_{part}_names": f"{where}.%d.{part}"
        for kind, where in (("past", "past_key_values"), ("present", "present"))
        for part in ("key", "value")
    }
    inputs = ("input_ids", "attention_mask", "position_ids")
    config = {
        "model": {
            "type": "llama",
            "bos_token_id": 1,
            "eos_token_id": 0,
            "pad_token_id": 0,
            "vocab_size": sizes.VOCABULARY,
            "context_length": PLACES,
            "decoder": {
                "filename": "model.onnx",
                "session_options": {"provider_options": []},
                "head_size": sizes.HEAD,
                "hidden_size": sizes.HIDDEN,
                "num_attention_heads": sizes.HEADS,
                "num_key_value_heads": sizes.KV_HEADS,
                "num_hidden_layers": sizes.LAYERS,
                "inputs": {
                    **{name: name for name in inputs},
                    "past_key_names": caches["past_key_names"],
                    "past_value_names": caches["past_value_names"],
                },
                "outputs": {
                    "logits": "logits",
                    "present_key_names": caches["present_key_names"],
                    "present_value_names": caches["present_value_names"],
                },
            },
        },
        "search": {"do_sample": False, "max_length": PLACES, "past_present_share_buffer": False},
    }
    (folder / "genai_config.json").write_text(json.dumps(config, indent=1))


def generate(folder, n_tokens, provider, options):
    """The tokens that follow the prompt."""
    config = og.Config(str(folder))
    config.clear_providers()
    if provider:
        config.append_provider(provider)
        for key, value in options.items():
            config.set_provider_option(provider, key, value)
    model = og.Model(config)
    parameters = og.GeneratorParams(model)
    length = len(PROMPT) + n_tokens
    parameters.set_search_options(
        min_length=length, max_length=length, do_sample=False, repetition_penalty=1.2
    )
    generator = og.Generator(model, parameters)
    generator.append_tokens(numpy.array([PROMPT], numpy.int32))
    tokens = []
    while not generator.is_done():
        generator.generate_next_token()
        tokens.append(int(generator.get_next_tokens()[0]))
    return tokens


def assigned_share(path, options):
    """The share of the model's nodes that ONNX Runtime's record gives to clgraph, and the rest."""
    settings = onnxruntime.SessionOptions()
    settings.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    device = next(d for d in onnxruntime.get_ep_devices() if d.ep_name == PROVIDER)
    settings.add_provider_for_devices([device], options)
    session = onnxruntime.InferenceSession(str(path), settings)
    ours, others = 0, []
    for part in session.get_provider_graph_assignment_info():
        nodes = [f"{n.op_type} {n.name}" for n in part.get_nodes()]
        if part.ep_name == PROVIDER:
            ours += len(nodes)
        else:
            others += nodes
    return ours / (ours + len(others)), others


def check(name, model, folder, arguments, options):
    """Whether one model's text is the same; prints what was seen."""
    place = folder / name
    place.mkdir(parents=True, exist_ok=True)
    write_folder(place, model)
    wanted = generate(place, arguments.tokens, None, {})
    got = generate(place, arguments.tokens, PROVIDER, options)
    share, others = assigned_share(place / "model.onnx", options)
    same = next((i for i, (a, b) in enumerate(zip(wanted, got)) if a != b), len(wanted))
    good = got == wanted and len(set(got)) >= 20 and len(got) >= arguments.tokens and share >= 0.95
    print(
        f"{'pass' if good else 'FAIL'}  {name}: {len(got)} tokens, {len(set(got))} different, "
        f"the first {same} as the CPU's; {100 * share:.1f} % of the nodes are clgraph's"
    )
    if share < 1:
        print("      elsewhere: " + ", ".join(others))
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library", type=pathlib.Path)
    parser.add_argument("--tokens", type=int, default=220)
    parser.add_argument("--selector")
    parser.add_argument("--keep", type=pathlib.Path)
    arguments = parser.parse_args()
    library = str(arguments.library.resolve())
    onnxruntime.register_execution_provider_library("clgraph", library)
    og.register_execution_provider_library("clgraph", library)
    options = {"device": arguments.selector} if arguments.selector else {}
    weights = decoder.make_weights()
    with tempfile.TemporaryDirectory() as made:
        folder = arguments.keep or pathlib.Path(made)
        plain = decoder.make_contrib(weights, False, PLACES)
        good = check("float32", plain, folder, arguments, options)
        narrow = decoder.quantise(decoder.make_contrib(weights, False, PLACES), True)
        good &= check("int4", narrow, folder, arguments, options)
    return 0 if good else 1


if __name__ == "__main__":
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "models"))
    try:
        import logging

        import numpy
        import onnx
        import onnxruntime
        import onnxruntime_genai as og

        import decoder
        import decoder_sizes as sizes
    except ImportError as missing:
        print(f"skipped: {missing}; needed are onnxruntime-genai, onnxruntime, onnx and onnx-ir")
        sys.exit(77)
    logging.disable(logging.INFO)  # of the quantiser
    sys.exit(main())
