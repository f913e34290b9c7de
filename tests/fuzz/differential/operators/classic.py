# SPDX-License-Identifier: Apache-2.0
"""ai.onnx.ml, and the optimizers of ai.onnx.preview.training."""

import maker
import numpy
from maker import NUMPY, generator, tensor

ML = "ai.onnx.ml"
KINDS = ["float32", "float32", "float64", "int64", "int32"]


def rows(m, columns, kinds=tuple(KINDS)):
    return m.tensor(m.r.choice(kinds), [m.int(1, 6), columns], -4, 4)


def labels(m, count, name):
    """Labels of classes: strings, or integers as the attribute NAME."""
    if m.chance(0.3):
        return {"classlabels_strings": maker.WORDS[1:count + 1]}
    return {name: list(range(2, count + 2))}


def floats(m, count, low=-1.0, high=1.0):
    return [m.float(low, high) for _ in range(count)]


def a_map(m, strings, among, values):
    """A map with some of the keys AMONG, in any order."""
    keys = m.r.sample(among, m.int(1, len(among)))
    kind = numpy.object_ if strings else numpy.int64
    return maker.Map(numpy.array(keys, kind), m.tensor(values, [len(keys)], -4, 4))


@generator("CastMap", domain=ML)
def cast_map(m):
    words = m.chance(0.4)
    sparse = m.chance(0.5)
    x = a_map(m, False, list(range(0 if sparse else -3, 9)), "float32")
    if words:
        x.values = numpy.array([m.pick("1", "-7", "0.5", "12") for _ in x.keys], numpy.object_)
    attributes = m.maybe(0.8, cast_to=m.pick("TO_FLOAT", "TO_STRING", "TO_INT64"))
    if attributes.get("cast_to") == "TO_STRING" and not words:
        x.values = numpy.round(x.values * 4) / 4  # one shortest text
    if attributes.get("cast_to") == "TO_INT64" and words:
        x.values = numpy.array([m.pick("1", "-7", "12") for _ in x.keys], numpy.object_)
    if sparse:
        attributes |= {"map_form": "SPARSE", "max_map": m.int(9, 12)}
    else:
        attributes |= m.maybe(0.5, map_form="DENSE")
    return m.case(x, **attributes)


@generator("DictVectorizer", domain=ML)
def dict_vectorizer(m):
    words = m.chance(0.5)
    vocabulary = maker.WORDS[1:] if words else list(range(-4, 6))
    m.r.shuffle(vocabulary)
    kind = m.r.choice(["int64", "float32", "float64"] + ([] if words else ["string"]))
    x = a_map(m, words, vocabulary, kind)
    return m.case(x, **{"string_vocabulary" if words else "int64_vocabulary": vocabulary})


@generator("ZipMap", domain=ML)
def zip_map(m):
    classes = m.int(1, 6)
    x = m.tensor("float32", [m.int(1, 5), classes] if m.chance(0.8) else [classes])
    words, numbers = maker.WORDS[1:classes + 1], list(range(-2, classes - 2))
    m.r.shuffle(numbers)
    given = {"classlabels_strings": words} if m.chance(0.5) else {"classlabels_int64s": numbers}
    return m.case(m.value(x, False), **given)


@generator("ArrayFeatureExtractor", domain=ML)
def feature_extractor(m):
    c = m.int(1, 8)
    where = m.n.integers(0, c, (m.int(1, 5),)).astype(numpy.int64)
    return m.case(m.tensor(m.r.choice(KINDS + ["string"]), [m.int(1, 5), c]), where)


@generator("Binarizer", domain=ML)
def binarizer(m):
    return m.case(rows(m, m.int(1, 8), ["float32"]), threshold=m.float(-1, 1))


@generator("Scaler", domain=ML)
def scaler(m):
    c = m.int(1, 8)
    count = m.pick(1, c)
    return m.case(rows(m, c), offset=floats(m, count), scale=floats(m, count, 0.5, 2))


@generator("Normalizer", domain=ML)
def normalizer(m):
    return m.case(rows(m, m.int(1, 8), ["float32"]), norm=m.pick("MAX", "L1", "L2"))


@generator("Imputer", domain=ML)
def imputer(m):
    c = m.int(1, 6)
    x = m.tensor("float32", [m.int(1, 6), c])
    replaced = float("nan") if m.chance(0.5) else 0.0
    x[m.n.random(x.shape) < 0.3] = replaced
    return m.case(x, imputed_value_floats=floats(m, m.pick(1, c)), replaced_value_float=replaced)


@generator("FeatureVectorizer", domain=ML)
def feature_vectorizer(m):
    n, widths = m.int(1, 4), [m.int(1, 4) for _ in range(m.int(1, 3))]
    return m.case(*[m.tensor("float32", [n, w]) for w in widths], inputdimensions=widths)


