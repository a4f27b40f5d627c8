"""Labels out and in again: nothing is lost, nothing is added twice, and no file is trusted."""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
import tempfile
import xml.etree.ElementTree as ET
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sabal.errors import FileError, SabalError, UnknownNameError
from sabal.labeling.exchange.answer_rows import BATCH_COLUMNS, COLUMNS, FileRow, answer_in
from sabal.labeling.exchange.exporting import WRITERS, export_bytes, export_file
from sabal.labeling.exchange.formats import FORMATS, format_of, write_csv
from sabal.labeling.exchange.importing import READERS, import_file
from sabal.labeling.exchange.label_studio import label_config, write_tasks
from sabal.labeling.settings import Settings
from sabal.labeling.store import Store
from sabal.labeling.store.records import ImportedLabel, NewBatchItem, PoolItem, Submission

NASTY = [
    "=1+1", "'=1+1", "''=", "+1", "-1", "@SUM(A1)", "\tx", "\rx", "'", '"', 'say "hi", then',
    "two\nlines", "two\r\nlines", "\u2028", "\ufeffmark", "🦜", "Zażółć", "<b>bold</b>", "a,b;c",
    "&amp;", " blanks ", "\x00", "日本語", "[]", "NaN", "None", "null", "1e3", "007",
]  # fmt: skip
ENDINGS = {"csv": "csv", "jsonl": "jsonl", "parquet": "parquet", "label-studio": "json"}
TABLES = ("csv", "jsonl", "parquet")

TEXTS = st.one_of(
    st.sampled_from(NASTY), st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
)
NAMES = TEXTS.filter(lambda text: text.strip() and len(text) <= 100)
TIMES = st.datetimes(
    min_value=datetime(2000, 1, 1), max_value=datetime(2100, 1, 1), timezones=st.just(UTC)
).map(lambda moment: moment.isoformat(timespec="microseconds"))


@st.composite
def exported_rows(draw):
    """Rows as an export has them, each of another item."""
    rows = []
    for item in draw(st.lists(TEXTS, unique=True, max_size=6)):
        skipped = draw(st.booleans())
        rows.append(
            {
                "id": item,
                "label": None if skipped else draw(TEXTS),
                "annotator": draw(NAMES),
                "round": draw(st.integers(-1, 1000)),
                "weight": draw(st.floats(0, 1e6)),
                "time": draw(TIMES),
                "action": "skip" if skipped else "label",
                "role": draw(st.sampled_from(["train", "check"])),
                "rank": 1,
                "kind": draw(st.sampled_from(["text", "image"])),
                "content": draw(TEXTS),
            }
        )
    return rows


def written(rows, format, columns=COLUMNS):
    return write_tasks(rows) if format == "label-studio" else WRITERS[format](rows, columns)


def said(row):
    return ImportedLabel(
        id=row["id"],
        label=row["label"],
        annotator=row["annotator"],
        round=row["round"],
        time=row["time"],
        skip=row["action"] == "skip",
        weight=row["weight"],
        role=row["role"],
    )


@pytest.mark.parametrize("format", FORMATS)
@given(rows=exported_rows())
def test_whatever_is_in_a_row_survives_a_file(format, rows):
    found = READERS[format](written(rows, format), "file")
    assert [answer_in(each) for each in found] == [said(row) for row in rows]


@pytest.mark.parametrize("format", TABLES)
@given(contents=st.lists(TEXTS, max_size=5))
@example(contents=["long " * 100_000])
def test_texts_to_be_labelled_survive_a_file(format, contents):
    rows = [
        dict.fromkeys(BATCH_COLUMNS) | {"id": str(k), "content": text}
        for k, text in enumerate(contents)
    ]
    found = READERS[format](written(rows, format, BATCH_COLUMNS), "file")
    assert [each.row["content"] for each in found] == contents
    assert [answer_in(each) for each in found] == [None] * len(contents)


@given(rows=exported_rows())
def test_no_cell_of_a_csv_looks_like_a_formula(rows):
    cells = csv.reader(io.StringIO(written(rows, "csv").decode(), newline=""))
    next(cells)
    for row in cells:
        named = dict(zip(COLUMNS, row, strict=True))
        for name in ("id", "label", "annotator"):
            assert not named[name].startswith(("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d"))
            # Where semicolons separate cells, each part is one.
            assert not re.search(r";[=+\-@](?!\))", named[name])


