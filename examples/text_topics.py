"""Short texts in 20 categories, some of them rare, with TF-IDF and SVD.

The texts are generated (subject words, common words, and some words of other subjects), so that
nothing has to be downloaded. The pool is imbalanced: the most frequent category has about twenty
times as many texts as the rarest. Runs in seconds:

    python examples/text_topics.py
"""

from __future__ import annotations

import numpy as np
from rich.console import Console
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import Normalizer

import sabal

POOL = 2000
TEST = 1000
START = 40
BATCH = 40
ROUNDS = 3
SEEDS = 2

SUBJECTS = {
    "astronomy": "orbit comet telescope galaxy eclipse planet lunar nebula",
    "baking": "dough yeast oven flour crust icing pastry knead",
    "banking": "loan deposit interest mortgage savings overdraft credit branch",
    "birds": "nest feather migration beak warbler heron flock plumage",
    "chess": "gambit bishop endgame checkmate rook castling opening pawn",
    "cinema": "director scene sequel screenplay premiere actor trailer studio",
    "cycling": "pedal saddle peloton gears helmet sprint puncture tandem",
    "farming": "harvest tractor wheat barn irrigation livestock fertiliser plough",
    "football": "striker penalty goalkeeper offside midfield league referee corner",
    "gardening": "compost seedling prune hedge mulch bloom weeds trowel",
    "geology": "basalt fault sediment fossil crystal magma erosion quartz",
    "law": "verdict plaintiff statute appeal jury contract clause tribunal",
    "medicine": "dose symptom vaccine surgeon diagnosis clinic fever therapy",
    "music": "melody chorus violin tempo chord orchestra concerto rhythm",
    "painting": "canvas brush pigment portrait fresco easel palette varnish",
    "railways": "locomotive platform signal carriage freight timetable sleeper junction",
    "sailing": "anchor mast harbour rudder regatta keel spinnaker mooring",
    "software": "compiler function thread database bug release server kernel",
    "weather": "forecast drizzle thunder humidity frost storm pressure gale",
    "weaving": "loom thread wool warp weft tapestry shuttle dye",
}
EVERYDAY = (
    "today people find that some of the old and new ones are better than before after long talk "
    "about time work home money water light hand year week question answer story plan choice"
)


def texts(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return sentences and their category numbers."""
    words = [subject.split() for subject in SUBJECTS.values()]
    share = 1.0 / np.arange(1, len(words) + 1)
    labels = rng.choice(len(words), size=n, p=share / share.sum())
    sentences = []
    for label in labels:
        own = rng.choice(words[label], size=rng.integers(1, 4)).tolist()
        stray = rng.choice(words[rng.integers(len(words))], size=rng.integers(0, 2)).tolist()
        sentence = own + stray + rng.choice(EVERYDAY.split(), size=6).tolist()
        rng.shuffle(sentence)
        sentences.append(" ".join(sentence))
    return np.array(sentences), labels


def fitted(known: np.ndarray, labels: np.ndarray, body: Pipeline) -> Pipeline:
    """Train a classifier on top of a fitted representation."""
    head = LogisticRegression(C=10.0, max_iter=500).fit(body.transform(known), labels)
    return make_pipeline(body, head)


def curve(strategy: str, seed: int) -> list[float]:
    """Return the macro F1 score (all categories weigh the same) after every round."""
    rng = np.random.default_rng(seed)
    pool, pool_y = texts(POOL, rng)
    test, test_y = texts(TEST, rng)
    # The representation needs no labels, so it is fitted once on the whole pool.
    body = make_pipeline(TfidfVectorizer(), TruncatedSVD(64, random_state=seed), Normalizer())
    body.fit(pool)
    known = rng.choice(POOL, size=START, replace=False)
    scores = []
    for round_number in range(ROUNDS + 1):
        model = fitted(pool[known], pool_y[known], body)
        scores.append(float(f1_score(test_y, model.predict(test), average="macro")))
        rest = np.setdiff1d(np.arange(POOL), known)
        batch = sabal.query(
            model,
            pool[rest],
            BATCH,
            X_labeled=pool[known],
            y_labeled=pool_y[known],
            strategy=strategy,
            random_state=seed * 100 + round_number,
        )
        known = np.append(known, rest[batch.indices])
    return scores


def main() -> None:
    """Run Sabal and random sampling from the same start, and print both curves."""
    console = Console()
    sample, labels = texts(3, np.random.default_rng(0))
    for sentence, label in zip(sample, labels, strict=True):
        console.print(f"  {list(SUBJECTS)[label]}: {sentence}", soft_wrap=True)
    counts = [START + BATCH * number for number in range(ROUNDS + 1)]
    console.print(f"Macro F1 with {', '.join(map(str, counts))} labels, mean over {SEEDS} seeds")
    for strategy in ("sabal", "random"):
        curves = np.array([curve(strategy, seed) for seed in range(SEEDS)])
        steps = ", ".join(f"{score:.3f}" for score in curves.mean(axis=0))
        console.print(f"  {strategy:>6}: {steps}")


if __name__ == "__main__":
    main()