@generator("OneHotEncoder", domain=ML)
def one_hot_encoder(m):
    shape = tuple(m.shape(1, 2, zero=False, most=20))
    if m.chance(0.4):
        return m.case(m.tensor("string", shape), cats_strings=maker.WORDS, **m.maybe(0.5, zeros=1))
    x = m.n.integers(0, 5, shape).astype(numpy.int64)
    return m.case(x, cats_int64s=[0, 1, 2, 3, 4, 7], **m.maybe(0.5, zeros=1))


@generator("LabelEncoder", domain=ML)
def label_encoder(m):
    if m.version == 1:
        x = m.n.integers(0, 4, (m.int(1, 6),)).astype(numpy.int64)
        return m.case(x, classes_strings=["a", "b", "c"], default_string="none")
    shape = tuple(m.shape(1, 2, zero=False, most=20))
    kind = m.pick("int64", "string", "float")
    if kind == "string":
        x, keys = m.tensor("string", shape), ["a", "bc", "the"]
    else:
        x, keys = m.n.integers(0, 6, shape).astype(numpy.int64), [1, 3, 4]
    if kind == "float":
        x, keys = x.astype(numpy.float32), [1.0, 3.0, 4.0]
    how = m.pick("int64", "string", "float")
    values = {"int64": [10, 20, 30], "string": ["x", "yy", ""], "float": [0.5, 1.5, -2.0]}[how]
    attributes = {f"values_{how}s": values}
    if m.chance(0.6):
        attributes[f"default_{how}"] = {"int64": 7, "string": "other", "float": 9.5}[how]
    return m.case(x, **{f"keys_{kind}s": keys}, **attributes)


@generator("CategoryMapper", domain=ML)
def category_mapper(m):
    attributes = dict(cats_int64s=[0, 1, 2], cats_strings=["a", "bc", "Zebra"])
    if m.chance(0.5):
        return m.case(m.n.integers(0, 5, (m.int(1, 6),)).astype(numpy.int64),
                      default_string="none", **attributes)
    return m.case(m.tensor("string", [m.int(1, 6)]), default_int64=-5, **attributes)


@generator("LinearRegressor", domain=ML)
def linear_regressor(m):
    c, targets = m.int(1, 7), m.int(1, 4)
    post = m.pick("NONE", "NONE", "SOFTMAX", "LOGISTIC") if targets > 1 else "NONE"
    return m.case(rows(m, c, ["float32"]), coefficients=floats(m, c * targets), targets=targets,
                  post_transform=post, **m.maybe(0.7, intercepts=floats(m, targets)))


@generator("LinearClassifier", domain=ML)
def linear_classifier(m):
    c, classes = m.int(1, 7), m.int(3, 5)
    return m.case(rows(m, c, ["float32"]), outputs=2, coefficients=floats(m, c * classes),
                  intercepts=floats(m, classes), **labels(m, classes, "classlabels_ints"),
                  post_transform=m.pick("NONE", "SOFTMAX", "LOGISTIC"))


def kernel(m):
    kind = m.pick("LINEAR", "POLY", "RBF", "SIGMOID")
    degree = 2.0 if kind == "POLY" else 3.0
    return dict(kernel_type=kind, kernel_params=[m.float(0.1, 0.6), m.float(0, 0.5), degree])


@generator("SVMRegressor", domain=ML)
def svm_regressor(m):
    c, vectors = m.int(1, 5), m.int(1, 6)
    return m.case(rows(m, c, ["float32"]), support_vectors=floats(m, c * vectors),
                  coefficients=floats(m, vectors), n_supports=vectors, rho=floats(m, 1),
                  **kernel(m))


@generator("SVMClassifier", domain=ML)
def svm_classifier(m):
    c, classes = m.int(1, 5), m.int(2, 4)
    per = [m.int(1, 3) for _ in range(classes)]
    vectors = sum(per)
    pairs = classes * (classes - 1) // 2
    return m.case(rows(m, c, ["float32"]), outputs=2, support_vectors=floats(m, c * vectors),
                  coefficients=floats(m, vectors * (classes - 1)), vectors_per_class=per,
                  rho=floats(m, pairs), **labels(m, classes, "classlabels_ints"), **kernel(m))


