"""Whatever `sabal.select` is given, a correct answer or a SabalError comes out of it."""

from __future__ import annotations

import json

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import sabal
from fuzz_arrays import DTYPES, LAYOUTS
from fuzz_oracle import ANSWERED, REFUSED, check_error, check_selection, watched
from fuzz_select import KINDS, NAMES
from makers import by_atoms, make_pool

POOL = make_pool(n=20)
F, P, L = POOL.features, POOL.probs, POOL.log_probs
EVERYTHING = POOL.kwargs()
POINT = POOL.kwargs(names=("features", "probs", "label_probs"))


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=20)
@given(rng=st.randoms(use_true_random=False))
def test_a_correct_answer_or_a_sabal_error(kind, rng):
    with watched():
        assert KINDS[kind](rng, None) in (ANSWERED, REFUSED)


@pytest.mark.parametrize("name", NAMES)
def test_the_same_numbers_in_another_form_give_the_same_answer(name):
    plain = sabal.select(6, **EVERYTHING, strategy=name, random_state=0)
    for what, layout in LAYOUTS.items():
        arrays = {key: layout(array, None) for key, array in EVERYTHING.items()}
        answer = sabal.select(6, **arrays, strategy=name, random_state=0)
        assert answer.indices.tolist() == plain.indices.tolist(), what
        np.testing.assert_allclose(answer.weights, plain.weights, atol=1e-4, err_msg=what)


@pytest.mark.parametrize("dtype", ["float16", "bool", "int8", "uint8", "int32", "uint64"])
def test_short_numbers_and_whole_ones_count_for_what_they_are(dtype):
    features = DTYPES[dtype](np.abs(F) * 3, None)
    for name in ("sabal-greedy", "badge", "kcenter"):
        answers = [
            sabal.select(6, **{**EVERYTHING, "features": each}, strategy=name, random_state=0)
            for each in (features, features.astype(np.float64))
        ]
        assert answers[0].indices.tolist() == answers[1].indices.tolist(), name


def with_entry(array, value):
    copy = np.array(array)
    copy[3, 0] = value
    return copy


REFUSALS = {
    "a tensor without numbers": {"features": torch.empty(20, 3, device="meta")},
    "labelled features of another library": {"features": F, "labeled_features": torch.tensor(F)},
    "log-probabilities that overflow": {"log_probs": L + 1e4},
    "a budget that cannot be printed": {"budget": 10**5000, "features": F},
    "a strategy that cannot be hashed": {"features": F, "strategy": []},
    "atoms that are an array": {
        "features": F,
        "strategy": "sabal-kernel",
        "atoms": np.array([1, 2]),
    },
    "refresh that is an array": {"features": F, "refresh": np.array([1, 2])},
    "badge's refresh": {**EVERYTHING, "strategy": "badge", "refresh": np.array([1, 2])},
    "an alpha beyond floats": {**EVERYTHING, "strategy": "sabal-greedy", "alpha": 10**400},
    "an alpha whose sums overflow": {**EVERYTHING, "strategy": "sabal-greedy", "alpha": 1e308},
    "more candidates than floats": {
        **EVERYTHING,
        "strategy": "cluster-margin",
        "candidates": 1e308,
    },
    "memory beyond floats": {**EVERYTHING, "strategy": "bait", "memory_gib": 1e308},
    "a width beyond memory": {
        "features": F,
        "probs": P,
        "width": 2**70,
        "strategy": "sabal-kernel",
    },
    "a seed that no file holds": {"features": F, "random_state": 2**63},
    "gradients that overflow": {**POINT, "features": F * 1e300, "strategy": "sabal-iht"},
    "one that does": {**POINT, "features": with_entry(F, 1e300), "strategy": "sabal-greedy"},
    "curvature that overflows": {"features": F * 1e300, "probs": P, **by_atoms("curvature")},
}


@pytest.mark.parametrize("case", REFUSALS)
def test_what_cannot_be_computed_is_refused(case):
    given_arrays = dict(REFUSALS[case])
    with watched(), pytest.raises(sabal.SabalError) as caught:
        sabal.select(given_arrays.pop("budget", 3), **{"random_state": 0, **given_arrays})
    check_error(caught.value)


LARGEST = np.finfo(np.float64).max
ANSWERS = {
    "an item at the end of all numbers (badge)": {"features": with_entry(F, LARGEST)},
    "subnormal features (badge)": {"features": np.round(F) * 1e-320},
    "subnormal float32 (badge)": {"features": (np.round(F) * 1e-40).astype("float32")},
    "subnormal features (typiclust)": {"features": np.round(F) * 1e-320},
    "labelled items far out (bait)": {"labeled_features": F * 1e160},
    "a float32 option (bait)": {"features": F * 1e-30, "regularisation": np.float32(0.5)},
    "an item far out (sabal-kernel)": {"features": with_entry(F, 1e39)},
    "an item further out (sabal-kernel)": {"features": with_entry(F, 1e300)},
}


@pytest.mark.parametrize("case", ANSWERS)
def test_what_is_strange_but_can_be_computed_is_answered(case):
    name = case[case.index("(") + 1 : -1]
    with watched():
        selection = sabal.select(
            5, **{**EVERYTHING, **ANSWERS[case]}, strategy=name, random_state=0
        )
    check_selection(selection, 20, 5)


def test_points_that_look_like_distances_are_none():
    square = np.array([[0.0, 1.0], [1.0, 0.0]])
    with watched():
        sabal.select(2, features=square, probs=P[:2], strategy="cluster-margin")


def test_a_single_item_without_an_atom_is_a_batch():
    log_probs = np.log([[[0.52, 0.48], [0.52, 0.48]]])
    with watched():
        sabal.select(1, log_probs=log_probs, strategy="bayesian-coreset")


@pytest.mark.parametrize("name", ["sabal-greedy", "sabal-iht"])
def test_atoms_whose_squares_are_subnormal_have_vanished(name):
    log_probs = np.array([[[0.0], [1e-160]]])
    with watched():
        selection = sabal.select(1, log_probs=log_probs, strategy=name)
    assert any("vanish" in text for text in selection.evidence["warnings"])


def test_options_in_numpys_numbers_are_plain_in_the_evidence():
    selection = sabal.select(3, **EVERYTHING, strategy="badge", refresh=np.int64(2), random_state=0)
    assert json.loads(json.dumps(selection.evidence))["options"] == {"refresh": 2}


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_ids_of_every_kind_are_saved_or_refused(ending, tmp_path):
    def save(ids):
        path = tmp_path / f"batch.{ending}"
        sabal.select(3, features=F, ids=ids, strategy="random", random_state=0).save(path)
        data = path.read_bytes()
        return data if ending != "parquet" else pq.read_table(path).column("id").to_pylist()

    save([2**63 + k for k in range(20)])
    assert save([b"n%d" % k for k in range(20)]) == save([f"n{k}" for k in range(20)])
    for ids in ([f"{k}\ud800" for k in range(20)], [b"\xff%d" % k for k in range(20)]):
        with pytest.raises(sabal.SabalError, match="UTF-8"):
            save(ids)
