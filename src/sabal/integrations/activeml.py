"""A query strategy for scikit-activeml."""

from __future__ import annotations

from typing import Any

import numpy as np

from sabal.api import query
from sabal.errors import MissingPackageError
from sabal.selection import Selection

try:
    from skactiveml.base import SingleAnnotatorPoolQueryStrategy, SkactivemlClassifier
    from skactiveml.utils import (
        MISSING_LABEL,
        check_equal_missing_label,
        check_type,
        labeled_indices,
    )
except ImportError as error:
    raise MissingPackageError(
        "scikit-activeml for sabal.integrations.activeml", str(error), "pip install scikit-activeml"
    ) from None


class SabalQuery(SingleAnnotatorPoolQueryStrategy):  # type: ignore[misc]
    """A query strategy for scikit-activeml that uses a strategy of Sabal.

    Parameters
    ----------
    strategy : str
        As in `sabal.select`.
    options : dict, optional
        Options of the strategy.
    clf_embedding_flag_name : str or dict, optional
        As in the strategies of scikit-activeml: what makes `predict_proba` return embeddings
        besides the probabilities. If left out, the features are the input of the last step of a
        wrapped scikit-learn pipeline, or `X`.
    missing_label, random_state
        As in the strategies of scikit-activeml.

    Attributes
    ----------
    selection_ : Selection
        The complete selection of the last query, with the importance weights.

    Examples
    --------
    ::

        query = SabalQuery(missing_label=MISSING_LABEL, random_state=0)
        indices = query.query(X, y, clf, batch_size=20)
    """

    def __init__(
        self,
        strategy: str = "sabal",
        options: dict[str, Any] | None = None,
        clf_embedding_flag_name: str | dict[str, Any] | None = None,
        missing_label: Any = MISSING_LABEL,
        random_state: Any = None,
    ) -> None:
        super().__init__(missing_label=missing_label, random_state=random_state)
        self.strategy = strategy
        self.options = options
        self.clf_embedding_flag_name = clf_embedding_flag_name

    def query(
        self,
        X: Any,
        y: Any,
        clf: Any,
        fit_clf: bool = True,
        sample_weight: Any = None,
        candidates: Any = None,
        batch_size: int = 1,
        return_utilities: bool = False,
    ) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """Return the rows to label, in the order in which they were picked.

        Parameters
        ----------
        X, y, sample_weight, candidates, batch_size, return_utilities
            As in the strategies of scikit-activeml.
        clf : SkactivemlClassifier
            The classifier.
        fit_clf : bool
            Whether to train a clone of `clf` on the labelled items first.

        Returns
        -------
        indices : numpy.ndarray
            The rows.
        utilities : numpy.ndarray
            With `return_utilities`: the scores of the picked items, and NaN for all others.
        """
        X, y, candidates, batch_size, return_utilities = self._validate_data(
            X, y, candidates, batch_size, return_utilities, reset=True
        )
        check_type(clf, "clf", SkactivemlClassifier)
        check_equal_missing_label(clf.missing_label, self.missing_label_)
        X_pool, rows = self._transform_candidates(candidates, X, y, allow_only_unlabeled=True)
        if fit_clf:
            from sklearn.base import clone

            weights = () if sample_weight is None else (sample_weight,)
            clf = clone(clf).fit(X, y, *weights)
        self.selection_ = self._choose(clf, X_pool, X, y, batch_size)
        picked = self.selection_.indices
        indices = picked if rows is None else rows[picked]
        if not return_utilities:
            return indices
        utilities = np.full((len(indices), len(X_pool) if rows is None else len(X)), np.nan)
        utilities[np.arange(len(indices)), indices] = self.selection_.scores
        return indices, utilities

    def _choose(
        self, clf: Any, X_pool: np.ndarray, X: np.ndarray, y: np.ndarray, budget: int
    ) -> Selection:
        known = labeled_indices(y, self.missing_label_)
        # Cross-validation of a label distribution needs every class among the labels.
        complete = np.array_equal(clf.classes_, np.unique(y[known]))
        return query(
            clf,
            X_pool,
            budget,
            X_labeled=X[known] if complete else None,
            y_labeled=y[known] if complete else None,
            features=lambda: self._features(clf, X_pool),
            labeled_features=(lambda: self._features(clf, X[known])) if len(known) else None,
            strategy=self.strategy,
            random_state=int(self.random_state_.randint(2**31 - 1)),
            **(self.options or {}),
        )

    def _features(self, clf: Any, X: np.ndarray) -> np.ndarray:
        from sklearn.pipeline import Pipeline

        flag = self.clf_embedding_flag_name
        if flag is not None:
            _, embeddings = clf.predict_proba(
                X, **(flag if isinstance(flag, dict) else {flag: True})
            )
            return np.asarray(embeddings)
        # Without labels, a wrapped pipeline is not fitted; the wrapper knows.
        inner = clf.estimator_ if getattr(clf, "is_fitted_", False) else None
        if isinstance(inner, Pipeline) and len(inner) > 1:
            return np.asarray(inner[:-1].transform(X))
        return X
