"""Features of texts: sentence embeddings where their package is installed, else TF-IDF + SVD."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sabal.errors import InputError, MissingPackageError
from sabal.labeling.store.records import PoolItem

WORD = r"(?u)\w+|[^\w\s]"  # a word or another sign, so that emoji count
MAX_VOCABULARY = 50_000
MAX_TEXTS = 50_000  # the vocabulary is fitted on at most this many texts, drawn at random


class TfidfFeatures:
    """TF-IDF projected on its `size` strongest directions, with rows of length 1."""

    def __init__(self, texts: Sequence[str], size: int) -> None:
        from sklearn.decomposition import TruncatedSVD
        from sklearn.feature_extraction.text import TfidfVectorizer

        if len(texts) > MAX_TEXTS:
            drawn = np.random.default_rng(0).choice(len(texts), MAX_TEXTS, replace=False)
            texts = [texts[k] for k in np.sort(drawn)]
        self.vectorizer = TfidfVectorizer(
            token_pattern=WORD, ngram_range=(1, 2), sublinear_tf=True, max_features=MAX_VOCABULARY
        )
        weights_ND = self.vectorizer.fit_transform(texts)
        width = min(weights_ND.shape)
        self.project: Any = None
        if width > size:
            # With a fixed seed, so that fitting it again gives the same rows.
            self.project = TruncatedSVD(size, random_state=0).fit(weights_ND)

    def rows(self, items: Sequence[PoolItem]) -> np.ndarray:
        """Return an (items, size) array, with fewer columns if the vocabulary is smaller."""
        from sklearn.preprocessing import normalize

        weights_ND = self.vectorizer.transform([item.content for item in items])
        if self.project is None:
            return np.asarray(weights_ND.toarray(), dtype=np.float32)
        return np.asarray(normalize(self.project.transform(weights_ND)), dtype=np.float32)


class SentenceFeatures:
    """Embeddings by a model of the package sentence-transformers."""

    def __init__(self, name: str) -> None:
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError as error:
            raise MissingPackageError(
                f"sentence-transformers for the backbone {name!r}",
                str(error),
                "pip install sentence-transformers, or choose the backbone tfidf",
            ) from None
        try:
            self.model: Any = SentenceTransformer(name, model_kwargs={"use_safetensors": True})
        except Exception as error:
            # A download may raise anything, in this package or in its dependencies.
            raise InputError(
                f"the sentence model {name!r} on this machine or within reach",
                str(error),
                "check the name and the network, or choose the backbone tfidf",
            ) from None

    def rows(self, items: Sequence[PoolItem]) -> np.ndarray:
        """Return the embeddings as an (items, d) array."""
        texts = [item.content for item in items]
        return np.asarray(self.model.encode(texts, show_progress_bar=False), dtype=np.float32)
