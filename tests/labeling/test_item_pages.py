"""Items page by page: every filter beside a slow twin, and the answers of one person."""

from __future__ import annotations

import uuid

import numpy as np
import pytest

from labeling_helpers import answer, open_store, undo
from sabal.errors import InputError, UnknownNameError
from sabal.labeling.neighbors import similar_items
from sabal.labeling.project import Project
from sabal.labeling.store.item_pages import SHOWN, ItemFilter
from sabal.labeling.store.records import NewBatchItem, PoolItem, Submission

PEOPLE = ("ann", "bob", "cleo")
CLASSES = ("cat", "dog")


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """A store in which people answered, disagreed, undid and decided at random."""
    place = tmp_path_factory.mktemp("items")
    store = open_store(place / "s.db", overlap=4, items=40, batch=0)
    rng = np.random.default_rng(3)
    for number in range(2):
        chosen = [NewBatchItem(row) for row in range(15 * number, 15 * number + 15)]
        store.add_round(number, chosen, strategy="random")
    odd = dict.fromkeys(range(1, 30, 2), ("cat", 0.7))
    store.set_predictions(store.add_training(0, 5, 0), store.database.now_text(), odd)
    for step in range(150):
        if step in (50, 100):  # what was given before counts under the new name
            old, new = ("dog", "hound") if step == 50 else ("cat", "dog")
            store.rename_class(old, new, write=lambda classes: None)
        labels = store.classes
        who, item = str(rng.choice(PEOPLE)), f"i{rng.integers(30)}"
        act = rng.random()
        label = None if act < 0.2 else str(rng.choice(labels))
        if act > 0.9:
            undo(store, who)
        elif act > 0.83:
            store.decide(Submission(str(uuid.uuid4()), "lead", item, label, skip=label is None))
        else:
            answer(store, item, label, who)
    yield store
    store.close()


@pytest.fixture(scope="module")
def everything(store):
    """All items, their places in batches and their answers."""
    rounds = {each.item: each for number in (0, 1) for each in store.batch(number)}
    votes = {}
    for row in [*store.labels(), *store.skipped()]:
        votes.setdefault(row.id, []).append(row)
    return store.items(), rounds, votes


def twin(everything, wanted):
    """The keys of the wanted items by going through everything."""
    items, rounds, votes = everything
    found = []
    for item in items:
        own = votes.get(item.key, [])
        chosen = rounds.get(item.key)
        labels = {row.label for row in own if row.label is not None}
        decided = [row for row in own if row.decides]
        # What was a cat when it was predicted is a dog by now.
        guess = "dog" if chosen and int(item.key[1:]) % 2 else None
        states = {
            "all": True,
            "labeled": bool(labels),
            "unlabeled": not own,
            "skipped": any(row.label is None for row in own),
            "disputed": len(labels) > 1 and not decided,
            "decided": bool(decided),
            "model": bool(guess) and bool(labels - {guess}),
        }
        who = [row for row in own if wanted.annotator in (None, row.annotator)]
        named = wanted.label is None or any(row.label == wanted.label for row in who)
        if wanted.label and wanted.annotator is None:
            named = named and all(row.label == wanted.label for row in decided)
        if (
            states[wanted.shown]
            and named
            and (wanted.annotator is None or who)
            and (wanted.round is None or (chosen and chosen.round == wanted.round))
            and wanted.text.strip().lower() in f"{item.key}\n{item.content}".lower()
        ):
            found.append(item.key)
    return found


@pytest.mark.parametrize("shown", SHOWN)
def test_every_filter_finds_what_going_through_all_items_finds(store, everything, shown):
    for text in ("", "TEXT 2", "%"):
        for label in (None, "dog"):
            for annotator in (None, "ann"):
                for number in (None, 1):
                    wanted = ItemFilter(
                        text=text, label=label, annotator=annotator, round=number, shown=shown
                    )
                    expected = twin(everything, wanted)
                    found, total = store.item_page(wanted, count=100)
                    assert [item.item for item in found] == expected, wanted
                    assert total == len(expected)


def test_the_filters_find_something_each(store):
    assert all(store.item_page(ItemFilter(shown=shown))[1] for shown in SHOWN)


def test_pages_are_parts_of_the_whole(store):
    whole, total = store.item_page(ItemFilter(), count=100)
    assert total == 40
    parts = [
        item for first in range(0, 40, 7) for item in store.item_page(ItemFilter(), first, 7)[0]
    ]
    assert parts == whole
    assert store.item_page(ItemFilter(), 40, 7) == ([], 40)


def test_an_item_comes_with_its_votes_and_a_guess_once_it_is_answered(store):
    settled = {each.item: each.label for number in (0, 1) for each in store.batch(number)}
    for item in store.item_page(ItemFilter(), count=100)[0]:
        assert item.label == settled.get(item.item)
        assert item == store.review_item(item.item)
        if not item.votes:
            assert item.guess is None
    with pytest.raises(UnknownNameError):
        store.review_item("other")
    with pytest.raises(InputError):
        ItemFilter(shown="some")


def test_the_answers_of_a_person_come_latest_first_and_once(store):
    found, before = [], None
    while part := store.answers_of("ann", before, 4):
        found += part
        before = part[-1].id
    assert [each.id for each in found] == sorted((each.id for each in found), reverse=True)
    current = {
        row.id: row.label for row in [*store.labels(), *store.skipped()] if row.annotator == "ann"
    }
    assert {each.item: each.label for each in found} == current
    assert len(found) == len(current)


def test_other_columns_are_kept(tmp_path):
    data = tmp_path / "texts.csv"
    data.write_text('id,text,author,empty,"a\0b"\nx,one,Ann,,"z"\ny,two,,,\n', encoding="utf-8")
    with Project.create(tmp_path / "p", data=data, classes=CLASSES) as project:
        assert project.store.has_details()
        assert project.store.details_of("x") == {"author": "Ann", "ab": "z"}
        assert project.store.details_of("y") == {}
        assert project.store.items()[0] == PoolItem(0, "x", "text", "one")


def test_other_columns_of_a_table_and_the_nearest_items(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    from sabal.labeling.engine import Engine

    points = [[float(n), 0.0] for n in range(20)]
    table = pa.table(
        {
            "id": [f"p{n}" for n in range(20)],
            "features": points,
            "year": [2000 + n for n in range(20)],
            "raw": [b"x"] * 20,
        }
    )
    pq.write_table(table, tmp_path / "pool.parquet")
    settings = {"classes": CLASSES, "initial": 4, "check_share": 0.0}
    with Project.create(tmp_path / "p", data=tmp_path / "pool.parquet", **settings) as project:
        assert project.store.details_of("p3") == {"year": "2003"}
        with pytest.raises(InputError, match="features"):
            similar_items(project, "p10", "ann", 3)
        engine = Engine(project)
        while engine.step():
            pass
        assert set(similar_items(project, "p10", "ann", 4)) == {"p8", "p9", "p11", "p12"}
        near = similar_items(project, "p10", "ann", 1)[0]
        held = [item.item for item in project.store.next_items("bob", 4)]
        rest = similar_items(project, "p10", "ann", 100)
        assert set(rest) == {f"p{n}" for n in range(20)} - {"p10", *held}
        assert near in similar_items(project, "p10", "bob", 100), "what one holds oneself is free"