@pytest.mark.parametrize(
    ("text", "cell"),
    [("=1", "'=1"), ("'=1", "''=1"), ("a;=1", "a;'=1"), ("a;'@x;-2", "a;''@x;'-2"),
     ("ok ;-)", "ok ;-)"), ("\n=1", "'\n=1"), ("\uff1d1", "'\uff1d1"), ("a=1, -2", "a=1, -2"),
     ("'quoted'", "'quoted'")],
)  # fmt: skip
def test_formulas_get_an_apostrophe_wherever_a_cell_may_begin(text, cell):
    data = write_csv([{"id": text, "label": "x"}], ("id", "label"))
    assert next(csv.DictReader(io.StringIO(data.decode(), newline="")))["id"] == cell
    assert READERS["csv"](data, "file")[0].row["id"] == text


def test_names_of_columns_are_no_formulas_either():
    assert write_csv([], ("p: a;=1",)) == b"p: a;'=1\r\n"


def assert_rows_or_an_error(data, format):
    try:
        for found in READERS[format](data, "file"):
            answer_in(found)
    except SabalError as error:
        assert "file" in str(error)  # noqa: PT017  (no error is right, too)


@pytest.mark.parametrize("format", FORMATS)
@given(data=st.binary(max_size=200))
def test_any_bytes_are_rows_or_an_error_that_says_so(format, data):
    assert_rows_or_an_error(data, format)


@pytest.mark.parametrize("format", FORMATS)
@given(rows=exported_rows(), at=st.floats(0, 1), junk=st.binary(max_size=4))
def test_a_damaged_export_is_rows_or_an_error_that_says_so(format, rows, at, junk):
    whole = written(rows, format)
    cut = int(at * len(whole))
    assert_rows_or_an_error(whole[:cut] + junk + whole[cut + 2 :], format)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda children: st.lists(children, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            ["id", "label", "data", "annotations", "result", "value", "choices", "sabal", "type",
             "sabal_id", "was_cancelled", "completed_by", "time", "round", "weight"]
        ),
        children,
        max_size=4,
    ),
    max_leaves=12,
)  # fmt: skip


@pytest.mark.parametrize("format", ["jsonl", "label-studio"])
@given(value=JSON_VALUES)
def test_any_json_is_rows_or_an_error_that_says_so(format, value):
    data = json.dumps(value if format == "jsonl" else [value]).encode()
    assert_rows_or_an_error(data, format)


# With a store.


def clock():
    """A clock that goes on by a second and a bit whenever it is read."""
    ticks = itertools.count()
    start = datetime(2026, 1, 31, 12, tzinfo=UTC)
    return lambda: start + timedelta(seconds=1.000001 * next(ticks))


def new_store(folder, keys, classes, kind="text", **settings):
    made = Settings(name="test", classes=tuple(classes), kind=kind, data="data", **settings)
    store = Store.open(Path(folder) / "sabal.db", made, clock=clock())
    items = [PoolItem(k, key, kind, f"{key} <i>shown</i>") for k, key in enumerate(keys)]
    store.add_items(items)
    return store


