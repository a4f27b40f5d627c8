"""The store: answers are durable, counted once, never overwritten, and can be replayed."""

from __future__ import annotations

import contextlib
import itertools
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given
from hypothesis import settings as examples
from hypothesis import strategies as st
from sqlalchemy.dialects import postgresql
from sqlalchemy.schema import CreateTable

from labeling_helpers import (
    STRANGE,
    Clock,
    answer,
    current_labels,
    open_store,
    settings,
    small_parts,
    undo,
)
from sabal.errors import FileError, InputError, UnknownNameError
from sabal.labeling.stop_advice import stop_advice
from sabal.labeling.store import Store, migrations, pool_items, schema
from sabal.labeling.store import database as databases
from sabal.labeling.store.database import Database
from sabal.labeling.store.database_errors import database_errors
from sabal.labeling.store.records import (
    AddReport,
    Assessment,
    ImportedLabel,
    NewBatchItem,
    PoolItem,
    Submission,
)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def store(database, clock):
    made = open_store(database, clock=clock)
    yield made
    made.close()


def keys(leased):
    return [each.item for each in leased]


def tables(store):
    names = ("answers", "rounds", "batch_items", "items", "migrations", "settings")
    found = [schema.metadata.tables[name] for name in names]
    with store.database.read() as connection:
        return {
            table.name: connection.execute(sa.select(table).order_by(*table.primary_key)).all()
            for table in found
        }


# Submissions


def test_an_answer_is_there_when_the_store_is_opened_again(database, store):
    given = answer(store, "i0", "dog", seconds=1.5)
    assert (given.item, given.label, given.round, given.action) == ("i0", "dog", 0, "label")
    again = Store.open(database)
    assert again.history() == [given]
    assert again.history()[0].seconds == 1.5
    assert again.settings.classes == store.settings.classes
    assert again.settings.lease_seconds == store.settings.lease_seconds
    again.close()


def test_a_submission_counts_once(store):
    sent = Submission("a", "ann", "i0", "cat", seconds=1.0)
    first = store.submit(sent)
    assert store.submit(sent) == first
    assert store.submit(replace(sent, seconds=9.0)) == first
    assert len(store.history()) == 1


@pytest.mark.parametrize(
    "other",
    [{"label": "dog"}, {"item": "i1"}, {"annotator": "bob"}, {"label": None, "skip": True}],
)
def test_a_submission_id_with_other_content_is_refused(store, other):
    sent = Submission("a", "ann", "i0", "cat")
    store.submit(sent)
    with pytest.raises(InputError, match="id of its own"):
        store.submit(replace(sent, **other))
    assert current_labels(store) == [("i0", "cat", "ann")]


@pytest.mark.parametrize(
    ("sent", "error", "said"),
    [
        (Submission("a", "ann", "nobody", "cat"), UnknownNameError, "id of an item"),
        (Submission("a", "ann", "i0", "cow"), UnknownNameError, "a class out of cat, dog"),
        (Submission("a", "ann", "i0", "cat", skip=True), InputError, "either a label or a skip"),
        (Submission("a", "ann", "i0"), InputError, "either a label or a skip"),
        (Submission("", "ann", "i0", "cat"), InputError, "submission"),
        (Submission("a", " ", "i0", "cat"), InputError, "annotator"),
        (Submission("a", "a" * 201, "i0", "cat"), InputError, "annotator"),
        (Submission("a", "ann", "i0", "cat", seconds=-1.0), InputError, "seconds"),
        (Submission("a", "ann", "i0", "cat", seconds=float("nan")), InputError, "seconds"),
    ],
)
def test_what_makes_no_sense_is_refused_and_leaves_no_trace(store, sent, error, said):
    with pytest.raises(error, match=said):
        store.submit(sent)
    assert store.history() == []


def test_an_item_that_was_not_chosen_cannot_be_answered(database):
    store = open_store(database, items=3, batch=2)
    with pytest.raises(InputError, match="not chosen"):
        answer(store, "i2")
    store.close()


def test_threads_may_submit_the_same_at_the_same_time(database):
    store = open_store(database, items=40, overlap=9)
    together = threading.Barrier(8)

    def work(person):
        together.wait()
        for k in range(40):
            # Everyone sends the same submission; only one of them is stored.
            store.submit(Submission(f"same-{k}", "ann", f"i{k}", "cat"))
            store.submit(Submission(f"{person}-{k}", f"p{person}", f"i{k}", "dog"))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    history = store.history()
    assert len(history) == len({each.submission for each in history}) == 40 * 9
    assert len(store.labels()) == 40 * 9
    store.close()


def test_stores_of_two_processes_see_each_other(database, store):
    other = Store.open(database)
    answer(store, "i0")
    answer(other, "i1", who="bob")
    assert (
        current_labels(store)
        == current_labels(other)
        == [("i0", "cat", "ann"), ("i1", "cat", "bob")]
    )
    other.close()


