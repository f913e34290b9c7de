# SPDX-License-Identifier: Apache-2.0
"""Random operators, with parameters that leave one answer: no rival draws the same numbers."""

import numpy
from maker import generator


@generator("RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike")
def random(m):
    centre, f = m.float(-3, 3), 1e-7
    if "Normal" in m.operator:
        attributes = dict(mean=centre, scale=f)
    else:
        attributes = dict(low=centre, high=centre + f)
    attributes |= m.maybe(0.4, seed=float(m.int(1, 99)))
    shape = m.shape(1, 3)
    tolerance = (1e-3, 1e-4)
    attributes |= m.maybe(0.3, dtype=m.pick(1, 11))
    if m.operator.endswith("Like"):
        return m.case(m.tensor("float32", shape), tolerance=tolerance, **attributes)
    return m.case(shape=shape, tolerance=tolerance, **attributes)


@generator("Bernoulli")
def bernoulli(m):
    x = m.tensor("bool", m.shape(1, 3)).astype(numpy.float32)
    return m.case(x, **m.maybe(0.5, dtype=m.pick(1, 6, 7, 9)) | m.maybe(0.4, seed=3.0))


@generator("Multinomial")
def multinomial(m):
    n, classes = m.int(1, 4), m.int(2, 6)
    x = numpy.full((n, classes), -1e4, numpy.float32)
    x[numpy.arange(n), m.n.integers(0, classes, n)] = 0
    return m.case(x, sample_size=m.int(1, 9), **m.maybe(0.6, dtype=m.pick(6, 7)))