def labelled_store(folder, keys, classes, annotators=("ann",), **settings):
    """Half of the items in two batches; labels, skips, second thoughts and an undo."""
    store = new_store(folder, keys, classes, **settings)
    half = range(len(keys) // 2)
    roles = itertools.cycle(["train", "train", "check"])
    chosen = [NewBatchItem(k, weight=0.1 + k / 3, score=1.0, role=next(roles)) for k in half]
    store.add_round(0, chosen[:3], strategy="typiclust", seed=1)
    store.add_round(1, chosen[3:], strategy="sabal", seed=2)
    names, ids = itertools.cycle(classes), (f"submission {k}" for k in itertools.count())
    for annotator in annotators:
        for k in half:
            skip = k % 4 == 3
            label = None if skip else next(names)
            store.submit(Submission(next(ids), annotator, keys[k], label, skip))
        store.submit(Submission(next(ids), annotator, keys[0], classes[-1]))
        store.undo(annotator, next(ids))
    return store


KEYS = NASTY[:24]
CLASSES = ["=cat", "dög 🦜", '<b>"x"</b>', "a,b", "two\nlines"]


@pytest.mark.parametrize("format", FORMATS)
def test_importing_an_export_gives_the_same_table_byte_for_byte(format, tmp_path):
    (tmp_path / "there").mkdir()
    here = labelled_store(tmp_path, KEYS, CLASSES, ("ann", "=bob"), overlap=2)
    there = new_store(tmp_path / "there", KEYS, CLASSES, overlap=2)
    file = export_file(here, tmp_path / f"labels.{ENDINGS[format]}", format)
    imported = import_file(there, file)
    assert (imported.labels, imported.skips) == (len(here.labels()), len(here.skipped()))
    assert imported.unknown == []
    assert imported.already == 0
    for table in TABLES:
        assert export_bytes(there, table) == export_bytes(here, table)
    again = import_file(there, file)
    assert (again.labels, again.skips) == (0, 0)
    assert again.already == imported.labels + imported.skips
    assert export_bytes(there, "csv") == export_bytes(here, "csv")


@settings(max_examples=8)
@given(
    keys=st.lists(TEXTS, unique=True, min_size=4, max_size=8),
    classes=st.lists(NAMES, unique=True, min_size=2, max_size=4),
    annotators=st.lists(NAMES, unique=True, min_size=1, max_size=2),
)
def test_whatever_ids_classes_and_people_are_called(keys, classes, annotators):
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        here = labelled_store(one, keys, classes, annotators, overlap=2)
        for format in FORMATS:
            (Path(other) / format).mkdir()
            there = new_store(Path(other) / format, keys, classes, overlap=2)
            import_file(there, export_file(here, Path(one) / "labels", format), format)
            assert export_bytes(there, "jsonl") == export_bytes(here, "jsonl")
            there.close()
        here.close()


@pytest.mark.parametrize("format", FORMATS)
def test_an_export_that_comes_home_adds_nothing(format, tmp_path):
    store = labelled_store(tmp_path, KEYS, CLASSES)
    before = store.history()
    file = export_file(store, tmp_path / f"labels.{ENDINGS[format]}", format)
    imported = import_file(store, file)
    assert (imported.labels, imported.skips) == (0, 0)
    assert store.history() == before


def test_the_columns_of_an_export(tmp_path):
    store = labelled_store(tmp_path, KEYS, CLASSES)
    lines = [json.loads(line) for line in export_bytes(store, "jsonl").splitlines()]
    assert list(lines[0]) == [
        "id", "label", "annotator", "round", "weight", "time", "action", "role", "decides",
        "split", "content",
    ]  # fmt: skip
    assert [line["time"] for line in lines] == sorted(line["time"] for line in lines)
    labels = {line["id"]: line["label"] for line in lines if line["action"] == "label"}
    assert labels == {row.id: row.label for row in store.labels()}
    assert {line["id"] for line in lines if line["action"] == "skip"} == {
        KEYS[3],
        KEYS[7],
        KEYS[11],
    }
    table = pq.read_table(io.BytesIO(export_bytes(store, "parquet")))
    assert table.to_pylist() == lines
    assert table.schema.field("round").type == pa.int64()


def test_a_batch_is_what_waits_for_an_answer(tmp_path):
    store = labelled_store(tmp_path, KEYS, CLASSES)
    # The last answer of labelled_store was undone, so its item is open unless answered before.
    chosen = [NewBatchItem(k, weight=float(k)) for k in (20, 21, 22)]
    store.add_round(2, chosen, strategy="sabal")
    store.submit(Submission("one more", "ann", KEYS[21], None, skip=True))
    answered = {row.id for row in [*store.labels(), *store.skipped()]}
    expected = [key for key in [*KEYS[:12], *KEYS[20:23]] if key not in answered]
    assert expected[-2:] == [KEYS[20], KEYS[22]]
    rows = [json.loads(line) for line in export_bytes(store, "jsonl", batch=True).splitlines()]
    assert [row["id"] for row in rows] == expected
    assert rows[-1]["content"] == f"{KEYS[22]} <i>shown</i>"
    assert (rows[-1]["rank"], rows[-1]["round"], rows[-1]["weight"]) == (3, 2, 22.0)
    tasks = json.loads(export_bytes(store, "label-studio", batch=True))
    assert [task["data"]["sabal_id"] for task in tasks] == expected
    assert tasks[-1] == {
        "data": {
            "sabal_id": KEYS[22],
            "text": f"{KEYS[22]} <i>shown</i>",
            "sabal_round": 2,
            "sabal_rank": 3,
            "sabal_weight": 22.0,
            "sabal_role": "train",
            "sabal_priority": pytest.approx(1 / 3),
        },
        "annotations": [],
    }


@pytest.mark.parametrize("format", TABLES)
def test_a_batch_may_be_filled_in_by_hand(format, tmp_path):
    store = new_store(tmp_path, KEYS, CLASSES)
    store.add_round(0, [NewBatchItem(k, weight=k + 0.5) for k in range(6)], strategy="random")
    found = READERS[format](export_bytes(store, format, batch=True), "batch")
    rows = [each.row for each in found]
    for row in rows[:4]:
        row |= {"label": CLASSES[0], "annotator": "=hand"}
    (tmp_path / "filled").write_bytes(written(rows, format, BATCH_COLUMNS))
    imported = import_file(store, tmp_path / "filled", format)
    assert (imported.labels, imported.waiting) == (4, 2)
    assert [row.id for row in store.labels()] == KEYS[:4]
    assert [row.weight for row in store.labels()] == [0.5, 1.5, 2.5, 3.5]
    assert {row.annotator for row in store.labels()} == {"=hand"}
    assert store.status().remaining == 2


def test_a_file_made_elsewhere_needs_ids_and_labels_only(tmp_path):
    store = new_store(tmp_path, ["1", "2", "3"], ["0", "1"])
    (tmp_path / "labels.csv").write_bytes("\ufeffid,label,note\r\n1,0,x\r\n9,1,y\r\n".encode())
    imported = import_file(store, tmp_path / "labels.csv")
    assert imported.labels == 1
    assert imported.unknown == ["9"]
    pq.write_table(pa.table({"id": [2], "label": [1]}), tmp_path / "labels.parquet")
    assert import_file(store, tmp_path / "labels.parquet").labels == 1
    (tmp_path / "labels.jsonl").write_text('\n{"id": 3, "label": 0}\n\n')
    assert import_file(store, tmp_path / "labels.jsonl").labels == 1
    assert {row.id: row.label for row in store.labels()} == {"1": "0", "2": "1", "3": "0"}
    assert {row.annotator for row in store.labels()} == {"import"}
    for name in ("labels.csv", "labels.parquet", "labels.jsonl"):
        assert import_file(store, tmp_path / name).labels == 0


BAD = {
    "not UTF-8": ("csv", b"id,label\n1,\xff\n"),
    "nothing": ("csv", b""),
    "another header": ("csv", b"name;class\n1;cat\n"),
    "a column twice": ("csv", b"id,label,label\n1,cat,cat\n"),
    "a short line": ("csv", b"id,label,round\n1,cat\n"),
    "a long line": ("csv", b"id,label\n1,cat,dog\n"),
    "an open quote": ("csv", b'id,label\n1,"cat\n'),
    "a quote amid": ("csv", b'id,label\n1,"cat"dog\n'),
    "no id": ("csv", b"id,label\n,cat\n"),
    "another class": ("csv", b"id,label\n1,cat\n2,cow\n"),
    "a round in words": ("csv", b"id,label,round\n1,cat,first\n"),
    "a negative weight": ("csv", b"id,label,weight\n1,cat,-2\n"),
    "a weight that is no number": ("csv", b"id,label,weight\n1,cat,nan\n"),
    "yesterday": ("csv", b"id,label,time\n1,cat,yesterday\n"),
    "another action": ("csv", b"id,label,action\n1,cat,guess\n"),
    "another role": ("csv", b"id,label,role\n1,cat,test\n"),
    "a skip with a label": ("csv", b"id,label,action\n1,cat,skip\n"),
    "a label without one": ("csv", b"id,label,action\n1,,label\n"),
    "no JSON": ("jsonl", b'{"id": "1", "label": "cat"}\n{"id": \n'),
    "a list for an object": ("jsonl", b'["1", "cat"]\n'),
    "a list for a label": ("jsonl", b'{"id": "1", "label": ["cat"]}\n'),
    "a flag for an id": ("jsonl", b'{"id": true, "label": "cat"}\n'),
    "half a round": ("jsonl", b'{"id": "1", "label": "cat", "round": 0.5}\n'),
    "half a character": ("jsonl", b'{"id": "\\ud800", "label": "cat"}\n'),
    "a round too large": ("jsonl", b'{"id": "1", "label": "cat", "round": 1%s}\n' % (b"0" * 30)),
    "infinitely heavy": ("jsonl", b'{"id": "1", "label": "cat", "weight": Infinity}\n'),
    "deep": ("jsonl", b"[" * 100_000),
    "noise": ("parquet", b"PAR1 noise PAR1"),
    "JSON cut off": ("label-studio", b'[{"data": {'),
    "one task": ("label-studio", b'{"data": {}, "annotations": []}'),
    "JSON-MIN": ("label-studio", b'[{"id": 1, "text": "x", "label": "cat"}]'),
    "CSV as JSON": ("label-studio", b"id,label\n1,cat\n"),
    "no list of annotations": ("label-studio", b'[{"data": {}, "annotations": {"a": 1}}]'),
    "no result": ("label-studio", b'[{"data": {"sabal_id": "1"}, "annotations": [{}]}]'),
}


@pytest.mark.parametrize("what", BAD)
def test_a_file_that_makes_no_sense_is_refused_whole(what, tmp_path):
    format, data = BAD[what]
    store = new_store(tmp_path, ["1", "2"], ["cat", "dog"])
    (tmp_path / "bad").write_bytes(data)
    with pytest.raises(SabalError, match="bad"):
        import_file(store, tmp_path / "bad", format)
    assert store.history() == []


def test_a_class_that_is_nearly_right_is_named(tmp_path):
    store = new_store(tmp_path, ["1", "2"], ["cat", "dog"])
    (tmp_path / "labels.csv").write_text("id,label\n1,cat\n2,dgo\n")
    with pytest.raises(UnknownNameError, match=r"line 3 of .*labels.csv.*did you mean 'dog'"):
        import_file(store, tmp_path / "labels.csv")


def test_files_that_cannot_be(tmp_path):
    store = new_store(tmp_path, ["1", "2"], ["cat", "dog"])
    with pytest.raises(FileError, match="check the path"):
        import_file(store, tmp_path / "absent.csv")
    with pytest.raises(FileError, match="ends in"):
        import_file(store, tmp_path / "labels.docx")
    with pytest.raises(UnknownNameError, match="did you mean 'jsonl'"):
        import_file(store, tmp_path / "absent.csv", "json")
    with pytest.raises(UnknownNameError, match="format"):
        export_bytes(store, "excel")
    with pytest.raises(FileError, match="name a file"):
        export_file(store, tmp_path, "csv")
    pq.write_table(pa.table({"id": ["1"]}), tmp_path / "labels.parquet")
    with pytest.raises(FileError, match="columns id and label"):
        import_file(store, tmp_path / "labels.parquet")
    assert format_of("LABELS.JSON") == "label-studio"


# Label Studio.


def annotation(label=None, **more):
    choice = {
        "id": "abc",
        "type": "choices",
        "origin": "manual",
        "from_name": "label",
        "to_name": "text",
        "value": {"choices": [label]},
    }
    return {
        "id": 1,
        "completed_by": 1,
        "result": [] if label is None else [choice],
        "was_cancelled": False,
        "created_at": "2026-02-01T10:00:00.000000Z",
        "updated_at": "2026-02-01T10:00:00.000000Z",
        **more,
    }


def task(item, *annotations, **more):
    return {
        "id": 7,
        "data": {"sabal_id": item, "text": "x", "sabal_round": 0, "sabal_weight": 2.5},
        "annotations": list(annotations),
        "predictions": [{"result": annotation("dog")["result"], "score": 0.9}],
        "drafts": [{"result": annotation("dog")["result"]}],
        **more,
    }


def import_tasks(folder, store, *tasks):
    (folder / "tasks.json").write_text(json.dumps(tasks))
    return import_file(store, folder / "tasks.json")


def test_annotations_are_answers_and_guesses_are_not(tmp_path):
    store = new_store(tmp_path, ["a", "b", "c", "d", "e"], ["cat", "dog"], overlap=2)
    imported = import_tasks(
        tmp_path,
        store,
        task("a", annotation("cat"), annotation("dog", completed_by={"id": 2, "email": "b@x.org"})),
        task("b", annotation(was_cancelled=True)),
        task("c"),
        task("d", annotation()),
        task("elsewhere", annotation("cat")),
        {"id": 12, "data": {"text": "not of ours"}, "annotations": [annotation("cat")]},
    )
    assert (imported.labels, imported.skips, imported.waiting) == (2, 1, 2)
    assert imported.unknown == ["elsewhere", "Label Studio's task 12"]
    labels = {(row.id, row.annotator): row.label for row in store.labels()}
    assert labels == {("a", "label-studio-1"): "cat", ("a", "b@x.org"): "dog"}
    assert {row.time for row in store.labels()} == {"2026-02-01T10:00:00.000000+00:00"}
    assert {row.weight for row in store.labels()} == {2.5}
    assert [row.id for row in store.skipped()] == ["b"]


def test_of_two_annotations_of_a_person_the_later_one_stands(tmp_path):
    store = new_store(tmp_path, ["a"], ["cat", "dog"])
    later = annotation("cat", updated_at="2026-02-02T10:00:00Z")
    import_tasks(tmp_path, store, task("a", later, annotation("dog")))
    assert [row.label for row in store.labels()] == ["cat"]


def test_an_annotation_that_was_changed_is_a_later_answer(tmp_path):
    store = new_store(tmp_path, ["a"], ["cat", "dog"])
    for day, label in enumerate(["cat", "dog", "cat"], start=1):
        changed = annotation(label, updated_at=f"2026-02-0{day}T10:00:00Z")
        assert import_tasks(tmp_path, store, task("a", changed)).labels == 1
        assert [row.label for row in store.labels()] == [label]


def test_two_choices_for_an_item_are_one_too_many(tmp_path):
    store = new_store(tmp_path, ["a"], ["cat", "dog"])
    both = annotation("cat")
    both["result"][0]["value"]["choices"] = ["cat", "dog"]
    with pytest.raises(FileError, match="one choice in task 1"):
        import_tasks(tmp_path, store, task("a", both))


def test_other_controls_beside_ours_do_not_matter(tmp_path):
    store = new_store(tmp_path, ["a"], ["cat", "dog"])
    more = annotation("cat")
    more["result"] += [
        {"type": "choices", "from_name": "quality", "value": {"choices": ["bad"]}},
        {"type": "textarea", "from_name": "note", "value": {"text": ["why"]}},
    ]
    import_tasks(tmp_path, store, task("a", more))
    assert [row.label for row in store.labels()] == ["cat"]


def test_images_are_named_where_label_studio_finds_them(tmp_path):
    store = new_store(tmp_path, ["a/b c#1.png"], ["cat", "dog"], kind="image")
    store.add_round(0, [NewBatchItem(0)], strategy="random")
    (local,) = json.loads(export_bytes(store, "label-studio", batch=True))
    assert local["data"]["image"].startswith("/data/local-files/?d=a/b%20c%231.png")
    elsewhere = export_bytes(store, "label-studio", batch=True, media_url="https://example.org/")
    assert json.loads(elsewhere)[0]["data"]["image"].startswith("https://example.org/a/b%20c")


def test_the_labelling_interface_names_every_class():
    tree = ET.fromstring(label_config(CLASSES, "text"))  # noqa: S314
    assert [choice.get("value") for choice in tree.iter("Choice")] == CLASSES
    assert tree.find("Text").attrib == {"name": "text", "value": "$text"}
    assert tree.find("Choices").get("toName") == "text"
    assert ET.fromstring(label_config(CLASSES, "image")).find("Image") is not None  # noqa: S314


def test_a_row_says_where_it_is():
    with pytest.raises(FileError, match="line 7 of labels"):
        answer_in(FileRow({"label": "cat"}, "line 7 of labels.csv"))
