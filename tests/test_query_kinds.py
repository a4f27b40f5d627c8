"""`sabal.query` with every kind of estimator, label and seed that scikit-learn has."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits
from sklearn.ensemble import (
    BaggingRegressor,
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    VotingRegressor,
)
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.linear_model import BayesianRidge, LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier, MultiOutputRegressor
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

import sabal
from sabal.errors import InputError

X, DIGITS = load_digits(return_X_y=True)
X = X[:260] / 16
DIGITS = DIGITS[:260]
LABELS = np.stack([DIGITS % 2, DIGITS >= 5, np.isin(DIGITS, [0, 6, 8, 9])], axis=1).astype(int)
VALUES = X @ np.random.default_rng(0).normal(size=64)
KNOWN, POOL = slice(0, 60), slice(60, 260)
B = 8


# -- several labels ------------------------------------------------------------------------------

MULTILABEL = {
    "one-vs-rest": OneVsRestClassifier(LogisticRegression()),
    "multi-output": MultiOutputClassifier(LogisticRegression()),
    "forest": RandomForestClassifier(10, random_state=0),
    "neighbours": KNeighborsClassifier(3),
    "chain": ClassifierChain(LogisticRegression()),
    "network": MLPClassifier((8,), max_iter=30, random_state=0),
    "pipeline": make_pipeline(StandardScaler(), OneVsRestClassifier(LogisticRegression())),
}


def rates_of(model):
    probs = model.predict_proba(X[POOL])
    if isinstance(probs, list):
        return np.stack([each[:, 1] for each in probs], axis=1)
    return probs


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kind", MULTILABEL)
def test_classifiers_of_several_labels(kind):
    model = MULTILABEL[kind].fit(X[KNOWN], LABELS[KNOWN])
    features = model[:-1].transform(X) if kind == "pipeline" else X
    batch = sabal.query(
        model,
        X[POOL],
        B,
        X_labeled=X[KNOWN],
        y_labeled=LABELS[KNOWN],
        features=features[POOL],
        labeled_features=features[KNOWN],
        random_state=0,
    )
    expected = sabal.select(
        B,
        loss="sigmoid",
        features=features[POOL],
        probs=rates_of(model),
        labeled_features=features[KNOWN],
        random_state=0,
    )
    np.testing.assert_array_equal(batch.indices, expected.indices)
    assert batch.evidence["loss"] == "sigmoid"


def test_a_label_that_has_always_been_the_same():
    labels = LABELS[KNOWN].copy()
    labels[:, 1] = 0
    model = RandomForestClassifier(10, random_state=0).fit(X[KNOWN], labels)
    assert model.predict_proba(X[POOL])[1].shape[1] == 1
    assert len(sabal.query(model, X[POOL], B, random_state=0)) == B


def test_several_classes_in_several_outputs_are_refused():
    both = np.stack([DIGITS, DIGITS % 3], axis=1)
    model = RandomForestClassifier(5, random_state=0).fit(X[KNOWN], both[KNOWN])
    with pytest.raises(InputError, match="one output at a time"):
        sabal.query(model, X[POOL], B)


def test_the_loss_may_be_said():
    class Unknown:
        """A classifier of somebody's own, whose labels are independent."""

        def predict_proba(self, X):
            return np.full((len(X), 3), 0.9)

    with pytest.raises(InputError, match="sum"):
        sabal.query(Unknown(), X[POOL], B)
    assert len(sabal.query(Unknown(), X[POOL], B, loss="sigmoid", random_state=0)) == B


# -- regression ----------------------------------------------------------------------------------


def members(model, rows):
    return np.stack([each.predict(rows) for each in model.estimators_])


