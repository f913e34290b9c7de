#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Train the small network of the digits example and write its files.

The network reads 8x8 images of handwritten digits: the 1797 images of the UCI set
"Optical Recognition of Handwritten Digits" that scikit-learn carries, so nothing is
downloaded. One run takes about 15 seconds on one core.

    apt install python3-torch python3-sklearn python3-numpy python3-pil
    /usr/bin/python3 train.py                     # writes its files beside itself
    /usr/bin/python3 train.py --output new/       # or somewhere else
    /usr/bin/python3 train.py --validate          # trial on an inner split, writes nothing

Files written (README.md says more about each):

    digits.onnx                 the network: image [batch,1,8,8] -> probabilities [batch,10]
    labels.txt                  the ten class names
    heldout.npy                 float32 [360,1,8,8], the images kept away from training
    heldout_labels.npy          int64   [360], what was written on them
    heldout_probabilities.npy   float32 [360,10], what PyTorch computes for them
    images/00.png .. 19.png   20 of the held-out images, two of each digit
    images/labels.csv         file,label
    expected.csv                file,digit,probability: PyTorch's answer to each PNG

A pixel of the set is a level from 0 to 16. A PNG holds round(level * 255 / 16), and the
network is trained and measured on exactly what a reader of that PNG gets, pixel / 255.

Every random choice has a fixed seed. The held-out images play no part in training; use
`--validate`, not their result, to evaluate a change to the settings below.
"""

import argparse
import csv
import math
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.nn import functional as F

SEED = 20
HELDOUT = 360  # images, 20 % of 1797
IMAGES_PER_DIGIT = 2

EPOCHS = 80
BATCH = 64
PEAK_LEARNING_RATE = 0.01
WEIGHT_DECAY = 0.01
# Keeps the probabilities off 0 and 1, where comparing two programs' answers would say little.
LABEL_SMOOTHING = 0.05

# Augmentation: each image of a batch is rotated, scaled and moved by a random amount.
MAX_ROTATION_DEGREES = 10.0
MAX_SCALE = 0.10
MAX_SHIFT_PIXELS = 0.75


def load_images():
    """All images as the pixels of their PNGs, uint8 [1797,8,8], and their labels."""
    levels, labels = load_digits(return_X_y=True)
    pixels = np.rint(levels * 255 / 16).astype(np.uint8).reshape(-1, 8, 8)
    return pixels, labels.astype(np.int64)


def to_input(pixels):
    """uint8 [n,8,8] -> the network's input, float32 [n,1,8,8] in 0..1."""
    return pixels[:, np.newaxis].astype(np.float32) / np.float32(255)


def make_network():
    """The network up to the logits; softmax is added for prediction only.

    The convolutions have no bias: the batch normalization after each has one.
    """
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1, bias=False),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1, bias=False),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 32, 3, padding=1, bias=False),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(32 * 4 * 4, 10),
    )


def augment(images):
    """Rotate, scale and shift each image of [n,1,8,8] by a random amount."""

    def symmetric(limit):
        return (torch.rand(len(images)) * 2 - 1) * limit

    angle = symmetric(math.radians(MAX_ROTATION_DEGREES))
    scale = 1 + symmetric(MAX_SCALE)
    # affine_grid counts in half widths: -1 and 1 are the borders of the image.
    half_width = images.shape[-1] / 2
    shift_x = symmetric(MAX_SHIFT_PIXELS / half_width)
    shift_y = symmetric(MAX_SHIFT_PIXELS / half_width)

    cos, sin = scale * torch.cos(angle), scale * torch.sin(angle)
    rows = torch.stack([cos, -sin, shift_x, sin, cos, shift_y], dim=1).reshape(-1, 2, 3)
    grid = F.affine_grid(rows, list(images.shape), align_corners=False)
    return F.grid_sample(images, grid, mode="bilinear", padding_mode="zeros", align_corners=False)


def train(images, labels):
    """Train a new network and return it in evaluation mode."""
    torch.manual_seed(SEED)
    network = make_network()
    steps_per_epoch = math.ceil(len(images) / BATCH)
    optimizer = torch.optim.AdamW(network.parameters(), weight_decay=WEIGHT_DECAY)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, PEAK_LEARNING_RATE, epochs=EPOCHS, steps_per_epoch=steps_per_epoch
    )

    network.train()
    for epoch in range(EPOCHS):
        total_loss = 0.0
        for rows in torch.randperm(len(images)).split(BATCH):
            logits = network(augment(images[rows]))
            loss = F.cross_entropy(logits, labels[rows], label_smoothing=LABEL_SMOOTHING)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            total_loss += loss.item() * len(rows)
        if (epoch + 1) % 10 == 0:
            print(f"epoch {epoch + 1:3d}  loss {total_loss / len(images):.4f}", flush=True)
    return network.eval()