def forest(m, columns, weights):
    """Attributes of full binary trees of depth 1 to 3, a leaf's weights WEIGHTS(tree, node)."""
    t = {k: [] for k in ("treeids", "nodeids", "featureids", "modes", "values", "truenodeids",
                         "falsenodeids")}
    leaves = []
    mode = m.pick("BRANCH_LEQ", "BRANCH_LEQ", "BRANCH_LT", "BRANCH_GT", "BRANCH_GTE")
    for tree in range(m.int(1, 4)):
        inner = 2 ** m.int(1, 3) - 1
        for node in range(2 * inner + 1):
            leaf = node >= inner
            t["treeids"].append(tree)
            t["nodeids"].append(node)
            t["featureids"].append(0 if leaf else m.int(0, columns - 1))
            t["modes"].append("LEAF" if leaf else mode)
            t["values"].append(0.0 if leaf else m.float(-2, 2))
            t["truenodeids"].append(0 if leaf else 2 * node + 1)
            t["falsenodeids"].append(0 if leaf else 2 * node + 2)
            if leaf:
                leaves.append((tree, node))
    attributes = {f"nodes_{k}": v for k, v in t.items()}
    return attributes | weights(leaves)


@generator("TreeEnsembleRegressor", domain=ML)
def tree_regressor(m):
    c, targets = m.int(1, 5), m.int(1, 3)

    def weights(leaves):
        return dict(target_treeids=[t for t, _ in leaves], target_nodeids=[n for _, n in leaves],
                    target_ids=[m.int(0, targets - 1) for _ in leaves],
                    target_weights=floats(m, len(leaves)))

    how = m.pick("SUM", "SUM", "AVERAGE", "MIN", "MAX") if targets == 1 else "SUM"
    return m.case(rows(m, c, ["float32"]), n_targets=targets, aggregate_function=how,
                  **forest(m, c, weights), **m.maybe(0.4, base_values=floats(m, targets)))


@generator("TreeEnsembleClassifier", domain=ML)
def tree_classifier(m):
    c, classes = m.int(1, 5), m.int(3, 5)

    def weights(leaves):
        return dict(class_treeids=[t for t, _ in leaves], class_nodeids=[n for _, n in leaves],
                    class_ids=[m.int(0, classes - 1) for _ in leaves],
                    class_weights=floats(m, len(leaves), 0.1, 1))

    return m.case(rows(m, c, ["float32"]), outputs=2, **labels(m, classes, "classlabels_int64s"),
                  **m.maybe(0.3, base_values=floats(m, classes)),
                  post_transform=m.pick("NONE", "SOFTMAX", "LOGISTIC"), **forest(m, c, weights))


@generator("TreeEnsemble", domain=ML)
def tree_ensemble(m):
    c, targets = m.int(1, 4), m.int(1, 2)
    dtype = m.pick("float32", "float32", "float64")
    kind = NUMPY[dtype]
    trees = m.int(1, 3)
    leaves = 2 * trees

    def node_values(values, t):
        return tensor("v", numpy.array(values, t))

    return m.case(
        m.tensor(dtype, [m.int(1, 5), c]),
        n_targets=targets, aggregate_function=m.pick(0, 1), post_transform=0,
        tree_roots=list(range(trees)),
        nodes_featureids=[m.int(0, c - 1) for _ in range(trees)],
        nodes_modes=node_values([0] * trees, numpy.uint8),
        nodes_splits=node_values(floats(m, trees), kind),
        nodes_truenodeids=[2 * i for i in range(trees)], nodes_trueleafs=[1] * trees,
        nodes_falsenodeids=[2 * i + 1 for i in range(trees)], nodes_falseleafs=[1] * trees,
        leaf_targetids=[m.int(0, targets - 1) for _ in range(leaves)],
        leaf_weights=node_values(floats(m, leaves), kind))


@generator("Adagrad", "Momentum", "Adam", domain="ai.onnx.preview.training")
def optimizer(m):
    shape = m.shape(1, 3, zero=False)
    m.case_.opsets[""] = 17
    f = "float32"
    rate = numpy.array(m.float(0.01, 0.5), numpy.float32)
    step = numpy.array(m.int(0, 5), numpy.int64)
    x, g = m.tensor(f, shape), m.tensor(f, shape)
    norm = m.maybe(0.6, norm_coefficient=m.float(0.01, 0.3))
    if m.operator == "Adagrad":
        h = m.tensor(f, shape, 0.1, 2)
        return m.case(rate, step, x, g, h, outputs=2, **norm,
                      **m.maybe(0.6, epsilon=1e-3, decay_factor=0.1))
    if m.operator == "Momentum":
        return m.case(rate, step, x, g, m.tensor(f, shape), outputs=2, alpha=m.float(0.5, 0.95),
                      beta=m.float(0.5, 1), mode=m.pick("standard", "nesterov"),
                      norm_coefficient=m.float(0.01, 0.3))
    v, h = m.tensor(f, shape), m.tensor(f, shape, 0.1, 2)
    return m.case(rate, step, x, g, v, h, outputs=3, alpha=0.9, beta=0.99, epsilon=1e-3, **norm)