REGRESSORS = {
    "process": (
        GaussianProcessRegressor(alpha=1e-3),
        lambda model: model.predict(X[POOL], return_std=True)[1] ** 2,
    ),
    "ridge": (BayesianRidge(), lambda model: model.predict(X[POOL], return_std=True)[1] ** 2),
    "forest": (
        RandomForestRegressor(10, random_state=0),
        lambda model: members(model, X[POOL]).var(axis=0),
    ),
    "extra-trees": (
        ExtraTreesRegressor(10, random_state=0),
        lambda model: members(model, X[POOL]).var(axis=0),
    ),
    "bagging": (
        BaggingRegressor(Ridge(), 5, max_features=0.5, random_state=0),
        lambda model: np.stack(
            [
                each.predict(X[POOL][:, used])
                for each, used in zip(model.estimators_, model.estimators_features_, strict=True)
            ]
        ).var(axis=0),
    ),
    "voting": (
        VotingRegressor([("a", Ridge()), ("b", DecisionTreeRegressor(random_state=0))]),
        lambda model: members(model, X[POOL]).var(axis=0),
    ),
    "search": (
        GridSearchCV(RandomForestRegressor(5, random_state=0), {"max_depth": [2, 3]}, cv=2),
        lambda model: members(model.best_estimator_, X[POOL]).var(axis=0),
    ),
}


@pytest.mark.parametrize("kind", REGRESSORS)
def test_regressors(kind):
    model, variance = REGRESSORS[kind]
    model.fit(X[KNOWN], VALUES[KNOWN])
    # What trees see is not X, but their leaves.
    batch = sabal.query(model, X[POOL], B, features=X[POOL], random_state=0)
    expected = sabal.select(
        B, loss="squared", features=X[POOL], variances=variance(model), random_state=0
    )
    np.testing.assert_array_equal(batch.indices, expected.indices)
    assert batch.evidence["loss"] == "squared"


def test_a_pipeline_of_a_regressor():
    model = make_pipeline(StandardScaler(), BayesianRidge()).fit(X[KNOWN], VALUES[KNOWN])
    batch = sabal.query(
        model, X[POOL], B, X_labeled=X[KNOWN], y_labeled=VALUES[KNOWN], random_state=0
    )
    expected = sabal.select(
        B,
        loss="squared",
        features=model[:-1].transform(X[POOL]),
        labeled_features=model[:-1].transform(X[KNOWN]),
        variances=model.predict(X[POOL], return_std=True)[1] ** 2,
        random_state=0,
    )
    np.testing.assert_array_equal(batch.indices, expected.indices)


def test_several_outputs_of_a_regressor():
    both = np.stack([VALUES, VALUES**2], axis=1)
    forest = RandomForestRegressor(5, random_state=0).fit(X[KNOWN], both[KNOWN])
    apart = MultiOutputRegressor(BayesianRidge()).fit(X[KNOWN], both[KNOWN])
    for model in (forest, apart):
        assert len(sabal.query(model, X[POOL], B, random_state=0)) == B
    expected = [each.predict(X[POOL], return_std=True)[1] ** 2 for each in apart.estimators_]
    by_hand = sabal.select(
        B, loss="squared", features=X[POOL], variances=np.stack(expected, axis=1), random_state=0
    )
    found = sabal.query(apart, X[POOL], B, random_state=0)
    np.testing.assert_array_equal(found.indices, by_hand.indices)


def test_a_frame_of_named_columns_for_an_ensemble():
    frame = pd.DataFrame(X, columns=[f"x{k}" for k in range(64)])
    forest = RandomForestRegressor(5, random_state=0).fit(frame[KNOWN], VALUES[KNOWN])
    plain = RandomForestRegressor(5, random_state=0).fit(X[KNOWN], VALUES[KNOWN])
    named = sabal.query(forest, frame[POOL], B, random_state=0)
    assert named.indices.tolist() == sabal.query(plain, X[POOL], B, random_state=0).indices.tolist()
    assert named.ids.tolist() == (60 + named.indices).tolist()


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (LinearRegression(), "BaggingRegressor"),
        (GradientBoostingRegressor(n_estimators=3), "BaggingRegressor"),
        (MultiOutputRegressor(LinearRegression()), "BaggingRegressor"),
    ],
)
def test_regressors_without_a_variance(model, message):
    values = VALUES if not isinstance(model, MultiOutputRegressor) else VALUES[:, None]
    model.fit(X[KNOWN], values[KNOWN])
    with pytest.raises(InputError, match=message):
        sabal.query(model, X[POOL], B)
    # Strategies that need no prediction do not ask.
    assert len(sabal.query(model, X[POOL], B, strategy="kcenter")) == B


