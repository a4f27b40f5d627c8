"""Every mistake a caller can make is a SabalError that says what was expected, got, and to do."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

import sabal
from makers import make_pool
from sabal.pools import ArrayPool, open_pool

POOL = make_pool(n=10)
F, P, L = POOL.features, POOL.probs, POOL.log_probs


def nan_at(array, value=np.nan):
    copy = array.copy()
    copy.flat[7] = value
    return copy


CASES = {
    "nothing": {},
    "budget 0": {"budget": 0, "features": F},
    "budget negative": {"budget": -3, "features": F},
    "budget a fraction": {"budget": 2.5, "features": F},
    "budget a float": {"budget": 2.0, "features": F},
    "budget a bool": {"budget": True, "features": F},
    "budget a word": {"budget": "three", "features": F},
    "budget too large": {"budget": 11, "features": F},
    "NaN in features": {"features": nan_at(F)},
    "infinity in features": {"features": nan_at(F, np.inf)},
    "NaN in float32": {"features": nan_at(F).astype("float32")},
    "NaN in probs": {"features": F, "probs": nan_at(P)},
    "NaN in logits": {"features": F, "logits": nan_at(POOL.logits)},
    "NaN in log_probs": {"log_probs": nan_at(L)},
    "NaN in label_probs": {"features": F, "probs": P, "label_probs": nan_at(P)},
    "infinite logits": {"features": F, "logits": nan_at(POOL.logits, -np.inf)},
    "rows that do not sum to 1": {"features": F, "probs": P * 0.9},
    "logits as probs": {"features": F, "probs": POOL.logits},
    "negative probs": {"features": F, "probs": np.tile([1.2, -0.2], (10, 1))},
    "log_probs that do not sum to 1": {"log_probs": L - 0.1},
    "positive log_probs": {"log_probs": -L},
    "probs as log_probs": {"log_probs": np.exp(L)},
    "log_probs without samples": {"log_probs": np.log(P)},
    "features with one axis": {"features": F[:, 0]},
    "features with three axes": {"features": F[None]},
    "probs with one axis": {"probs": P[:, 0]},
    "no rows": {"features": F[:0]},
    "no columns": {"features": F[:, :0]},
    "ragged": {"features": [[1.0], [1.0, 2.0]]},
    "strings": {"features": [["a"], ["b"]]},
    "objects": {"features": np.array([[object()]] * 10)},
    "complex": {"features": F + 1j},
    "complex tensors": {"features": torch.tensor(F + 1j)},
    "dates": {"features": np.zeros((10, 2), "datetime64[s]")},
    "masked": {"features": np.ma.masked_array(F, mask=F > 0)},
    "sparse": {"features": csr_matrix(F)},
    "a sparse tensor": {"features": torch.tensor(F).to_sparse()},
    "different lengths": {"features": F, "probs": P[:5]},
    "different classes": {"features": F, "probs": P, "label_probs": np.full((10, 2), 0.5)},
    "two libraries": {"features": torch.tensor(F), "probs": P},
    "labelled features of another width": {"features": F, "labeled_features": F[:, :2]},
    "ids of another length": {"features": F, "ids": [1, 2]},
    "ids that repeat": {"features": F, "ids": [0] * 10},
    "ids that are floats": {"features": F, "ids": np.linspace(0, 1, 10)},
    "ids that are no sequence": {"features": F, "ids": 7},
    "an unknown strategy": {"features": F, "strategy": "entropi"},
    "a strategy that is no name": {"features": F, "strategy": 3},
    "an unknown option": {"features": F, "alhpa": 2.0},
    "a negative alpha": {"features": F, "alpha": -1.0},
    "an infinite beta": {"features": F, "beta": np.inf},
    "a beta that is a word": {"features": F, "beta": "much"},
    "unknown atoms": {"features": F, "atoms": "quantum"},
    "unknown scale": {"features": F, "scale": "log"},
    "unknown uncertainty": {"features": F, "probs": P, "uncertainty": "doubt"},
    "unknown score": {"features": F, "score": "best"},
    "refresh 0": {"features": F, "refresh": 0},
    "refresh a word": {"features": F, "refresh": "often"},
    "an odd width": {"features": F, "width": 7},
    "a width that no memory holds": {"features": F, "width": 2**31},
    "candidates below 1": {"features": F, "probs": P, "candidates": 0.5},
    "literal kernel atoms": {"features": F, "probs": P, "scale": "literal"},
    "mutual information of a point estimate": {
        "features": F,
        "probs": P,
        "uncertainty": "mutual-information",
    },
    "logits and probs that disagree": {"features": F, "logits": POOL.logits, "probs": P[::-1]},
    "bias that is no flag": {"features": F, "bias": "maybe"},
    "refit that is no flag": {"features": F, "refit": 1},
    "a negative seed": {"features": F, "random_state": -1},
    "a seed that is a word": {"features": F, "random_state": "lucky"},
    "iht of 0 iterations": {"features": F, "probs": P, "strategy": "sabal-iht", "iterations": 0},
    "unknown prox": {"features": F, "probs": P, "strategy": "sabal-iht", "prox": "soft"},
    "gradient atoms without features": {"probs": P, "atoms": "gradient"},
    "posterior atoms without samples": {"features": F, "probs": P, "atoms": "posterior"},
    "sabal-greedy without a prediction": {"features": F, "strategy": "sabal-greedy"},
}


@pytest.mark.parametrize("case", CASES)
def test_bad_input_is_a_sabal_error(case):
    given = dict(CASES[case])
    with pytest.raises(sabal.SabalError) as caught:
        sabal.select(given.pop("budget", 3), **given)
    error = caught.value
    assert error.expected
    assert error.got
    assert error.fix
    assert str(error) == f"expected {error.expected}; got {error.got}; {error.fix}"
    assert "\n" not in str(error)


PROBLEMS = {
    "budget too large": lambda: sabal.gradient_problem(F, P, P, 11, alpha=1, beta=1),
    "unequal rows": lambda: sabal.gradient_problem(F, P[:5], P, 3, alpha=1, beta=1),
    "unequal classes": lambda: sabal.gradient_problem(
        F, P, np.full((10, 2), 0.5), 3, alpha=1, beta=1
    ),
    "NaN": lambda: sabal.kernel_problem(nan_at(F), P, 3, alpha=1, beta=1),
    "negative alpha": lambda: sabal.curvature_problem(F, P, 3, alpha=-1, beta=1),
    "width 0": lambda: sabal.curvature_problem(F, P, 3, alpha=1, beta=1, width=0),
    "literal margin": lambda: sabal.gradient_problem(
        F, P, P, 3, alpha=1, beta=1, scale="literal", uncertainty="margin"
    ),
    "scores of another length": lambda: sabal.kernel_problem(
        F, P, 3, alpha=1, beta=1, uncertainty=np.ones(4)
    ),
    "posterior of another shape": lambda: sabal.posterior_problem(P, 3, alpha=1, beta=1),
    "negative sigma": lambda: sabal.Problem.from_atoms(F, -np.ones(10), 3, alpha=1, beta=1),
    "sigma of another length": lambda: sabal.Problem.from_atoms(F, np.ones(4), 3, alpha=1, beta=1),
    "atoms with NaN": lambda: sabal.Problem.from_atoms(nan_at(F), np.ones(10), 3, alpha=1, beta=1),
    "unknown score": lambda: sabal.Greedy(score="best"),
    "step 0": lambda: sabal.Greedy(step=0.0),
    "unknown prox": lambda: sabal.ProximalIHT(prox="soft"),
    "no iterations": lambda: sabal.ProximalIHT(iterations=0),
}


@pytest.mark.parametrize("case", PROBLEMS)
def test_problems_and_solvers_refuse_bad_input(case):
    with pytest.raises(sabal.SabalError):
        PROBLEMS[case]()


@pytest.mark.parametrize(
    ("indices", "weights"),
    [([0, 10], [1, 1]), ([0, -1], [1, 1]), ([0, 0], [1, 1]), ([0], [1, 1]), ([0.5], [1])],
)
def test_the_objective_refuses_batches_that_are_none(indices, weights):
    problem = sabal.Problem.from_atoms(F, np.ones(10), 3, alpha=1.0, beta=1.0)
    with pytest.raises(sabal.SabalError):
        problem.objective(indices, weights)


def test_a_close_name_is_suggested():
    with pytest.raises(sabal.SabalError, match="did you mean 'sabal-greedy'"):
        sabal.select(3, features=F, strategy="sabal_greedy")
    with pytest.raises(sabal.SabalError, match="did you mean 'alpha'"):
        sabal.select(3, features=F, alhpa=1.0)
    with pytest.raises(sabal.SabalError, match="did you mean 'badge'"):
        sabal.select(3, features=F, strategy="BADGE")
    with pytest.raises(sabal.SabalError, match="did you mean 'features'"):
        sabal.select(3, probs=P, feature=F)
    with pytest.raises(sabal.SabalError, match="did you mean 'features'"):
        sabal.select(3, feature=F)
    with pytest.raises(sabal.SabalError, match="did you mean 'features'"):
        sabal.select(3, feature=F, strategy="random")
    with pytest.raises(sabal.SabalError, match="leave it out"):
        sabal.select(3, probs=P, strategy="margin", alpha=1.0)


def test_a_missing_input_is_told_beside_what_was_given():
    with pytest.raises(sabal.SabalError, match=r"probs \(or logits\).*got features"):
        sabal.select(3, features=F, strategy="margin")


def test_errors_survive_a_process_boundary():
    import copy

    error = sabal.SabalError("a", "b", "c")
    again = copy.copy(error)
    assert (again.expected, again.got, again.fix) == ("a", "b", "c")


anything = st.one_of(
    st.none(),
    st.integers(-5, 5),
    st.floats(),
    st.text(max_size=5),
    st.lists(st.floats(), max_size=4),
    st.lists(st.lists(st.floats(), max_size=3), max_size=4),
    st.binary(max_size=4),
)


@given(
    budget=anything, features=anything, probs=anything, log_probs=anything, random_state=anything
)
def test_nothing_but_sabal_errors_ever_comes_out(budget, features, probs, log_probs, random_state):
    try:
        selection = sabal.select(
            budget, features=features, probs=probs, log_probs=log_probs, random_state=random_state
        )
    except sabal.SabalError:
        return
    assert len(set(selection.indices.tolist())) == budget


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sabal.select_pool(5, "pool.npz"), "pass the pool first, and then the budget"),
        (lambda: sabal.select(5, "pool.npz"), r"pass it to sabal\.select_pool"),
        (lambda: sabal.select(5, open_pool("pool.npz")), "with sabal.pools.open_pool"),
        (lambda: sabal.select(ArrayPool(features=F), 5), "pass the budget first"),
    ],
)
def test_arguments_in_the_wrong_order_are_told(call, message):
    with pytest.raises(sabal.SabalError, match=message):
        call()


def test_small_amounts_of_memory_are_told_in_kilobytes(tmp_path):
    np.savez(tmp_path / "pool.npz", features=np.zeros((2_000, 4)))
    with pytest.raises(sabal.SabalError, match="at least 96 KB for 2,000 items; got 20 KB"):
        sabal.select_pool(tmp_path / "pool.npz", 5, memory="20KB")


# Labelled features of another scale


@pytest.mark.parametrize("name", ["sabal", "kcenter", "typiclust", "bait", "max-herding"])
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_labeled_features_beyond_the_precision_of_the_pool_are_refused(name, dtype):
    rng = np.random.default_rng(0)
    features, probs = rng.normal(size=(40, 3)).astype(dtype), rng.dirichlet(np.ones(4), size=40)
    with pytest.raises(sabal.SabalError, match="within the range of `features`"):
        sabal.select(
            10, strategy=name, features=features, probs=probs,
            labeled_features=np.full((1, 3), 1e39),
        )  # fmt: skip


@pytest.mark.parametrize("name", ["sabal", "kcenter", "typiclust"])
@pytest.mark.parametrize("labeled", [np.float32(1e8), np.float64(1e200)])
def test_a_tiny_pool_beside_huge_labeled_features_is_told_apart(name, labeled):
    """In the unit of the labelled items all distances of the pool would vanish."""
    rng = np.random.default_rng(0)
    features, probs = rng.normal(size=(40, 3)), rng.dirichlet(np.ones(4), size=40)
    given = {"strategy": name, "probs": probs, "random_state": 0}
    tiny = sabal.select(
        10, features=2.0**-500 * features, labeled_features=np.full((2, 3), labeled), **given
    )
    assert tiny.indices.tolist() != list(range(10))
    far = sabal.select(10, features=features, labeled_features=np.full((2, 3), 1e20), **given)
    assert tiny.indices.tolist() == far.indices.tolist()
