# SPDX-License-Identifier: Apache-2.0
"""A model of scikit-learn on an OpenCL device: pip install scikit-learn skl2onnx

Trains a classifier, converts it by skl2onnx, and compares the answers.
"""

import clgraph
import numpy as np
from skl2onnx import to_onnx
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier

images, digits = load_digits(return_X_y=True)
images = images.astype(np.float32)
model = RandomForestClassifier(100, random_state=0)
model.fit(images[:1500], digits[:1500])

session = clgraph.InferenceSession(to_onnx(model, images[:1]))
labels, probabilities = session.run(None, {"X": images[1500:]})  # [297], a dict for each row

rows = np.array([list(row.values()) for row in probabilities], np.float32)
difference = np.abs(rows - model.predict_proba(images[1500:])).max()
same = (labels == model.predict(images[1500:])).mean()
print(f"{same:.1%} of the labels are scikit-learn's, largest difference {difference:.1e}")
