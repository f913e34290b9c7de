# SPDX-License-Identifier: Apache-2.0
"""clgraph.Trainer, against steps of gradient descent written out in numpy."""

import concurrent.futures
import os
import signal
import threading

import numpy as np
import pytest
from conftest import model
from onnx import TensorProto, helper, numpy_helper

import clgraph

N, K, M = 6, 4, 3


def values(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def linear(dtype=TensorProto.DOUBLE, array=np.float64):
    """y = x weight + bias."""
    made = model(
        [
            helper.make_node("MatMul", ["x", "weight"], ["product"]),
            helper.make_node("Add", ["product", "bias"], ["y"]),
        ],
        [("x", dtype, ["n", K])],
        [("y", dtype, ["n", M])],
    )
    for name, start in (("weight", values(K, M, seed=1)), ("bias", values(M, seed=2))):
        made.graph.initializer.append(numpy_helper.from_array(start.astype(array), name))
    return made


def batch(seed=3):
    return {"x": values(N, K, seed=seed), "target": values(N, M, seed=seed + 1)}


def gradients(feed, weight, bias):
    """Returns the mean squared error and its gradients."""
    error = feed["x"] @ weight + bias - feed["target"]
    slope = 2 * error / error.size
    return (error**2).mean(), feed["x"].T @ slope, slope.sum(0)


def test_steps_of_gradient_descent(device):
    weight, bias = values(K, M, seed=1), values(M, seed=2)
    trainer = clgraph.Trainer(linear(), device, loss="mse", lr=0.25)
    assert trainer.parameters == ["weight", "bias"]
    for step in range(5):
        feed = batch(10 + 2 * step)
        loss, d_weight, d_bias = gradients(feed, weight, bias)
        assert abs(trainer.evaluate(feed) - loss) < 1e-12
        stats = trainer.step(feed)
        assert stats.step == step + 1 and stats.rate == 0.25 and np.isnan(stats.gradient_norm)
        assert abs(stats.loss - loss) < 1e-12
        np.testing.assert_allclose(trainer.get_gradient("weight"), d_weight, atol=1e-12)
        weight, bias = weight - 0.25 * d_weight, bias - 0.25 * d_bias
        np.testing.assert_allclose(trainer.get_parameter("weight"), weight, atol=1e-12)
        np.testing.assert_allclose(trainer.get_parameter("bias"), bias, atol=1e-12)
    feed = batch()
    session = clgraph.InferenceSession(trainer.trained_model(), device)
    np.testing.assert_allclose(
        session.run(None, {"x": feed["x"]})[0], feed["x"] @ weight + bias, atol=1e-12
    )


def test_arrays_that_are_filled_again(device):
    """A batch in the arrays of the one before trains as one in new arrays does."""
    again = clgraph.Trainer(linear(), device, loss="mse", lr=0.25)
    fresh = clgraph.Trainer(linear(), device, loss="mse", lr=0.25)
    held = batch(0)
    columns = {name: np.empty(array.shape[::-1]).T for name, array in held.items()}

    def compare(feed, other):
        assert again.step(feed).loss == fresh.step(other).loss
        for name in again.parameters:
            np.testing.assert_array_equal(again.get_parameter(name), fresh.get_parameter(name))

    for step in range(6):
        new = batch(20 + 2 * step)
        for name in held:
            held[name][:] = columns[name][:] = new[name]
        compare(held if step % 4 > 1 else columns, new)  # columns are copied: not contiguous
    for n in (3, 2 * N):  # the same objects, with other shapes and in other memory
        new = batch(50)
        for name in held:
            new[name] = np.concatenate([new[name], new[name]])[:n].copy()
            held[name].resize(new[name].shape, refcheck=False)
            held[name][:] = new[name]
        compare(held, new)
    with pytest.raises(clgraph.Error):
        again.step({"x": values(N, K + 1), "target": held["target"]})
    compare(held, new)


def test_norm_schedule_and_accumulation(device):
    weight, bias = values(K, M, seed=1), values(M, seed=2)
    trainer = clgraph.Trainer(
        linear(), device, loss="mse", lr=0.5, schedule="linear", last_lr=0.0, total_steps=4,
        clip_norm=0.125, accumulate=2,
    )  # fmt: skip
    first, second = batch(20), batch(30)
    assert trainer.step(first).step == 0
    stats = trainer.step(second)
    _, dw1, db1 = gradients(first, weight, bias)
    _, dw2, db2 = gradients(second, weight, bias)
    d_weight, d_bias = (dw1 + dw2) / 2, (db1 + db2) / 2
    norm = np.sqrt((d_weight**2).sum() + (d_bias**2).sum())
    assert stats.step == 1 and stats.rate == 0.5 and abs(stats.gradient_norm - norm) < 1e-12
    expected = weight - 0.5 * d_weight * min(1, 0.125 / (norm + 1e-6))
    np.testing.assert_allclose(trainer.get_parameter("weight"), expected, atol=1e-12)
    trainer.step(first)
    assert trainer.step(second).rate == 0.375


def test_batches_in_parts(device, tmp_path):
    path = tmp_path / "whole.npz"
    feed = batch(20)
    whole = clgraph.Trainer(linear(), device, loss="mse", lr=0.5)
    parts = clgraph.Trainer(linear(), device, loss="mse", lr=0.5, parts=2)
    whole.check_parts()
    whole.step(feed)
    assert parts.step({name: rows[: N // 2] for name, rows in feed.items()}).step == 0
    assert parts.step({name: rows[N // 2 :] for name, rows in feed.items()}).step == 1
    np.testing.assert_allclose(
        parts.get_parameter("weight"), whole.get_parameter("weight"), atol=1e-12
    )
    whole.save(path)
    parts.load(path)
    labels = clgraph.Trainer(linear(), device, loss="cross-entropy", ignore_index=1)
    with pytest.raises(clgraph.Unsupported, match="not ignored"):
        labels.check_parts()


def test_frozen_and_set_parameters(device):
    trainer = clgraph.Trainer(linear(), device, loss="l1", freeze=["b*"])
    assert trainer.parameters == ["weight"]
    wanted = values(K, M, seed=9)
    trainer.set_parameter("weight", wanted)
    np.testing.assert_array_equal(trainer.get_parameter("weight"), wanted)
    with pytest.raises(clgraph.InvalidArgument, match="bias"):
        trainer.get_parameter("bias")


def test_a_training_goes_on_from_a_checkpoint(device, tmp_path):
    options = {"loss": "mse", "optimizer": "adam", "lr": 0.1}
    path = tmp_path / "checkpoint.npz"
    whole = clgraph.Trainer(linear(), device, **options)
    for seed in (20, 30):
        whole.step(batch(seed))
    whole.save(path)
    assert int(np.load(path)["step"]) == 2
    np.testing.assert_array_equal(np.load(path)["parameter/weight"], whole.get_parameter("weight"))
    resumed = clgraph.Trainer(linear(), device, **options)
    resumed.load(path)
    for trainer in (whole, resumed):
        assert trainer.step(batch(40)).step == 3
    for name in whole.parameters:
        np.testing.assert_array_equal(resumed.get_parameter(name), whole.get_parameter(name))
    other = clgraph.Trainer(linear(), device, **{**options, "lr": 0.2})
    with pytest.raises(clgraph.InvalidArgument, match="schedule.rate"):
        other.load(path)


@pytest.mark.parametrize(
    "options, words",
    [
        ({"loss": "hinge"}, "loss"),
        ({"optimizer": "newton"}, "optimizer"),
        ({"schedule": "zigzag"}, "schedule"),
        ({"lr": -1.0}, "rate is -1"),
        ({"momentum": 1.0}, "momentum is 1"),
        ({"train": ["nobody"]}, "nobody"),
        ({"output": "nobody"}, "nobody"),
        ({"label_smoothing": 0.5}, "label_smoothing"),
    ],
)
def test_options_that_are_refused(device, options, words):
    with pytest.raises(clgraph.InvalidArgument, match=words):
        clgraph.Trainer(linear(), device, **{"loss": "mse", **options})


def test_a_second_caller_is_busy_or_waits_for_nothing(device):
    """Calls from two threads: each step is whole, or raises Busy."""
    trainer = clgraph.Trainer(linear(), device, loss="mse")
    feed, done, busy = batch(), [], []
    trainer.step(feed)

    def work():
        for _ in range(50):
            try:
                done.append(trainer.step(feed).step)
            except clgraph.Busy:
                busy.append(1)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) + len(busy) == 100
    assert sorted(done) == list(range(2, 2 + len(done)))


def test_losses_that_are_not_finite(device):
    bad = batch()
    bad["x"] = bad["x"].copy()
    bad["x"][0, 0] = np.nan
    trainer = clgraph.Trainer(linear(), device, loss="mse")
    before = trainer.get_parameter("weight")
    with pytest.raises(clgraph.Error, match="the loss of step 1 is nan.*the input 'x'"):
        trainer.step(bad)
    np.testing.assert_array_equal(trainer.get_parameter("weight"), before)
    trainer = clgraph.Trainer(linear(), device, loss="mse", on_nan="skip")
    stats = trainer.step(bad)
    assert stats.step == 1 and stats.skipped == 1 and np.isnan(stats.loss)
    np.testing.assert_array_equal(trainer.get_parameter("weight"), before)


def test_measures(device):
    trainer = clgraph.Trainer(linear(), device, loss="cross-entropy", step_metrics=True)
    x = batch()["x"]
    scores = x @ trainer.get_parameter("weight") + trainer.get_parameter("bias")
    feed = {"x": x, "target": np.zeros(len(x), np.int64)}
    measures = trainer.measure(feed)
    assert measures.loss == trainer.evaluate(feed)
    assert (measures.right, measures.counted) == ((scores.argmax(1) == 0).sum(), len(x))
    assert measures.accuracy == measures.right / len(x)
    stats = trainer.step(feed)
    assert (stats.right, stats.counted) == (measures.right, measures.counted)
    assert np.isnan(clgraph.Trainer(linear(), device, loss="mse").measure(batch()).accuracy)


def test_sessions_of_a_trainer(device):
    trainer = clgraph.Trainer(linear(), device, loss="mse", lr=0.25)
    session = trainer.session()
    x = batch(50)["x"]
    for seed in (20, 30):
        expected = x @ trainer.get_parameter("weight") + trainer.get_parameter("bias")
        np.testing.assert_allclose(session.run(None, {"x": x})[0], expected, atol=1e-12)
        trainer.step(batch(seed))
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: session.run(None, {"x": x})[0], range(8)))
    expected = x @ trainer.get_parameter("weight") + trainer.get_parameter("bias")
    for result in results:
        np.testing.assert_allclose(result, expected, atol=1e-12)


def test_weights_of_classes(device):
    x, weights = batch()["x"], np.linspace(0.5, 2, M)
    trainer = clgraph.Trainer(linear(), device, class_weights=weights)
    scores = x @ trainer.get_parameter("weight") + trainer.get_parameter("bias")
    logs = scores - np.log(np.exp(scores).sum(1, keepdims=True))
    target = np.arange(len(x)) % M
    each = -logs[np.arange(len(x)), target]
    expected = (each * weights[target]).sum() / weights[target].sum()
    assert abs(trainer.evaluate({"x": x, "target": target}) - expected) < 1e-12
    with pytest.raises(clgraph.Error, match="3 classes, and the loss 2 weights"):
        clgraph.Trainer(linear(), device, class_weights=[1, 2])


def normalised():
    """BatchNormalization and Dropout, in the form of prediction."""
    norm = helper.make_node("BatchNormalization", ["x", "s", "b", "m", "v"], ["n"], momentum=0.75)
    dtype = TensorProto.DOUBLE
    made = model(
        [norm, helper.make_node("Dropout", ["n"], ["y"])],
        [("x", dtype, ["n", K])],
        [("y", dtype, ["n", K])],
    )
    for name, start in (("s", 1.0), ("b", 0.0), ("m", 0.0), ("v", 1.0)):
        made.graph.initializer.append(numpy_helper.from_array(np.full(K, start), name))
    return made


def test_running_statistics(device):
    x = batch()["x"]
    feed = {"x": x, "target": np.zeros_like(x)}
    for population in (False, True):
        trainer = clgraph.Trainer(
            normalised(), device, loss="mse", batchnorm="training", population_variance=population
        )
        assert trainer.parameters == ["s", "b"]
        trainer.step(feed)
        np.testing.assert_allclose(trainer.get_parameter("m"), 0.25 * x.mean(0), atol=1e-12)
        np.testing.assert_allclose(
            trainer.get_parameter("v"), 0.75 + 0.25 * x.var(0, ddof=not population), atol=1e-12
        )
    with pytest.raises(clgraph.Error, match="batchnorm"):
        clgraph.Trainer(normalised(), device, loss="mse", batchnorm="always")


def test_dropout_follows_from_the_seed(device):
    x = batch()["x"]
    feed = {"x": x, "target": np.zeros_like(x)}
    losses = {
        (form, seed): [trainer.step(feed).loss for _ in range(5)]
        for form in ("model", "training")
        for seed in (1, 2)
        for trainer in [
            clgraph.Trainer(normalised(), device, loss="mse", lr=0.0, dropout=form, seed=seed)
        ]
    }
    assert len(set(losses["model", 1])) == 1 and losses["model", 1] == losses["model", 2]
    assert len(set(losses["training", 1])) > 1
    assert losses["training", 1] != losses["training", 2]
    again = clgraph.Trainer(normalised(), device, loss="mse", lr=0.0, dropout="training", seed=1)
    assert [again.step(feed).loss for _ in range(5)] == losses["training", 1]


@pytest.mark.skipif(os.name != "posix", reason="os.kill sends no SIGINT")
def test_steps_that_signals_interrupt_are_computed_again(device):
    feed = batch()
    quiet = clgraph.Trainer(linear(), device, loss="mse", lr=0.25, accumulate=3)
    pressed = clgraph.Trainer(linear(), device, loss="mse", lr=0.25, accumulate=3)
    seen = []
    before = signal.signal(signal.SIGINT, lambda *_: seen.append(True))
    stop = threading.Event()

    def press():
        while not stop.wait(0.002):
            os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=press)
    try:
        thread.start()
        for _ in range(300):
            pressed.step(feed)
    finally:
        stop.set()
        thread.join()
        signal.signal(signal.SIGINT, before)
    for _ in range(300):
        quiet.step(feed)
    assert seen
    np.testing.assert_array_equal(pressed.get_parameter("weight"), quiet.get_parameter("weight"))
