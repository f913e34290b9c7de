# SPDX-License-Identifier: Apache-2.0
"""The smallest part of a graph that clgraph computes otherwise than a rival.

A part is the last K nodes that lead to one value; what they read from nodes before becomes inputs,
with the values that the rival computed. K grows until the part differs. Then the part gets simpler:
fewer attributes and inputs, smaller sizes, plain numbers, as long as the rival computes it and it
differs.
"""

import copy

import maker
import numpy

MAX_TRIES = 200  # runs of cltool


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


def without_attributes(case):
    """CASE without one attribute of a node, each in turn."""
    for i, node in enumerate(case.nodes):
        for k in range(len(node.attribute)):
            simpler = with_node(case, i)
            del simpler.nodes[i].attribute[k]
            yield simpler


def without_inputs(case):
    """CASE without one input of a node, each in turn."""
    for i, node in enumerate(case.nodes):
        for k in range(len(node.input)):
            if not node.input[k]:
                continue
            simpler = with_node(case, i)
            names = simpler.nodes[i].input
            names[k] = ""
            while names and not names[-1]:
                names.pop()
            read = {n for node in simpler.nodes for n in captured(node)}
            simpler.inputs = {n: v for n, v in case.inputs.items() if n in read}
            simpler.constants = {n: v for n, v in case.constants.items() if n in read}
            yield simpler


def with_node(case, i):
    """A copy of CASE whose node I may be changed."""
    simpler = copy.copy(case)
    simpler.nodes = list(case.nodes)
    simpler.nodes[i] = copy.deepcopy(case.nodes[i])
    return simpler


def with_arrays(case, change):
    """A copy of CASE with each array changed."""

    def each(value):
        if isinstance(value, maker.Map):
            return value
        return [change(v) for v in value] if isinstance(value, list) else change(value)

    simpler = copy.copy(case)
    simpler.inputs = {n: each(v) for n, v in case.inputs.items()}
    simpler.constants = {n: each(v) for n, v in case.constants.items()}
    return simpler


def smaller(case):
    """CASE with the first elements alone of all axes of one size, each size in turn."""
    arrays = [a for v in (*case.inputs.values(), *case.constants.values()) for a in maker.arrays(v)]
    for size in sorted({d for a in arrays for d in a.shape if d > 1}, reverse=True):
        for less in sorted({1, size // 2, size - 1}):
            yield with_arrays(case, lambda a, size=size, less=less: a[
                tuple(slice(less) if d == size else slice(None) for d in a.shape)])


def plain(case):
    """CASE with rounded floats, then with ones."""
    def changed(change):
        return with_arrays(case, lambda a: change(a).astype(a.dtype) if a.dtype.kind == "f" else a)

    yield changed(numpy.ones_like)
    yield changed(numpy.round)


def simplify(case, compute, differs):
    """CASE with as little in it as still DIFFERS; COMPUTE and DIFFERS as for shrink."""
    tries = 0
    for candidates in (without_attributes, without_inputs, smaller, plain):
        found = True
        while found:
            found = False
            for simpler in candidates(case):
                results = compute(simpler) if tries < MAX_TRIES else None
                tries += results is not None
                if results is not None and not same(simpler, case) and differs(simpler, results):
                    case, found = simpler, True
                    break
    return case


def same(a, b):
    return a.model().SerializeToString() == b.model().SerializeToString() and all(
        numpy.array_equal(x, y) for x, y in zip(a.inputs.values(), b.inputs.values())
        if not isinstance(x, (list, maker.Map)))


def shrink(case, compute, differs):
    """The first part of which DIFFERS(part, its results), CASE where none does, made simpler.
    COMPUTE(case): {output: value} or None, by the rival."""
    return simplify(smallest_part(case, compute, differs), compute, differs)


def smallest_part(case, compute, differs):
    if len(case.nodes) == 1:
        return case
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