def predict(model, images):
    """Probabilities, float32 [n,10], for a numpy array of images."""
    with torch.no_grad():
        return model(torch.from_numpy(images)).numpy()


def report(name, probabilities, labels):
    right = int((probabilities.argmax(axis=1) == labels).sum())
    print(f"{name}: {right} of {len(labels)} right ({100 * right / len(labels):.2f} %)")


def export(model, path):
    """Write the model in evaluation mode, with its BatchNormalization nodes.

    The exporter folds a BatchNormalization into the convolution before it unless asked to
    preserve the mode; the example keeps the nodes, so that clgraph does the folding.
    """
    torch.onnx.export(
        model,
        torch.zeros(2, 1, 8, 8),
        str(path),
        input_names=["image"],
        output_names=["probabilities"],
        dynamic_axes={"image": {0: "batch"}, "probabilities": {0: "batch"}},
        opset_version=13,
        training=torch.onnx.TrainingMode.PRESERVE,
        do_constant_folding=False,
        keep_initializers_as_inputs=False,
    )


def choose_images(labels):
    """Rows of the images to show: the same number of each digit, drawn and shuffled blindly."""
    random = np.random.RandomState(SEED)
    rows = np.concatenate(
        [
            random.choice(np.flatnonzero(labels == digit), IMAGES_PER_DIGIT, replace=False)
            for digit in range(10)
        ]
    )
    return random.permutation(rows)


def write_csv(path, header, rows):
    with open(path, "w", newline="", encoding="ascii") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *rows])


def write_files(model, pixels, labels, folder):
    """Write everything the example needs, from the held-out images."""
    images = folder / "images"
    images.mkdir(parents=True, exist_ok=True)
    export(model, folder / "digits.onnx")
    (folder / "labels.txt").write_text("".join(f"{digit}\n" for digit in range(10)))

    images = to_input(pixels)
    np.save(folder / "heldout.npy", images)
    np.save(folder / "heldout_labels.npy", labels)
    np.save(folder / "heldout_probabilities.npy", predict(model, images))

    label_rows, expected_rows = [], []
    for number, row in enumerate(choose_images(labels)):
        name = f"{number:02d}.png"
        Image.fromarray(pixels[row]).save(images / name)
        # From the file, not from memory: this is what a program that opens the PNG sees.
        with Image.open(images / name) as image:
            probabilities = predict(model, to_input(np.asarray(image)[np.newaxis]))[0]
        digit = int(probabilities.argmax())
        label_rows.append([name, int(labels[row])])
        expected_rows.append([name, digit, f"{probabilities[digit]:.9g}"])
    write_csv(images / "labels.csv", ["file", "label"], label_rows)
    write_csv(folder / "expected.csv", ["file", "digit", "probability"], expected_rows)


def main():
    parser = argparse.ArgumentParser(
        description="Train the network of the digits example and write its files."
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=Path(__file__).resolve().parent,
        metavar="DIR",
        help="where to write (default: beside this script)",
    )
    parser.add_argument(
        "--validate",
        action="store_true",
        help="train on four fifths of the training images, measure on the "
        "rest, leave the held-out images alone and write nothing",
    )
    arguments = parser.parse_args()

    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)

    pixels, labels = load_images()
    pixels, heldout_pixels, labels, heldout_labels = train_test_split(
        pixels, labels, test_size=HELDOUT, stratify=labels, random_state=SEED
    )
    if arguments.validate:
        pixels, heldout_pixels, labels, heldout_labels = train_test_split(
            pixels, labels, test_size=0.2, stratify=labels, random_state=SEED
        )

    network = train(torch.from_numpy(to_input(pixels)), torch.from_numpy(labels))
    model = nn.Sequential(*network, nn.Softmax(dim=1)).eval()

    report("training", predict(model, to_input(pixels)), labels)
    report(
        "validation" if arguments.validate else "held out",
        predict(model, to_input(heldout_pixels)),
        heldout_labels,
    )
    if not arguments.validate:
        write_files(model, heldout_pixels, heldout_labels, arguments.output)


if __name__ == "__main__":
    main()
