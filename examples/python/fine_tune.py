# SPDX-License-Identifier: Apache-2.0
"""Takes a network from PyTorch, trains it on an OpenCL device, and predicts with it.

    python examples/python/fine_tune.py [MODEL.onnx]

PyTorch defines the network and writes it as ONNX; clgraph trains that file's weights and gives an
ONNX file back, which any runtime reads; everything but the weights is unchanged. With MODEL.onnx,
the trained network is written there.
"""

import io
import pathlib
import sys
import warnings

import clgraph
import numpy as np
import torch
from torch import nn

N_TRAIN, BATCH, EPOCHS = 300, 25, 40


def export(module):
    """Returns the bytes of an ONNX file with the input "image" and any number of rows."""
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            module, torch.zeros(1, 1, 8, 8), file, opset_version=15, input_names=["image"],
            output_names=["logits"], dynamic_axes={"image": {0: "n"}, "logits": {0: "n"}},
        )  # fmt: skip
    return file.getvalue()


folder = pathlib.Path(__file__).parents[1] / "digits"
images = np.load(folder / "heldout.npy")  # [360,1,8,8], 0 to 1
labels = np.load(folder / "heldout_labels.npy").astype(np.int64)

torch.manual_seed(0)
module = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(512, 10),
)  # fmt: skip

trainer = clgraph.Trainer(export(module), loss="cross-entropy", optimizer="adam", lr=3e-3)
order = np.random.default_rng(0)
for epoch in range(EPOCHS):
    for rows in order.permutation(N_TRAIN).reshape(-1, BATCH):
        stats = trainer.step({"image": images[rows], "target": labels[rows]})
print(f"loss of the last batch: {stats.loss:.4f}")

model = trainer.trained_model()
if len(sys.argv) > 1:
    model.save(sys.argv[1])
(logits,) = clgraph.InferenceSession(model).run(None, {"image": images[N_TRAIN:]})
right = (logits.argmax(axis=1) == labels[N_TRAIN:]).mean()
print(f"{right:.1%} of {len(logits)} other digits are right, on {trainer.context.device.name}")