def test_sqlite_is_durable(tmp_path):
    store = open_store(tmp_path / "s.db")
    with store.database.read() as connection:
        pragmas = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "synchronous", "foreign_keys")
        }
    assert pragmas == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1}
    store.close()


def test_foreign_keys_hold(store):
    with pytest.raises(sa.exc.IntegrityError), store.database.write() as connection:
        connection.execute(schema.leases.insert().values(
            item_id=99, annotator="a", round=0, leased_at="", expires_at=""
        ))  # fmt: skip


# Undo


def test_undo_takes_back_the_latest_answer_and_leases_the_item_again(store):
    answer(store, "i0")
    last = answer(store, "i1", "dog")
    undone = undo(store)
    assert (undone.action, undone.item, undone.undoes) == ("undo", "i1", last.id)
    assert current_labels(store) == [("i0", "cat", "ann")]
    assert keys(store.next_items("ann", 1)) == ["i1"]
    assert "i1" not in keys(store.next_items("bob", 10))
    assert undo(store).item == "i0"
    assert undo(store) is None
    assert len(store.history()) == 4


def test_undo_counts_once(store):
    answer(store, "i0")
    answer(store, "i1")
    first = store.undo("ann", "u")
    assert store.undo("ann", "u") == first
    assert current_labels(store) == [("i0", "cat", "ann")]
    with pytest.raises(InputError, match="id of its own"):
        store.undo("bob", "u")
    with pytest.raises(InputError, match="id of its own"):
        store.submit(Submission("u", "ann", "i1", "cat"))


def test_undo_is_of_ones_own_answers(store):
    answer(store, "i0", who="ann")
    assert undo(store, who="bob") is None
    assert current_labels(store) == [("i0", "cat", "ann")]


def test_a_skip_can_be_undone_and_answered(store):
    answer(store, "i0", None)
    assert [row.id for row in store.skipped()] == ["i0"]
    assert store.skipped()[0].label is None
    undo(store)
    answer(store, "i0", "dog")
    assert store.skipped() == []
    assert current_labels(store) == [("i0", "dog", "ann")]


def test_the_later_answer_of_a_person_stands(store):
    answer(store, "i0", "cat")
    answer(store, "i0", "dog")
    assert current_labels(store) == [("i0", "dog", "ann")]
    undo(store)
    assert current_labels(store) == []


# History


def test_history_is_never_overwritten(store):
    before = tables(store)
    for act in (
        lambda: answer(store, "i0", "cat"),
        lambda: answer(store, "i0", "dog"),
        lambda: undo(store),
        lambda: answer(store, "i1", None),
        lambda: undo(store),
        lambda: store.add_training(0, 0, 3),
        lambda: store.import_labels([ImportedLabel("i2", "cat", "eve")]),
    ):
        act()
        after = tables(store)
        for name, rows in before.items():
            assert after[name][: len(rows)] == rows, f"{name} changed"
        before = after


ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(["ann", "bob"]),
        st.sampled_from(["undo", None, "cat", "dog"]),
        st.integers(0, 3),
    ),
    max_size=14,
)


def naive_current(history):
    """The rule as it is said: walk through the history and keep what stands."""
    stands = {}
    for each in history:
        if each.action == "undo":
            stands = {place: kept for place, kept in stands.items() if kept.id != each.undoes}
        else:
            stands[each.annotator, each.item] = each
    kept = sorted(stands.values(), key=lambda each: each.id)
    return [(x.item, x.label, x.annotator) for x in kept if x.action == "label"]


