# SPDX-License-Identifier: Apache-2.0
"""Generation by clgraph.Generator."""

import json
import threading

import numpy as np
import onnx
import pytest
from conftest import model
from onnx import TensorProto, helper, numpy_helper

import clgraph

LETTERS = "abcdefg"


@pytest.fixture
def folder(tmp_path):
    """A model of letters, each followed most likely by the next one, then by "<end>"."""
    embed, head = np.eye(8, dtype=np.float32), np.zeros((8, 8), np.float32)
    for i in range(8):
        head[i, (i + 1) % 8], head[i, (i + 2) % 8] = 5, 2
    made = model(
        [
            helper.make_node("Gather", ["embed", "input_ids"], ["x"]),
            helper.make_node("MatMul", ["x", "head"], ["logits"]),
        ],
        [("input_ids", TensorProto.INT64, ("batch", "tokens"))],
        [("logits", TensorProto.FLOAT, ("batch", "tokens", 8))],
    )
    made.graph.initializer.extend(
        [numpy_helper.from_array(embed, "embed"), numpy_helper.from_array(head, "head")]
    )
    onnx.save(made, tmp_path / "model.onnx")
    config = {"model_type": "letters", "vocab_size": 8, "n_positions": 40, "eos_token_id": 7}
    (tmp_path / "config.json").write_text(json.dumps(config))
    end = {"id": 7, "content": "<end>", "special": True, "normalized": False}
    end.update({"single_word": False, "lstrip": False, "rstrip": False})
    vocabulary = {letter: i for i, letter in enumerate(LETTERS)}
    tokenizer = {
        "added_tokens": [end],
        "decoder": {"type": "Fuse"},
        "model": {"type": "BPE", "vocab": vocabulary, "merges": []},
    }
    (tmp_path / "tokenizer.json").write_text(json.dumps(tokenizer))
    return tmp_path


def test_tokens(device, folder):
    generator = clgraph.Generator(folder, device)
    assert (generator.model_type, generator.vocabulary, generator.eos) == ("letters", 8, (7,))
    assert (generator.max_context, generator.cache, generator.bos) == (40, "none", None)
    generator.append([2, 3])
    assert list(generator) == [4, 5, 6, 7] and generator.end == "eos"
    assert generator.next() == -1
    assert generator.tokens == [2, 3, 4, 5, 6, 7]
    generator.rewind(3)
    assert generator.logits().tolist() == [0, 0, 0, 0, 0, 5, 2, 0]
    assert generator.next() == 5 and generator.end is None
    stats = generator.stats
    assert stats.n_runs >= 5 and stats.new_tokens_per_s > 0


def test_text(device, folder):
    generator = clgraph.Generator(folder, device)
    generator.append_text("ab")
    assert "".join(generator.text()) == "cdefg" and generator.end == "eos"
    generator.rewind(2)
    generator.set_stops("ef")
    assert "".join(generator.text()) == "cd" and generator.end == "stop"


def test_seeds(device, folder):
    generator = clgraph.Generator(folder, device)

    def draw(seed):
        generator.rewind()
        generator.set_sampling(3.0, seed=seed, max_new=20)
        generator.append([0])
        return list(generator)

    texts = [draw(seed) for seed in range(6)]
    assert texts == [draw(seed) for seed in range(6)]
    assert len({tuple(text) for text in texts}) >= 5


def test_what_is_refused(device, folder):
    generator = clgraph.Generator(folder, device)
    with pytest.raises(clgraph.InvalidArgument, match="token 0 is 8"):
        generator.append([8])
    with pytest.raises(clgraph.InvalidArgument, match="is empty"):
        generator.next()
    with pytest.raises(clgraph.InvalidArgument, match="top_p is 2"):
        generator.set_sampling(1.0, top_p=2)
    with pytest.raises(clgraph.InvalidArgument, match="cache"):
        clgraph.Generator(folder, device, cache="large")
    with pytest.raises(clgraph.Error, match="genai_config.json nor config.json"):
        clgraph.Generator(folder / "none", device)


def test_tokens_that_are_refused(device, folder):
    generator = clgraph.Generator(folder, device)
    generator.append([])
    generator.append(np.array([[2, 3]], np.int32))
    with pytest.raises(TypeError, match="integers, not float64"):
        generator.append([1.5])
    with pytest.raises(ValueError, match=r"not \[2, 2\]"):
        generator.append([[1, 2], [3, 4]])
    assert generator.tokens == [2, 3]


def test_text_with_surrogates(device, folder):
    generator = clgraph.Generator(folder, device)
    text = "a\ud800b"
    generator.append_text(text)
    assert generator.tokens == clgraph.Tokenizer(folder).encode(text)


def test_cancel_from_another_thread(device, folder):
    config = json.loads((folder / "config.json").read_text())
    config.update({"n_positions": 10_000_000, "eos_token_id": None})
    (folder / "config.json").write_text(json.dumps(config))
    generator = clgraph.Generator(folder, device)
    generator.append([0])
    errors = []

    def work():
        try:
            for _ in generator:
                pass
        except clgraph.Cancelled as e:
            errors.append(e)

    thread = threading.Thread(target=work)
    thread.start()
    while thread.is_alive() and not errors:
        generator.cancel()
    thread.join(10)
    assert len(errors) == 1
    before = len(generator.tokens)
    generator.next()
    assert len(generator.tokens) == before + 1
