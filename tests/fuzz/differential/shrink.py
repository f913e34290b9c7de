# SPDX-License-Identifier: Apache-2.0
"""The smallest part of a graph that clgraph computes otherwise than a rival.

A part is the last K nodes that lead to one value; what they read from nodes before becomes inputs,
with the values that the rival computed. K grows until the part differs.
"""

import copy


def parts(case, values):
    """Candidates, smallest first. VALUES: {name: array} of all tensors, by the rival."""
    producer = {name: n for n in case.nodes for name in n.output if name}
    sizes = range(1, len(case.nodes) + 1)
    for size in sizes:
        for last in case.nodes:
            part = part_of(case, values, producer, last, size)
            if part is not None:
                yield part


def captured(node):
    """Names that a node reads, those inside of its branches and bodies too."""
    names = list(node.input)
    for attribute in node.attribute:
        for inner in attribute.g.node:
            names += captured(inner)
    return [n for n in names if n]


def part_of(case, values, producer, last, size):
    """The SIZE nodes nearest to the outputs of LAST, itself first; None where there are fewer."""
    chosen, queue = [], [last]
    while queue and len(chosen) < size:
        node = queue.pop(0)
        if any(node is c for c in chosen):
            continue
        chosen.append(node)
        queue += [producer[n] for n in captured(node) if n in producer]
    if len(chosen) < size:
        return None
    part = copy.copy(case)
    part.nodes = [n for n in case.nodes if any(n is c for c in chosen)]
    made = {o for n in part.nodes for o in n.output}
    read = [n for node in part.nodes for n in captured(node)]
    part.constants = {n: case.constants[n] for n in read if n in case.constants}
    part.inputs = {}
    for name in read:
        if name in made or name in part.constants:
            continue
        if name in values:
            part.inputs[name] = values[name]
        elif name in case.inputs:
            part.inputs[name] = case.inputs[name]
    part.outputs = [o for o in last.output if o in values]
    return part if part.outputs else None


def shrink(case, compute, differs):
    """The first part that DIFFERS(part, its results) says of; CASE where none does. COMPUTE(case):
    {output: value} or None, by the rival."""
    every = copy.copy(case)
    every.outputs = list(dict.fromkeys(o for n in case.nodes for o in n.output if o))
    values = compute(every)
    if values is None:
        return case
    for part in parts(case, values):
        results = compute(part)
        if results is not None and differs(part, results):
            return part
    return case