@given(ACTIONS)
@examples(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_history_can_be_replayed_to_any_moment(new_database, actions):
    store = open_store(new_database(), items=4, overlap=2)
    seen = {}
    for who, what, item in actions:
        done = undo(store, who) if what == "undo" else answer(store, f"i{item}", what, who)
        if done is not None:
            seen[done.id] = current_labels(store)
            assert seen[done.id] == naive_current(store.history())
    for number, then in seen.items():
        assert [(x.id, x.label, x.annotator) for x in store.labels(until=number)] == then
    store.close()


# Leases


def test_two_people_never_hold_the_same_item(store):
    ann, bob = store.next_items("ann", 4), store.next_items("bob", 4)
    assert keys(ann) == ["i0", "i1", "i2", "i3"]
    assert keys(bob) == ["i4", "i5"]
    assert [each.rank for each in ann] == [1, 2, 3, 4]
    assert ann[0].content == "text 0"


def test_own_leases_come_first_again(store):
    store.next_items("bob", 2)
    held = keys(store.next_items("ann", 2))
    answer(store, "i0", who="bob")
    undo(store, "bob")
    assert keys(store.next_items("ann", 2)) == held == ["i2", "i3"]
    assert keys(store.next_items("ann", 3)) == ["i2", "i3", "i4"]


def test_an_answered_item_is_not_given_out_again(store):
    store.next_items("ann", 2)
    answer(store, "i0")
    assert keys(store.next_items("ann", 2)) == ["i1", "i2"]
    assert "i0" not in keys(store.next_items("bob", 10))


def test_a_lease_runs_out(store, clock):
    assert len(store.next_items("ann", 6)) == 6
    assert store.next_items("bob", 6) == []
    clock.pass_(299)
    assert store.next_items("bob", 6) == []
    clock.pass_(1)
    assert len(store.next_items("bob", 4)) == 4
    assert keys(store.next_items("ann", 6)) == ["i4", "i5"]


def test_leases_of_a_clock_that_was_ahead_block_nobody(store, clock):
    """Machines that share a database may differ by a little; that is not an error."""
    clock.pass_(86_400)
    store.next_items("ann", 3)
    clock.pass_(-86_400)
    assert len(store.next_items("bob", 9)) == 6
    clock.pass_(30)
    store.next_items("bob", 9)
    clock.pass_(-30)
    assert store.next_items("ann", 9) == []


def test_asking_again_prolongs_a_lease(store, clock):
    first = store.next_items("ann", 6)
    clock.pass_(200)
    later = store.next_items("ann", 6)
    assert later[0].expires_at > first[0].expires_at
    clock.pass_(200)
    assert store.next_items("bob", 6) == []


def test_an_answer_after_the_lease_ran_out_is_taken_unless_somebody_else_has_answered(store, clock):
    store.next_items("ann", 2)
    clock.pass_(400)
    store.next_items("bob", 2)
    answer(store, "i0", "dog", "bob")
    with pytest.raises(InputError, match="still open"):
        answer(store, "i0", "cat", "ann")
    answer(store, "i1", "cat", "ann")
    answer(store, "i0", "cat", "bob")
    assert current_labels(store) == [("i1", "cat", "ann"), ("i0", "cat", "bob")]


class NaiveLeases:
    """The rule as it is said, on a whole batch in memory."""

    def __init__(self, store, clock):
        self.store, self.clock, self.until = store, clock, {}

    def next(self, who, count):
        overlap, now = self.store.settings.overlap, self.clock.now
        self.until = {place: end for place, end in self.until.items() if end > now}
        held, free = [], []
        for item in self.store.batch(0) + self.store.batch(1):
            holders = {person for person, key in self.until if key == item.item}
            if who in item.answered_by or len(item.answered_by) >= overlap:
                continue
            if who in holders:
                held.append(item.item)
            elif len(item.answered_by) + len(holders) < overlap:
                free.append(item.item)
        given = (held + free)[:count]
        self.take(who, *given)
        return given

    def take(self, who, *items):
        end = self.clock.now + timedelta(seconds=self.store.settings.lease_seconds)
        self.until |= {(who, item): end for item in items}

    def give_back(self, who, item):
        self.until.pop((who, item), None)


@given(
    st.integers(1, 3),
    st.lists(
        st.tuples(
            st.sampled_from(["ann", "bob", "eve"]),
            st.sampled_from(["next", "next", "undo", "wait", None, "cat", "dog"]),
            st.integers(0, 5),
        ),
        min_size=5,
        max_size=20,
    ),
)
@examples(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_leases_are_those_of_the_rule(new_database, overlap, actions):
    clock = Clock()
    store = open_store(new_database(), items=6, batch=4, overlap=overlap, clock=clock)
    store.add_round(1, [NewBatchItem(5), NewBatchItem(4)], strategy="sabal")
    rule = NaiveLeases(store, clock)
    for who, what, number in actions:
        if what == "next":
            wanted = rule.next(who, number + 1)
            assert keys(store.next_items(who, number + 1)) == wanted
        elif what == "wait":
            clock.pass_(60 * number)
        elif what == "undo":
            if (undone := undo(store, who)) is not None:
                rule.take(who, undone.item)
        else:
            with contextlib.suppress(InputError):  # others have answered it
                answer(store, f"i{number}", what, who)
                rule.give_back(who, f"i{number}")
    store.close()


def test_threads_that_ask_at_the_same_time_get_different_items(database):
    store = open_store(database, items=80)
    together = threading.Barrier(8)

    def ask(person):
        together.wait()
        return keys(store.next_items(f"p{person}", 10))

    with ThreadPoolExecutor(8) as pool:
        given = list(pool.map(ask, range(8)))
    everything = [item for each in given for item in each]
    assert len(everything) == len(set(everything)) == 80
    store.close()


def test_batches_are_given_out_in_order(database):
    store = open_store(database, items=6, batch=2)
    store.add_round(1, [NewBatchItem(5), NewBatchItem(3)], strategy="sabal")
    assert keys(store.next_items("ann", 9)) == ["i0", "i1", "i5", "i3"]
    store.close()


# Overlap


def test_an_item_goes_to_as_many_people_as_overlap_says(database):
    store = open_store(database, items=2, overlap=2)
    assert keys(store.next_items("ann", 9)) == keys(store.next_items("bob", 9)) == ["i0", "i1"]
    assert store.next_items("eve", 9) == []
    answer(store, "i0", "cat", "ann")
    answer(store, "i0", "dog", "bob")
    assert store.status().remaining == 1
    assert store.next_items("eve", 9) == []
    assert keys(store.next_items("ann", 9)) == ["i1"]
    store.close()


def test_the_majority_decides_and_the_earliest_breaks_ties(database):
    store = open_store(database, items=2, overlap=3, classes=("a", "b", "c"))
    for who, label in (("ann", "a"), ("bob", "b"), ("eve", "b")):
        answer(store, "i0", label, who)
    for who, label in (("ann", "c"), ("bob", "a")):
        answer(store, "i1", label, who)
    assert [each.label for each in store.training_labels()] == ["b", "c"]
    assert [each.label for each in store.batch()] == ["b", "c"]
    assert store.batch()[0].answered_by == ("ann", "bob", "eve")
    store.close()


def test_agreement_of_people(database):
    store = open_store(database, items=4, overlap=2)
    assert store.agreement() is None
    for k, (one, two) in enumerate(
        [("cat", "cat"), ("dog", "dog"), ("cat", "dog"), ("dog", "dog")]
    ):
        answer(store, f"i{k}", one, "ann")
        answer(store, f"i{k}", two, "bob")
    found = store.agreement()
    assert (found.share, found.pairs) == (0.75, 4)
    # By chance: ann has 2 of 4 cats, bob 1 of 4.
    by_chance = 0.5 * 0.25 + 0.5 * 0.75
    assert found.kappa == pytest.approx((0.75 - by_chance) / (1 - by_chance))
    store.close()


def test_agreement_on_a_single_class_has_no_kappa(database):
    store = open_store(database, items=1, overlap=2)
    answer(store, "i0", "cat", "ann")
    answer(store, "i0", "cat", "bob")
    assert (store.agreement().share, store.agreement().kappa) == (1.0, None)
    store.close()


# Reading


def test_status_counts_items(store):
    answer(store, "i0")
    answer(store, "i1", None)
    found = store.status()
    assert (found.round, found.labeled, found.skipped, found.remaining) == (0, 1, 1, 4)
    assert (found.items, found.budget, found.classes) == (6, 500, ("cat", "dog"))
    assert (found.training, found.finished, found.metrics) == ("idle", False, {})
    for k in range(2, 6):
        answer(store, f"i{k}")
    assert store.status().finished


def test_status_before_the_first_batch(database):
    store = open_store(database, batch=0)
    found = store.status()
    assert (found.round, found.remaining, found.finished) == (None, 0, False)
    assert store.batch() == store.next_items("ann", 3) == store.labels() == store.curve() == []
    assert stop_advice(store).verdict == "too-early"
    store.close()


def test_the_state_of_the_worker_is_told_and_kept(store):
    for state in ("features", "features", "training", "failed"):
        store.set_state(state, 0.5, "no disk" if state == "failed" else None)
    found = store.status()
    assert (found.training, found.progress, found.error) == ("failed", 0.5, "no disk")
    with store.database.read() as connection:
        assert len(connection.execute(sa.select(schema.states)).all()) == 3
    with pytest.raises(InputError, match="a state out of"):
        store.set_state("asleep")


def test_labels_carry_round_weight_role_and_time(database, clock):
    store = open_store(database, batch=0, clock=clock)
    store.add_round(
        0,
        [
            NewBatchItem(3, weight=2.5, score=0.5, why={"represents": 7}),
            NewBatchItem(1, role="check"),
        ],
        strategy="sabal",
        seed=4_000_000_000,
        evidence={"bad": float("nan")},
        seconds=0.1,
    )
    answer(store, "i3", "dog")
    row = store.labels()[0]
    assert (row.id, row.round, row.weight, row.role) == ("i3", 0, 2.5, "train")
    assert row.time == "2026-01-01T00:00:00.000000+00:00"
    batch = store.batch(0)
    assert [(x.item, x.rank, x.label, x.role) for x in batch] == [
        ("i3", 1, "dog", "train"),
        ("i1", 2, None, "check"),
    ]
    assert store.reasons("i3") == batch[0].why == {"represents": 7}
    assert store.reasons("i0") == {}
    assert (store.rounds()[0].evidence, store.rounds()[0].seed) == ({"bad": None}, 4_000_000_000)
    store.close()


def test_a_round_that_is_there_is_not_added_again(store):
    assert not store.add_round(0, [], strategy="random")
    assert not store.add_round(1, [NewBatchItem(0)], strategy="random")
    assert [each.number for each in store.rounds()] == [0]


def test_class_balance_has_every_class(store):
    answer(store, "i0", "dog")
    answer(store, "i1", "dog")
    assert store.class_balance() == {"cat": 0, "dog": 2}


def test_pace_leaves_out_breaks(store, clock):
    for k, seconds in enumerate((2.0, 4.0, 900.0)):
        answer(store, f"i{k}", seconds=seconds)
    for k in range(3):
        clock.pass_(10 if k else 5000)
        answer(store, f"i{k + 3}", who="bob")
    found = store.pace()
    assert found.by_annotator["ann"].median_seconds == 3.0
    assert found.by_annotator["ann"].labels_per_hour == 1200.0
    assert found.by_annotator["bob"].labels == 3
    assert found.by_annotator["bob"].median_seconds == 10.0
    assert found.median_seconds == 7.0


def test_the_labels_of_a_person_are_those_that_are_current(store):
    answer(store, "i0", "cat")
    answer(store, "i0", "dog")
    answer(store, "i1", None)
    answer(store, "i2", "cat")
    undo(store)
    assert store.pace().by_annotator["ann"].labels == 1


def measured(store, accuracies, checks):
    for k, accuracy in enumerate(accuracies):
        if k:
            store.add_round(k, [NewBatchItem(k)], strategy="sabal")
        number = store.add_training(k, 20 * (k + 1), 0)
        store.finish_training(
            number, seconds=0.1, model="m", metrics={"accuracy": accuracy, "checks": checks}
        )


@pytest.mark.parametrize(
    ("right", "items", "checks", "wrong", "verdict"),
    [
        ([50, 60, 70], 100, 100, 30, "too-early"),
        ([], 0, 0, 0, "too-early"),
        ([0, 0, 0, 0], 0, 0, 0, "too-early"),
        ([150, 180, 210, 240], 300, 30, 6, "helping"),
        ([240, 270, 276, 278, 279, 280], 300, 40, 0, "not-helping"),
        ([240, 270, 276, 278, 279, 280], 300, 10, 0, "unclear"),
        ([200, 240, 250, 249, 251, 250], 300, 30, 4, "unclear"),
    ],
)
def test_advice_is_a_projection_of_what_was_measured(
    database, right, items, checks, wrong, verdict
):
    store = open_store(database, items=900, batch=1)
    number = store.add_training(0, 20, 0)
    labels = tuple(40 * (k + 1) for k in range(len(right))) or (0,)
    found = Assessment(labels, tuple(right), items, wrong, checks)
    for _ in range(2):
        store.add_assessment(number, found)
    known = store.latest_assessment()
    assert known[0] == number
    assert tuple(known[1].right) == tuple(right)
    advice = stop_advice(store)
    assert advice.verdict == verdict
    assert advice.text.endswith(".")
    if verdict != "too-early":
        assert advice.text.startswith("200 more labels would bring about +")
        assert f"{checks} drawn at random" in advice.text
    store.close()


def test_the_curve_has_wilson_intervals(database):
    store = open_store(database, batch=1)
    measured(store, [0.9], 10)
    (point,) = store.curve()
    assert (point.round, point.labels, point.accuracy, point.checks) == (0, 20, 0.9, 10)
    # The textbook's 9 of 10.
    assert (point.low, point.high) == pytest.approx((0.5958, 0.9821), abs=1e-4)
    store.close()


def test_a_training_ends_once(store):
    number = store.add_training(0, 3, 7)
    assert store.trainings()[0].finished_at is None
    store.finish_training(number, seconds=0.5, error="no memory")
    found = store.trainings()[0]
    assert (found.error, found.labels, found.last_answer) == ("no memory", 3, 7)
    with pytest.raises(InputError, match="under way"):
        store.finish_training(number, seconds=0.5)


# Imports


def test_importing_twice_adds_nothing(store):
    rows = [
        ImportedLabel("i0", "cat", "eve", 0, "2026-01-31T09:30:00Z"),
        ImportedLabel("i1", None, "eve", skip=True),
        ImportedLabel("gone", "cat", "eve"),
        ImportedLabel("gone", "dog", "eve"),
    ]
    first, again = store.import_labels(rows), store.import_labels(rows)
    assert (first.labels, first.already, first.skips, first.unknown) == (1, 0, 1, ["gone"])
    assert (first.waiting, again.waiting) == (0, 0)
    assert (again.labels, again.already, again.skips, again.unknown) == (0, 2, 0, ["gone"])
    assert store.labels()[0].time == "2026-01-31T09:30:00.000000+00:00"
    assert store.status().skipped == 1


def test_a_label_changed_here_is_not_taken_back_by_the_same_file(store):
    rows = [ImportedLabel("i0", "cat", "eve", time="2026-01-31T09:30:00Z")]
    store.import_labels(rows)
    answer(store, "i0", "dog", "eve")
    assert store.import_labels(rows).labels == 0
    assert current_labels(store) == [("i0", "dog", "eve")]


def test_an_export_come_home_adds_nothing(store):
    answer(store, "i0", "dog")
    row = store.labels()[0]
    home = ImportedLabel(row.id, row.label, row.annotator, row.round, row.time)
    assert store.import_labels([home]).already == 1
    assert len(store.history()) == 1


def test_labels_move_to_another_project_as_they_are(new_database, store, clock):
    clock.pass_(0.123456)
    store.add_items([PoolItem(6, "i6", "text", "x")])
    store.add_round(1, [NewBatchItem(6, weight=0.1 + 0.2, role="check")], strategy="sabal")
    answer(store, "i6", "dog")
    answer(store, "i0", "cat")
    rows = store.labels()
    other = open_store(new_database(), items=7, batch=0)
    report = other.import_labels(
        ImportedLabel(x.id, x.label, x.annotator, x.round, x.time, False, x.weight, x.role)
        for x in rows
    )
    assert report.labels == 2
    assert other.labels() == rows
    assert [(each.number, each.strategy) for each in other.rounds()] == [(-1, "import")]
    assert other.status().labeled == 2
    # A second file joins the first, and rounds of our own come after.
    other.import_labels([ImportedLabel("i3", "cat", "eve")])
    other.add_round(0, [NewBatchItem(4)], strategy="typiclust")
    assert [x.item for x in other.batch(-1)] == ["i6", "i0", "i3"]
    assert [x.item for x in other.batch()] == ["i4"]
    other.close()


@pytest.mark.parametrize(
    "bad",
    [
        ImportedLabel("i1", "cow", "eve"),
        ImportedLabel("i1", "cat", ""),
        ImportedLabel("i1", None, "eve"),
        ImportedLabel("i1", "cat", "eve", time="yesterday"),
        ImportedLabel("i1", "cat", "eve", role="judge"),
    ],
)
def test_an_import_is_whole_or_absent(store, bad):
    with pytest.raises((InputError, UnknownNameError)):
        store.import_labels([ImportedLabel("i0", "cat", "eve"), bad])
    assert store.history() == []


# Texts


def test_strange_texts_survive(database):
    store = Store.open(database, settings(classes=STRANGE))
    store.add_items(PoolItem(row, text, "text", text * 3) for row, text in enumerate(STRANGE))
    store.add_round(0, [NewBatchItem(row) for row in range(len(STRANGE))], strategy="random")
    for text in STRANGE:
        answer(store, text, text, who=text)
    store.close()
    again = Store.open(database)
    assert [(x.id, x.label, x.annotator) for x in again.labels()] == [(x, x, x) for x in STRANGE]
    assert [x.content for x in again.items()] == [text * 3 for text in STRANGE]
    assert again.settings.classes == STRANGE
    assert again.class_balance() == dict.fromkeys(STRANGE, 1)
    again.close()


def test_two_items_of_one_key_are_refused(store):
    with pytest.raises(InputError, match="key of its own"):
        store.add_items([PoolItem(6, "i0", "text", "")])
    assert len(store.items()) == 6
    with pytest.raises(UnknownNameError):
        store.item("i6")


# The database


def test_migrations_are_recorded_and_applied_once(new_database, monkeypatch):
    path = new_database(empty=True)
    open_store(path).close()
    applied = []
    step = migrations.Migration(99, "a column more", lambda connection: applied.append(1))
    monkeypatch.setattr(migrations, "MIGRATIONS", (*migrations.MIGRATIONS, step))
    for _ in range(2):
        store = Store.open(path)
        rows = tables(store)["migrations"]
        store.close()
    assert applied == [1]
    rows = [(number, name) for number, name, _ in rows]
    assert rows[0] == (1, "first tables")
    assert rows[-1] == (99, "a column more")
    monkeypatch.undo()
    with pytest.raises(FileError, match="newer sabal"):
        Store.open(path)


def test_a_migration_that_fails_leaves_nothing(new_database, monkeypatch):
    path = new_database(empty=True)

    def fails(connection):
        connection.exec_driver_sql("CREATE TABLE half (x INTEGER)")
        raise RuntimeError("stop")

    step = migrations.Migration(99, "bad", fails)
    monkeypatch.setattr(migrations, "MIGRATIONS", (*migrations.MIGRATIONS, step))
    with pytest.raises(RuntimeError):
        Store.open(path, settings())
    with contextlib.closing(Database(path)) as database, database.read() as connection:
        assert sa.inspect(connection).get_table_names() == []


def test_settings_that_change_are_added_to_the_old_ones(database):
    for budget in (500, 500, 600):
        Store.open(database, settings(budget=budget)).close()
    store = Store.open(database)
    assert store.settings.budget == 600
    with store.database.read() as connection:
        contents = connection.scalars(sa.select(schema.settings.c.content)).all()
    assert [each["budget"] for each in contents] == [500, 600]
    store.close()


def test_what_is_no_database_is_said(tmp_path):
    with pytest.raises(FileError, match="no file"):
        Store.open(tmp_path / "none.db")
    (tmp_path / "bad.db").write_text("this is a text, and a rather long one at that" * 100)
    with pytest.raises(FileError, match="usable database"):
        Store.open(tmp_path / "bad.db", settings())
    (tmp_path / "empty.db").touch()
    with pytest.raises(FileError, match="sabal init"):
        Store.open(tmp_path / "empty.db")


def test_a_url_without_its_driver_is_said_without_its_password():
    with pytest.raises(FileError, match="driver") as caught:
        Database("nosuchdatabase://user:secret@host/name")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("table", schema.metadata.sorted_tables, ids=lambda table: table.name)
def test_the_tables_can_be_made_in_postgresql(table):
    assert "CREATE TABLE" in str(CreateTable(table).compile(dialect=postgresql.dialect()))


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("08006", "cannot be reached"),
        ("53100", "disk is full"),
        ("53300", "without room"),
        ("57014", "too long"),
        ("57P01", "starting or stopping"),
        ("25P03", "too long"),
        ("25006", "only be read"),
        ("55P03", "keeps locked"),
    ],
)
def test_the_longest_code_of_postgresql_that_fits_gives_the_words(code, words):
    cause = Exception("host=secret")
    cause.sqlstate = code
    with pytest.raises(FileError, match=words) as caught, database_errors():
        raise sa.exc.OperationalError("SELECT 1", {}, cause)
    assert "secret" not in str(caught.value)