def test_a_regressor_that_is_not_fitted():
    for model in (RandomForestRegressor(), BayesianRidge(), BaggingRegressor()):
        with pytest.raises(InputError, match="fit"):
            sabal.query(model, X[POOL], B)


# -- seeds ---------------------------------------------------------------------------------------


def test_every_kind_of_random_state():
    model = GaussianNB(var_smoothing=1e-2).fit(X[KNOWN], DIGITS[KNOWN])

    def ask(state):
        return sabal.query(model, X[POOL], B, random_state=state)

    assert len(ask(None)) == B
    assert ask(3).seed == 3
    assert ask(np.int64(3)).indices.tolist() == ask(3).indices.tolist()
    assert ask(np.random.default_rng(3)).seed is None
    first, again = ask(np.random.RandomState(3)), ask(np.random.RandomState(3))
    assert first.indices.tolist() == again.indices.tolist()
    assert ask(first.seed).indices.tolist() == first.indices.tolist()
    state = np.random.RandomState(3)
    assert ask(state).seed != ask(state).seed, "a state goes on, as in scikit-learn"
    np.random.seed(5)  # noqa: NPY002
    by_module = ask(np.random)
    np.random.seed(5)  # noqa: NPY002
    assert ask(np.random).seed == by_module.seed
    for wrong in (-1, 1.5, "0", True):
        with pytest.raises(InputError, match="random_state"):
            ask(wrong)


# -- labels with gaps ----------------------------------------------------------------------------


def gaps(labels, known):
    return np.where(known, labels.astype(float), np.nan)


KNOWN_N = np.random.default_rng(1).random(260) < 0.3
LABEL_KINDS = {
    "floats": lambda: gaps(DIGITS, KNOWN_N),
    "objects": lambda: np.array(
        [int(d) if k else None for d, k in zip(DIGITS, KNOWN_N, strict=True)], dtype=object
    ),
    "list": lambda: [int(d) if k else None for d, k in zip(DIGITS, KNOWN_N, strict=True)],
    "list-of-nan": lambda: [
        int(d) if k else float("nan") for d, k in zip(DIGITS, KNOWN_N, strict=True)
    ],
    "series": lambda: pd.Series(gaps(DIGITS, KNOWN_N)),
    "nullable": lambda: pd.Series(gaps(DIGITS, KNOWN_N)).astype("Int64"),
}


@pytest.mark.parametrize("kind", LABEL_KINDS)
@pytest.mark.parametrize("fit", [True, False])
def test_gaps_in_y_mark_the_pool(kind, fit):
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=300))
    trained = make_pipeline(StandardScaler(), LogisticRegression(max_iter=300))
    trained.fit(X[KNOWN_N], DIGITS[KNOWN_N])
    rows = np.flatnonzero(~KNOWN_N)
    for strategy in ("sabal", "sabal-greedy"):
        expected = sabal.query(
            trained,
            X[rows],
            B,
            X_labeled=X[KNOWN_N],
            y_labeled=DIGITS[KNOWN_N],
            strategy=strategy,
            random_state=0,
        )
        batch = sabal.query(
            trained if fit else model,
            X,
            B,
            y=LABEL_KINDS[kind](),
            strategy=strategy,
            random_state=0,
        )
        np.testing.assert_array_equal(batch.indices, rows[expected.indices])
        np.testing.assert_array_equal(batch.ids, batch.indices)
        assert batch.evidence["items"] == rows.size


def test_gaps_among_words_and_several_labels():
    words = [f"digit {d}" if k else None for d, k in zip(DIGITS, KNOWN_N, strict=True)]
    by_none = sabal.query(LogisticRegression(max_iter=300), X, B, y=words, random_state=0)
    words = [f"digit {d}" if k else np.nan for d, k in zip(DIGITS, KNOWN_N, strict=True)]
    by_nan = sabal.query(LogisticRegression(max_iter=300), X, B, y=words, random_state=0)
    assert by_none.indices.tolist() == by_nan.indices.tolist()
    assert not KNOWN_N[by_none.indices].any()
    several = np.where(KNOWN_N[:, None], LABELS, np.nan)
    model = OneVsRestClassifier(LogisticRegression())
    batch = sabal.query(model, X, B, y=several, random_state=0)
    assert not KNOWN_N[batch.indices].any()
    assert batch.evidence["loss"] == "sigmoid"
    numbers = sabal.query(BayesianRidge(), X, B, y=gaps(VALUES, KNOWN_N), random_state=0)
    assert not KNOWN_N[numbers.indices].any()


