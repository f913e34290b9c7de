#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Models of scikit-learn, XGBoost and LightGBM, exported with default options, against ONNX
Runtime.

    python3 -m venv VENV
    VENV/bin/pip install onnx onnxruntime scikit-learn skl2onnx xgboost lightgbm onnxmltools
    VENV/bin/python tests/models/classic_models.py FOLDER [CLTOOL [options of cltool verify]]

Writes an ONNX test case for each into FOLDER, with the outputs of ONNX Runtime, and runs `cltool
verify` on the folder where CLTOOL is named. On demand only: the packages come from PyPI. Exit code
77 where one of them is missing. Models that an exporter does not take are named and do not count.
"""

import pathlib
import subprocess
import sys
import warnings

try:
    import lightgbm
    import numpy
    import onnx
    import onnxmltools
    import onnxruntime
    import skl2onnx
    import sklearn
    import xgboost
    from onnxmltools.convert.common.data_types import FloatTensorType as OnnxmltoolsFloats
    from skl2onnx.common.data_types import DictionaryType, FloatTensorType, StringTensorType
except ImportError as missing:
    print(f"skipped: {missing}; the head of this file says which packages it needs")
    sys.exit(77)

from onnx import numpy_helper
from sklearn import (
    calibration,
    cluster,
    compose,
    datasets,
    decomposition,
    discriminant_analysis,
    ensemble,
    feature_extraction,
    feature_selection,
    gaussian_process,
    impute,
    linear_model,
    multiclass,
    multioutput,
    naive_bayes,
    neighbors,
    neural_network,
    pipeline,
    preprocessing,
    svm,
    tree,
)

OPSETS = {"": 18, "ai.onnx.ml": 3}
ROWS = 48  # of a case
TOLERANCE = [
    "--rtol",
    "1e-3",
    "--atol",
    "1e-5",
]  # float32 sums in another order; probabilities near 0

# ---- data: rounded, so that no feature is within a rounding of a split ---------------------------


def table(loader):
    x, y = loader(return_X_y=True)
    return numpy.round(x, 2).astype(numpy.float32), y


IRIS = table(datasets.load_iris)
CANCER = table(datasets.load_breast_cancer)
DIABETES = table(datasets.load_diabetes)
DIGITS = table(datasets.load_digits)
SPECIES = (IRIS[0], datasets.load_iris().target_names[IRIS[1]])
WORDS = numpy.array(
    [
        "the cat sat on the mat",
        "a dog barked at the cat",
        "dogs and cats are animals",
        "the stock market fell today",
        "shares rose as the market opened",
        "the bank raised its rates",
        "my dog likes the park",
        "investors sold their shares",
    ]
)
TOPICS = numpy.array(["pets", "pets", "pets", "money", "money", "money", "pets", "money"])


def holes(x):
    """A tenth of the numbers missing."""
    x = x.copy()
    x[numpy.random.default_rng(1).random(x.shape) < 0.1] = numpy.nan
    return x


def columns(n=120):
    """Two numbers with holes, and two words."""
    random = numpy.random.default_rng(2)
    numbers = holes(numpy.round(random.normal(size=(n, 2)), 2).astype(numpy.float32))
    colours = random.choice(["red", "green", "blue"], size=(n, 1))
    sizes = random.choice(["S", "M", "L"], size=(n, 1))
    target = (numpy.nan_to_num(numbers[:, 0]) + (colours[:, 0] == "red") > 0.2).astype(int)
    return {
        "numbers": numbers,
        "colours": colours.astype(object),
        "sizes": sizes.astype(object),
    }, target


# ---- models --------------------------------------------------------------------------------------


def classifiers():
    yield "logistic_two", linear_model.LogisticRegression(max_iter=3000), CANCER
    yield "logistic_three", linear_model.LogisticRegression(max_iter=500), IRIS
    yield "logistic_words", linear_model.LogisticRegression(max_iter=500), SPECIES
    yield "sgd", linear_model.SGDClassifier(loss="log_loss", random_state=0), IRIS
    yield "ridge_classifier", linear_model.RidgeClassifier(), IRIS
    yield "perceptron", linear_model.Perceptron(), IRIS
    yield "linear_svc_two", svm.LinearSVC(), CANCER
    yield "linear_svc_three", svm.LinearSVC(), SPECIES
    for kernel in ("rbf", "linear", "poly", "sigmoid"):
        yield f"svc_{kernel}_two", svm.SVC(kernel=kernel), table_scaled(CANCER)
        yield f"svc_{kernel}_three", svm.SVC(kernel=kernel), SPECIES
    yield "svc_ten", svm.SVC(), DIGITS
    yield "svc_one_to_one", svm.SVC(decision_function_shape="ovo"), IRIS
    yield "svc_probability_two", svm.SVC(probability=True, random_state=0), table_scaled(CANCER)
    yield "svc_probability_three", svm.SVC(probability=True, random_state=0), SPECIES
    yield "svc_probability_ten", svm.SVC(probability=True, random_state=0), DIGITS
    yield "nu_svc_two", svm.NuSVC(nu=0.3), table_scaled(CANCER)
    yield "nu_svc_three", svm.NuSVC(nu=0.3), IRIS
    yield "nu_svc_probability", svm.NuSVC(nu=0.3, probability=True, random_state=0), SPECIES
    yield "gaussian_bayes", naive_bayes.GaussianNB(), IRIS
    yield "multinomial_bayes", naive_bayes.MultinomialNB(), DIGITS
    yield "bernoulli_bayes", naive_bayes.BernoulliNB(binarize=8), DIGITS
    yield "neighbours", neighbors.KNeighborsClassifier(), IRIS
    yield "tree", tree.DecisionTreeClassifier(random_state=0), SPECIES
    yield "forest", ensemble.RandomForestClassifier(30, random_state=0), SPECIES
    yield "forest_ten", ensemble.RandomForestClassifier(20, random_state=0), DIGITS
    yield "extra_trees", ensemble.ExtraTreesClassifier(20, random_state=0), CANCER
    yield "boosting_two", ensemble.GradientBoostingClassifier(random_state=0), CANCER
    yield "boosting_three", ensemble.GradientBoostingClassifier(
        n_estimators=20, random_state=0
    ), IRIS
    yield "histogram_boosting", ensemble.HistGradientBoostingClassifier(max_iter=30), IRIS
    yield "histogram_boosting_holes", ensemble.HistGradientBoostingClassifier(max_iter=30), (
        holes(CANCER[0]),
        CANCER[1],
    )
    yield "ada_boost", ensemble.AdaBoostClassifier(n_estimators=10, random_state=0), IRIS
    yield "bagging", ensemble.BaggingClassifier(n_estimators=5, random_state=0), IRIS
    yield "voting", ensemble.VotingClassifier(
        [("a", linear_model.LogisticRegression(max_iter=500)), ("b", naive_bayes.GaussianNB())],
        voting="soft",
        flatten_transform=False,
    ), IRIS
    yield "stacking", ensemble.StackingClassifier(
        [("a", tree.DecisionTreeClassifier(random_state=0)), ("b", naive_bayes.GaussianNB())]
    ), IRIS
    yield "network", neural_network.MLPClassifier((16, 8), max_iter=300, random_state=0), IRIS
    yield "discriminant_linear", discriminant_analysis.LinearDiscriminantAnalysis(), SPECIES
    yield "discriminant_quadratic", discriminant_analysis.QuadraticDiscriminantAnalysis(), IRIS
    yield "calibrated", calibration.CalibratedClassifierCV(
        linear_model.LogisticRegression(max_iter=500)
    ), IRIS
    yield "one_vs_rest", multiclass.OneVsRestClassifier(
        linear_model.LogisticRegression(max_iter=500)
    ), IRIS
    yield "one_vs_one", multiclass.OneVsOneClassifier(
        linear_model.LogisticRegression(max_iter=500)
    ), IRIS
    yield "gaussian_process", gaussian_process.GaussianProcessClassifier(), CANCER_SMALL
    yield "scaled_logistic", pipeline.make_pipeline(
        preprocessing.StandardScaler(), linear_model.LogisticRegression()
    ), CANCER
    yield "imputed_forest", pipeline.make_pipeline(
        impute.SimpleImputer(), ensemble.RandomForestClassifier(10, random_state=0)
    ), (holes(IRIS[0]), SPECIES[1])
    yield "components_svc", pipeline.make_pipeline(
        preprocessing.MinMaxScaler(),
        decomposition.PCA(8),
        svm.SVC(probability=True, random_state=0),
    ), DIGITS
    yield "selected_neighbours", pipeline.make_pipeline(
        feature_selection.SelectKBest(k=5),
        preprocessing.RobustScaler(),
        neighbors.KNeighborsClassifier(),
    ), CANCER


def table_scaled(data):
    return (
        preprocessing.StandardScaler().fit_transform(data[0]).round(2).astype(numpy.float32),
        data[1],
    )


CANCER_SMALL = (table_scaled(CANCER)[0][:80, :4], CANCER[1][:80])


def regressors():
    scaled = table_scaled(DIABETES)
    two = (scaled[0], numpy.stack([scaled[1], -scaled[1]], 1))
    yield "linear", linear_model.LinearRegression(), scaled
    yield "ridge_two_targets", linear_model.Ridge(), two
    yield "lasso", linear_model.Lasso(), scaled
    yield "elastic_net", linear_model.ElasticNet(), scaled
    yield "poisson", linear_model.PoissonRegressor(), scaled
    for kernel in ("rbf", "linear", "poly", "sigmoid"):
        yield f"svr_{kernel}", svm.SVR(kernel=kernel), scaled
    yield "nu_svr", svm.NuSVR(), scaled
    yield "linear_svr", svm.LinearSVR(), scaled
    yield "one_class_svm", svm.OneClassSVM(), IRIS
    yield "isolation_forest", ensemble.IsolationForest(n_estimators=20, random_state=0), IRIS
    yield "outlier_factor", neighbors.LocalOutlierFactor(novelty=True), IRIS
    yield "neighbours_regressor", neighbors.KNeighborsRegressor(), scaled
    yield "tree_regressor", tree.DecisionTreeRegressor(random_state=0), scaled
    yield "forest_regressor", ensemble.RandomForestRegressor(20, random_state=0), scaled
    yield "boosting_regressor", ensemble.GradientBoostingRegressor(random_state=0), scaled
    yield "histogram_boosting_regressor", ensemble.HistGradientBoostingRegressor(
        max_iter=30
    ), scaled
    yield "ada_boost_regressor", ensemble.AdaBoostRegressor(n_estimators=10, random_state=0), scaled
    yield "network_regressor", neural_network.MLPRegressor(
        hidden_layer_sizes=(16,), max_iter=300, random_state=0
    ), scaled
    yield "several_svr", multioutput.MultiOutputRegressor(svm.SVR()), two
    yield "k_means", cluster.KMeans(4, n_init=1, random_state=0), IRIS
    yield "components", decomposition.PCA(3), DIGITS
    yield "truncated", decomposition.TruncatedSVD(3, random_state=0), DIGITS
    yield "bins", preprocessing.KBinsDiscretizer(
        4, encode="onehot-dense", quantile_method="averaged_inverted_cdf"
    ), IRIS
    yield "polynomials", preprocessing.PolynomialFeatures(2), IRIS
    yield "normalizer", preprocessing.Normalizer(), IRIS
    yield "binarizer", preprocessing.Binarizer(threshold=2), IRIS
    yield "power", preprocessing.PowerTransformer(), IRIS
    yield "neighbour_imputer", impute.KNNImputer(), (holes(IRIS[0]), IRIS[1])


def with_tables():
    """Columns of several types, and text."""
    parts, target = columns()
    encoder = compose.ColumnTransformer(
        [
            (
                "numbers",
                pipeline.make_pipeline(
                    impute.SimpleImputer(strategy="median"), preprocessing.StandardScaler()
                ),
                [0, 1],
            ),
            ("words", preprocessing.OneHotEncoder(handle_unknown="ignore"), [2, 3]),
        ]
    )
    rows = numpy.hstack([parts["numbers"].astype(object), parts["colours"], parts["sizes"]])
    types = [
        ("numbers", FloatTensorType([None, 2])),
        ("colours", StringTensorType([None, 1])),
        ("sizes", StringTensorType([None, 1])),
    ]
    for name, last in (
        ("logistic", linear_model.LogisticRegression()),
        ("svc", svm.SVC(probability=True, random_state=0)),
        ("forest", ensemble.RandomForestClassifier(10, random_state=0)),
    ):
        yield f"columns_{name}", pipeline.make_pipeline(encoder, last).fit(
            rows, target
        ), types, parts
    ordinal = preprocessing.OrdinalEncoder().fit(numpy.hstack([parts["colours"], parts["sizes"]]))
    yield "ordinal", ordinal, [("words", StringTensorType([None, 2]))], {
        "words": numpy.hstack([parts["colours"], parts["sizes"]])
    }
    text = {"text": WORDS.reshape(-1, 1).astype(object)}
    text_type = [("text", StringTensorType([None, 1]))]
    for name, vectorizer, last in (
        (
            "tfidf_logistic",
            feature_extraction.text.TfidfVectorizer(),
            linear_model.LogisticRegression(),
        ),
        (
            "tfidf_pairs_svc",
            feature_extraction.text.TfidfVectorizer(ngram_range=(1, 2)),
            svm.SVC(kernel="linear"),
        ),
        ("count_bayes", feature_extraction.text.CountVectorizer(), naive_bayes.MultinomialNB()),
    ):
        model = pipeline.make_pipeline(compose.ColumnTransformer([("text", vectorizer, 0)]), last)
        yield name, model.fit(text["text"], TOPICS), text_type, text


def with_maps():
    """One map a run: what ONNX Runtime and skl2onnx know of DictVectorizer."""
    rows = [
        {"red": 1.0, "size": 2.0},
        {"green": 1.0, "size": 3.5},
        {"red": 1.0, "weight": 0.5},
        {"blue": 1.0},
    ] * 5
    target = numpy.array([0, 1, 0, 1] * 5)
    types = [("row", DictionaryType(StringTensorType([1]), FloatTensorType([])))]
    for name, last in (
        ("logistic", linear_model.LogisticRegression()),
        ("svc", svm.SVC(probability=True, random_state=0)),
    ):
        yield f"maps_{name}", pipeline.make_pipeline(
            feature_extraction.DictVectorizer(sparse=False), last
        ).fit(rows, target), types, {"row": rows[1]}


def boosted():
    for name, kind in (("xgboost", xgboost.XGBClassifier), ("lightgbm", lightgbm.LGBMClassifier)):
        quiet = {"verbose": -1} if name == "lightgbm" else {}
        convert = onnxmltools.convert_lightgbm if quiet else onnxmltools.convert_xgboost
        yield f"{name}_two", kind(n_estimators=20, **quiet), CANCER, convert
        yield f"{name}_three", kind(n_estimators=15, **quiet), IRIS, convert
        yield f"{name}_holes", kind(n_estimators=15, **quiet), (
            holes(CANCER[0]),
            CANCER[1],
        ), convert
        regressor = lightgbm.LGBMRegressor if quiet else xgboost.XGBRegressor
        yield f"{name}_regressor", regressor(n_estimators=20, **quiet), table_scaled(
            DIABETES
        ), convert
    yield "xgboost_forest", xgboost.XGBRFClassifier(
        n_estimators=15
    ), CANCER, onnxmltools.convert_xgboost
    yield "lightgbm_forest", lightgbm.LGBMClassifier(
        boosting_type="rf", n_estimators=15, subsample=0.7, subsample_freq=1, verbose=-1
    ), CANCER, onnxmltools.convert_lightgbm


# ---- cases ---------------------------------------------------------------------------------------


def map_proto(row):
    """onnx.numpy_helper.from_dict fails on keys that are strings."""
    proto = onnx.MapProto()
    words = isinstance(next(iter(row)), str)
    proto.key_type = onnx.TensorProto.STRING if words else onnx.TensorProto.INT64
    if words:
        proto.string_keys.extend(key.encode() for key in row)
    else:
        proto.keys.extend(row)
    proto.values.elem_type = onnx.SequenceProto.TENSOR
    proto.values.tensor_values.extend(
        numpy_helper.from_array(numpy.array(v, numpy.float32)) for v in row.values()
    )
    return proto


def value_bytes(value):
    if isinstance(value, dict):
        return map_proto(value).SerializeToString()
    if not isinstance(value, list):
        return numpy_helper.from_array(numpy.asarray(value)).SerializeToString()
    proto = onnx.SequenceProto(elem_type=onnx.SequenceProto.MAP)
    proto.map_values.extend(map_proto(row) for row in value)
    return proto.SerializeToString()


def use_plain_locale(model):
    """A locale that every machine has; the words here are ASCII."""
    for node in model.graph.node:
        if node.op_type == "StringNormalizer":
            kept = [attribute for attribute in node.attribute if attribute.name != "locale"]
            del node.attribute[:]
            node.attribute.extend([*kept, onnx.helper.make_attribute("locale", "C")])


def write_case(folder, name, model, inputs):
    """inputs: arrays by name; a lone array is that of the first input."""
    use_plain_locale(model)
    file = model.SerializeToString()
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    names = [port.name for port in session.get_inputs()]
    if not isinstance(inputs, dict):
        inputs = {names[0]: inputs}
    feed = {
        port: inputs[port] if isinstance(inputs[port], dict) else inputs[port][:ROWS]
        for port in names
    }
    outputs = session.run(None, feed)
    data = folder / name / "test_data_set_0"
    data.mkdir(parents=True, exist_ok=True)
    (folder / name / "model.onnx").write_bytes(file)
    for what, values in (("input", feed.values()), ("output", outputs)):
        for i, value in enumerate(values):
            (data / f"{what}_{i}.pb").write_bytes(value_bytes(value))


def exported():
    """Names, and functions that give an exported model and its inputs."""

    def by_skl2onnx(model, data):
        x, y = data
        return skl2onnx.to_onnx(model.fit(x, y), x[:1], target_opset=OPSETS), x

    def by_types(model, types, inputs):
        return skl2onnx.to_onnx(model, initial_types=types, target_opset=OPSETS), inputs

    def by_onnxmltools(model, data, convert):
        x, y = data
        return (
            convert(
                model.fit(x, y),
                initial_types=[("x", OnnxmltoolsFloats([None, x.shape[1]]))],
                target_opset=15,
            ),
            x,
        )

    for models in (classifiers, regressors):
        for name, model, data in models():
            yield name, lambda model=model, data=data: by_skl2onnx(model, data)
    for name, model, types, inputs in (*with_tables(), *with_maps()):
        yield name, lambda model=model, types=types, inputs=inputs: by_types(model, types, inputs)
    for name, model, data, convert in boosted():
        yield name, lambda model=model, data=data, convert=convert: by_onnxmltools(
            model, data, convert
        )


def main():
    folder = pathlib.Path(sys.argv[1])
    warnings.simplefilter("ignore")
    n_written, not_exported = 0, []
    for name, export in exported():
        try:
            write_case(folder, name, *export())
            n_written += 1
        except Exception as error:  # whatever an exporter or ONNX Runtime raises
            first = str(error).strip().splitlines()[0] if str(error) else ""
            not_exported.append((name, f"{type(error).__name__}: {first}"))
    for name, why in not_exported:
        print(f"not exported: {name}: {why[:200]}")
    print(
        f"{n_written} cases written, {len(not_exported)} models not exported "
        f"(scikit-learn {sklearn.__version__}, skl2onnx {skl2onnx.__version__}, "
        f"xgboost {xgboost.__version__}, lightgbm {lightgbm.__version__}, "
        f"onnxruntime {onnxruntime.__version__})"
    )
    if len(sys.argv) < 3:
        return 0
    return subprocess.run(
        [sys.argv[2], "verify", *TOLERANCE, *sys.argv[3:], str(folder)], check=False
    ).returncode


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main())