def test_an_imported_row_has_the_same_id_in_every_version(store):
    """Or a file that an earlier version imported would be imported once more."""
    row = ImportedLabel("i0", "cat", "eve", 0, "2026-01-31T09:30:00Z")
    store.import_labels([row, replace(row, id="i1", decides=True)])
    a = schema.answers.c
    with store.database.read() as connection:
        found = connection.scalars(sa.select(a.submission).order_by(a.item_id)).all()
    assert found == ["3ef18e05-ebaa-54ca-920c-a46d0b8f941a", "cdea7f67-1fae-5d23-8951-a6947a5614e9"]


def test_as_many_items_as_were_added_are_counted(store, monkeypatch):
    monkeypatch.setattr(pool_items, "ITEMS_PER_INSERT", 2)
    assert store.add_items([]) == 0
    assert store.add_items(PoolItem(100 + k, f"new{k}", "text", "") for k in range(5)) == 5
    with store.database.read() as connection:
        assert connection.scalar(sa.select(sa.func.count()).select_from(schema.items)) == 6 + 5


# Waiting for each other


def test_parts_are_as_large_as_others_can_wait_for(store):
    database, sizes = store.database, []
    for part in database.parts(range(1_000)):
        sizes.append(len(part))
        # A machine that is fast for two transactions, then busy, and then as fast as expected.
        database._wrote_for = {1: 0.0, 2: 0.0, 3: 0.5}.get(len(sizes), databases.PART_SECONDS)
    assert sizes == [100, 200, 400, 100, 100, 100]