def test_with_gaps_every_array_has_a_row_for_every_item():
    rng = np.random.default_rng(0)
    own, scores, names = rng.normal(size=(260, 4)), rng.random(260), [f"n{k}" for k in range(260)]
    model = LogisticRegression(max_iter=300)
    y = gaps(DIGITS, KNOWN_N)
    batch = sabal.query(model, X, B, y=y, features=own, scores=scores, ids=names, random_state=0)
    rows = np.flatnonzero(~KNOWN_N)
    expected = sabal.select(
        B,
        features=own[rows],
        scores=scores[rows],
        labeled_features=own[KNOWN_N],
        random_state=0,
    )
    np.testing.assert_array_equal(batch.indices, rows[expected.indices])
    assert batch.ids.tolist() == [f"n{k}" for k in batch]
    frame = pd.DataFrame(X, index=names)
    assert sabal.query(model, frame, B, y=y, random_state=0).ids[0].startswith("n")


@pytest.mark.parametrize(
    ("y", "more", "message"),
    [
        (DIGITS, {}, "NaN or None for the items to choose from"),
        (gaps(DIGITS, KNOWN_N)[:50], {}, "50 entries"),
        (np.full(260, np.nan), {}, "label some items first"),
        (gaps(DIGITS, KNOWN_N), {"X_labeled": X[:5]}, "leave out X_labeled"),
    ],
)
def test_labels_that_do_not_split(y, more, message):
    with pytest.raises(InputError, match=message):
        sabal.query(LogisticRegression(), X, B, y=y, **more)


def test_a_trained_model_needs_no_labels_in_y():
    model = GaussianNB(var_smoothing=1e-2).fit(X[KNOWN], DIGITS[KNOWN])
    batch = sabal.query(model, X, B, y=np.full(260, np.nan), random_state=0)
    assert batch.indices.tolist() == sabal.query(model, X, B, random_state=0).indices.tolist()


# -- sparse input --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csr_array, sp.coo_matrix, sp.csc_array])
def test_sparse_input(kind):
    dense = np.round(X * 16)
    model = MultinomialNB().fit(dense[KNOWN_N], DIGITS[KNOWN_N])
    expected = sabal.query(model, dense, B, y=gaps(DIGITS, KNOWN_N), random_state=0)
    batch = sabal.query(model, kind(dense), B, y=gaps(DIGITS, KNOWN_N), random_state=0)
    assert batch.indices.tolist() == expected.indices.tolist()
    own = sabal.query(
        model, dense, B, y=gaps(DIGITS, KNOWN_N), features=kind(dense), random_state=0
    )
    assert own.indices.tolist() == expected.indices.tolist()


def test_sparse_input_of_a_regressor():
    forest = RandomForestRegressor(5, random_state=0).fit(X[KNOWN], VALUES[KNOWN])
    expected = sabal.query(forest, X[POOL], B, random_state=0)
    batch = sabal.query(forest, sp.csr_matrix(X[POOL]), B, random_state=0)
    assert batch.indices.tolist() == expected.indices.tolist()


# -- what adapters return ------------------------------------------------------------------------


def test_select_takes_a_dict_of_arrays():
    model = GaussianNB(var_smoothing=1e-2).fit(X[KNOWN], DIGITS[KNOWN])
    outputs = {"features": X[POOL], "probs": model.predict_proba(X[POOL]), "id": range(200)}
    expected = sabal.query(model, X[POOL], B, random_state=0)
    assert sabal.select(B, outputs, random_state=0).indices.tolist() == expected.indices.tolist()
    with pytest.raises(sabal.SabalError, match="did you mean 'features'"):
        sabal.select(B, {"feature": X[POOL]})
