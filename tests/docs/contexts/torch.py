# SPDX-License-Identifier: Apache-2.0
import torch

model, example = torch.nn.Linear(3, 2), torch.ones(1, 3)
# @BLOCK@