def test_sqlite_is_asked_for_its_lock_again_and_again(tmp_path, monkeypatch):
    store, waited = open_store(tmp_path / "sabal.db"), []
    holder = sqlite3.connect(tmp_path / "sabal.db", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")

    def sleep(seconds):
        waited.append(seconds)
        if len(waited) == 30:
            holder.execute("COMMIT")

    monkeypatch.setattr(databases.time, "sleep", sleep)
    answer(store, "i0", "cat")
    assert waited == [databases.POLL_SECONDS] * 30
    holder.execute("BEGIN IMMEDIATE")
    monkeypatch.setattr(databases, "BUSY_SECONDS", 0)
    with pytest.raises(FileError, match="keeps locked"):
        answer(store, "i1", "cat")
    holder.close()
    store.close()


def test_people_label_while_an_import_is_under_way(database, store, monkeypatch):
    small_parts(monkeypatch, 2)
    other, numbers = Store.open(database), itertools.count()
    rows = [ImportedLabel(f"i{row}", "dog", "eve") for row in (1, 2, 3, 4, 5)]

    def label_meanwhile(self):
        answer(other, "i0", "cat", f"p{next(numbers)}")
        undo(other, f"p{next(numbers) - 1}")

    monkeypatch.setattr(Database, "let_others_write", label_meanwhile)
    assert store.import_labels(rows).labels == 5
    assert [each.annotator for each in store.history() if each.action == "undo"] == [
        "p0", "p2", "p4",
    ]  # fmt: skip
    other.close()


def test_an_interrupted_import_adds_the_rest_when_it_is_repeated(store, monkeypatch):
    small_parts(monkeypatch, 2)
    rows = [ImportedLabel(f"i{row % 6}", "dog", f"eve{row // 6}") for row in range(12)]

    def stop(self):
        raise KeyboardInterrupt

    monkeypatch.setattr(Database, "let_others_write", stop)
    with pytest.raises(KeyboardInterrupt):
        store.import_labels(rows)
    assert len(store.labels()) == 2
    monkeypatch.undo()
    report = store.import_labels(rows)
    assert (report.labels, report.already) == (10, 2)
    assert current_labels(store) == [(row.id, "dog", row.annotator) for row in rows]


def new_items(count):
    return [PoolItem(row, f"n{row}", "text", f"new {row}", {"n": f"{row}"}) for row in range(count)]


def check_added(store, before, count):
    """Check that the first `count` new items are in the pool, each whole and once."""
    found = store.items()
    assert [item.id for item in found] == list(range(before + count))
    assert [item.key for item in found[before:]] == [f"n{row}" for row in range(count)]
    assert all(store.details_of(item.key) == {"n": item.key[1:]} for item in found[before:])
    sources = store.added_sources()
    assert [row for source in sources for row in source.rows] == list(range(count))
    starts = itertools.accumulate((len(source.rows) for source in sources), initial=before)
    assert [source.first_item for source in sources] == list(starts)[:-1]


def test_people_label_while_items_are_added(database, store, monkeypatch):
    small_parts(monkeypatch, 2)
    other, before, seen = Store.open(database), len(store.items()), []

    def label_meanwhile(self):
        answer(other, f"i{len(seen)}", "cat")
        seen.append(len(other.items()) - before)
        check_added(other, before, seen[-1])

    monkeypatch.setattr(Database, "let_others_write", label_meanwhile)
    assert store.add_source("more.csv", new_items(5)) == AddReport(5, 0)
    assert seen == [2, 4, 5]
    assert [each.item for each in store.history()] == ["i0", "i1", "i2"]
    other.close()


def test_an_interrupted_addition_adds_the_rest_when_it_is_repeated(store, monkeypatch):
    small_parts(monkeypatch, 2)
    before = len(store.items())

    def stop(self):
        raise KeyboardInterrupt

    monkeypatch.setattr(Database, "let_others_write", stop)
    with pytest.raises(KeyboardInterrupt):
        store.add_source("more.csv", new_items(5))
    check_added(store, before, 2)
    monkeypatch.undo()
    assert store.add_source("more.csv", new_items(5)) == AddReport(3, 2)
    check_added(store, before, 5)


def test_two_processes_add_the_same_items_once(database, store, monkeypatch):
    small_parts(monkeypatch, 2)
    other, before, reports = Store.open(database), len(store.items()), []

    def add_meanwhile(self):
        monkeypatch.setattr(Database, "let_others_write", lambda self: None)
        reports.append(other.add_source("more.csv", new_items(5)))

    monkeypatch.setattr(Database, "let_others_write", add_meanwhile)
    reports.append(store.add_source("more.csv", new_items(5)))
    assert reports == [AddReport(3, 2), AddReport(2, 3)]
    check_added(store, before, 5)
    other.close()


def steps_of(store, act):
    """Return how many steps of SQLite's machine an action takes, in hundreds."""
    counted = []
    with store.database.read() as connection:
        driver = connection.connection.dbapi_connection
        driver.set_progress_handler(lambda: counted.append(1), 100)
    act()
    driver.set_progress_handler(None, 0)
    return len(counted)


@pytest.mark.parametrize(
    "act",
    [
        lambda store: answer(store, "i3005"),
        lambda store: undo(store, "bob"),
        lambda store: store.decide(Submission("d", "lead", "i3001", "dog")),
        lambda store: store.import_labels([ImportedLabel("i3002", "dog", "eve")]),
    ],
)
def test_the_time_of_a_write_does_not_grow_with_the_history(tmp_path, act):
    taken = []
    for answered in (10, 3000):
        store = open_store(tmp_path / f"{answered}.db", items=3010, overlap=2)
        store.import_labels(ImportedLabel(f"i{row}", "cat", "ann") for row in range(answered))
        answer(store, "i3005", who="bob")
        taken.append(steps_of(store, lambda: act(store)))  # noqa: B023
        store.close()
    assert taken[1] <= taken[0] + 10


def test_the_next_items_are_found_past_the_imported_ones(tmp_path):
    taken = []
    for imported in (10, 3000):
        store = open_store(tmp_path / f"{imported}.db", items=3010, batch=0)
        store.add_round(0, [NewBatchItem(row) for row in range(3000, 3010)], strategy="random")
        store.import_labels(ImportedLabel(f"i{row}", "cat", "ann") for row in range(imported))
        taken.append(steps_of(store, lambda: store.next_items("bob", 5)))  # noqa: B023
        assert keys(store.next_items("bob", 5)) == [f"i{row}" for row in range(3000, 3005)]
        store.close()
    assert taken[1] <= taken[0] + 10
