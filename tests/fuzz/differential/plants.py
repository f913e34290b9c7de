# SPDX-License-Identifier: Apache-2.0
"""Faults planted in the models that clgraph gets, while the rivals get the right ones: what the
fuzzer's cases must find."""

import copy

import numpy
from onnx import helper


def without(name):
    """An attribute that is not read."""

    def change(case):
        node = case.nodes[-1]
        kept = [a for a in node.attribute if a.name != name]
        if len(kept) == len(node.attribute):
            return False
        del node.attribute[:]
        node.attribute.extend(kept)
        return True

    return change


def swapped(i, j):
    """Two inputs in each other's place."""

    def change(case):
        names = case.nodes[-1].input
        if len(names) <= max(i, j) or not names[i] or not names[j]:
            return False
        names[i], names[j] = names[j], names[i]
        return True

    return change


def other_axis(case):
    """The axis before."""
    for attribute in case.nodes[-1].attribute:
        if attribute.name == "axis":
            rank = ranks(case)
            if rank < 2:
                return False
            attribute.i = (attribute.i + rank - 1) % rank
            return True
    return False


def ranks(case):
    first = case.nodes[-1].input[0]
    value = case.inputs.get(first, case.constants.get(first))
    return value.ndim


def lost_tail(case, results=None):
    """The last element is not written: zero."""
    name = case.outputs[0]
    value = results[name]
    if not value.size or value.dtype.kind != "f" or not numpy.asarray(value, float).reshape(-1)[-1]:
        return False
    mask = numpy.ones(value.shape, value.dtype)
    mask.reshape(-1)[-1] = 0
    case.nodes[-1].output[list(case.nodes[-1].output).index(name)] = "whole"
    case.constants["mask"] = mask
    case.nodes.append(helper.make_node("Mul", ["whole", "mask"], [name]))
    return True


# (name, operator, change). A change returns False for cases that it leaves as they are.
PLANTS = [
    ("the wrong axis", "Softmax", other_axis),
    ("the wrong axis", "ArgMax", other_axis),
    ("the wrong axis", "LpNormalization", other_axis),
    ("the wrong axis", "Gather", other_axis),
    ("the last element lost", "Add", lost_tail),
    ("the last element lost", "MatMul", lost_tail),
    ("the last element lost", "Conv", lost_tail),
    ("the last element lost", "ReduceSum", lost_tail),
    ("alpha ignored", "Gemm", without("alpha")),
    ("dilations ignored", "Conv", without("dilations")),
    ("bias ignored", "LRN", without("bias")),
    ("padding_mode ignored", "GridSample", without("padding_mode")),
    ("linear_before_reset ignored", "GRU", without("linear_before_reset")),
    ("softcap ignored", "Attention", without("softcap")),
    ("nearest_mode ignored", "Resize", without("nearest_mode")),
    ("exclusive ignored", "CumSum", without("exclusive")),
    ("inputs swapped", "Sub", swapped(0, 1)),
    ("inputs swapped", "Where", swapped(1, 2)),
    ("inputs swapped", "Less", swapped(0, 1)),
    ("mean and variance swapped", "BatchNormalization", swapped(3, 4)),
]


def plant(change, case, results):
    """A copy of CASE with the fault; None where CASE does not show it."""
    changed = copy.copy(case)
    changed.nodes = [copy.deepcopy(n) for n in case.nodes]
    changed.constants = dict(case.constants)
    done = change(changed, results) if change is lost_tail else change(changed)
    return changed if done else None
