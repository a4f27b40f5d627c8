"""Pools on disk hold what pools in memory hold, whatever the format and however they are read."""

from __future__ import annotations

import os
import pickle
import re
import shutil
import subprocess
import sys
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from makers import make_pool
from sabal.core.memory import parse_bytes
from sabal.core.rows import StoredRows, is_stored, load
from sabal.errors import FileError, InputError, SabalError
from sabal.pools import Ids, pool_of_chunks, pool_size, read_pool
from sabal.pools import ids as ids_module
from sabal.pools import parquet as parquet_module
from sabal.pools.npy import read_header

N = 57
POOL = make_pool(n=N)
ARRAYS = {
    "features": POOL.features.astype("float32"),
    "probs": POOL.probs,
    "label_probs": POOL.label_probs,
    "log_probs": POOL.log_probs.astype("float32"),
}
NAMES = [f"item-{k:03d}" + "é" * (k % 3) for k in range(N)]
IDS = {
    "text": np.array(NAMES),
    "numbers": np.arange(N)[::-1] * 10,
    "short": np.arange(N, dtype="u1"),
    "none": None,
}


def nested(array, kind="list"):
    """A column of (nested) lists."""
    flat = pa.array(array.reshape(-1))
    for length in array.shape[:0:-1]:
        if kind == "fixed":
            flat = pa.FixedSizeListArray.from_arrays(flat, length)
        else:
            make = pa.LargeListArray if kind == "large" else pa.ListArray
            flat = make.from_arrays(np.arange(0, len(flat) + 1, length), flat)
    return flat


def columns(arrays, ids, kind="list"):
    table = {name: nested(array, kind) for name, array in arrays.items()}
    return pa.table(table if ids is None else {"id": pa.array(ids.tolist()), **table})


def written(folder, form, arrays, ids):
    """The pool in some format; the path to it."""
    plain = arrays if ids is None else {"id": ids, **arrays}
    path = folder / form
    if form.startswith("npy"):
        path.mkdir()
        order = np.asfortranarray if "fortran" in form else np.asarray
        for name, array in plain.items():
            np.save(path / f"{name}.npy", order(array))
    elif form.startswith("npz"):
        path = path.with_suffix(".npz")
        order = np.asfortranarray if "fortran" in form else np.asarray
        save = np.savez_compressed if "compressed" in form else np.savez
        save(path, **{name: order(array) for name, array in plain.items()})
    elif form == "parquet-files":
        path.mkdir()
        table = columns(arrays, ids)
        for name, start, stop in (("b", 20, 50), ("a", 0, 20), ("c", 50, 50), ("d", 50, N)):
            pq.write_table(table.slice(start, stop - start), path / f"{name}.parquet")
    else:
        path = path.with_suffix(".parquet")
        kind = form.removeprefix("parquet-")
        groups = 1000 if kind == "huge" else 7
        pq.write_table(columns(arrays, ids, kind), path, row_group_size=groups)
    return path


FORMS = [
    "npy", "npy-fortran", "npz", "npz-compressed", "npz-fortran", "npz-compressed-fortran",
    "parquet-list", "parquet-large", "parquet-fixed", "parquet-huge", "parquet-files",
]  # fmt: skip


@pytest.fixture
def scratch(tmp_path):
    return tmp_path / "scratch"


def assert_holds(contents, ids, start=0, stop=N, arrays=ARRAYS, stored=True):
    """The rows from start to stop, of the same numbers and dtypes, with the same ids."""
    assert contents.pool.size == stop - start
    assert set(contents.parts) == set(arrays)
    for name, array in arrays.items():
        part = contents.parts[name]
        assert is_stored(part) == stored
        assert part.shape == array[start:stop].shape
        np.testing.assert_array_equal(load(part), array[start:stop], strict=True)
    if ids is None:
        assert contents.ids is None
        return
    assert len(contents.ids) == stop - start
    some = np.array([3, 0, 3, stop - start - 1])
    assert contents.ids[some].tolist() == ids[start:stop][some].tolist()
    assert contents.ids[:].tolist() == ids[start:stop].tolist()
    assert contents.ids[some].dtype.kind == ("U" if ids.dtype.kind == "U" else "i")
    assert np.asarray(contents.pool.ids[some]).tolist() == ids[start:stop][some].tolist()


@pytest.mark.parametrize("ids", IDS)
@pytest.mark.parametrize("form", FORMS)
def test_a_pool_on_disk_holds_what_it_holds_in_memory(tmp_path, scratch, form, ids, monkeypatch):
    monkeypatch.setattr(parquet_module, "BATCH_BYTES", 4000)
    path = written(tmp_path, form, ARRAYS, IDS[ids])
    assert_holds(read_pool(path), IDS[ids], stored=False)
    assert_holds(read_pool(path, memory="1GiB", scratch=scratch), IDS[ids], stored=False)
    assert not scratch.exists()
    contents = read_pool(path, memory=1, scratch=scratch)
    assert_holds(contents, IDS[ids])
    assert all(isinstance(part, StoredRows) for part in contents.parts.values())
    again = pickle.loads(pickle.dumps((contents.parts, contents.ids)))  # noqa: S301
    np.testing.assert_array_equal(load(again[0]["probs"]), ARRAYS["probs"])
    assert pool_size(path) == N
    in_place = form in ("npy", "npz")
    assert scratch.exists() != in_place
    del contents
    assert in_place or not any(scratch.iterdir())


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("start", "stop"), [(0, 5), (13, 41), (50, N), (0, N)])
def test_a_range_of_rows(tmp_path, scratch, form, start, stop):
    ids = IDS["text"]
    path = written(tmp_path, form, ARRAYS, ids)
    assert_holds(read_pool(path, rows=(start, stop)), ids, start, stop, stored=False)
    few = read_pool(path, rows=range(start, stop), memory=1, scratch=scratch)
    assert_holds(few, ids, start, stop)


@pytest.mark.parametrize("rows", [(0, N + 1), (-1, 4), (4, 4), (9, 3), range(0, 9, 2)])
def test_a_range_that_is_none_is_refused(tmp_path, rows):
    path = written(tmp_path, "npz", ARRAYS, None)
    with pytest.raises(InputError, match="rows"):
        read_pool(path, rows=rows)


def test_row_groups_outside_the_range_are_not_read(tmp_path, scratch):
    path = written(tmp_path, "parquet-list", {"features": ARRAYS["features"]}, None)
    group = pq.ParquetFile(path).metadata.row_group(7).column(0)
    begin = group.dictionary_page_offset or group.data_page_offset
    damaged = bytearray(path.read_bytes())
    damaged[begin : begin + group.total_compressed_size] = bytes(group.total_compressed_size)
    path.write_bytes(damaged)
    contents = read_pool(path, rows=(0, 49), memory=1, scratch=scratch)
    np.testing.assert_array_equal(load(contents.parts["features"]), ARRAYS["features"][:49])
    del contents
    with pytest.raises(FileError):
        read_pool(path, memory=1, scratch=scratch)
    assert not any(scratch.iterdir())


def test_labelled_features_are_read_whole(tmp_path):
    for form in ("npy", "npz", "npz-compressed"):
        arrays = {**ARRAYS, "labeled_features": ARRAYS["features"][:3]}
        path = written(tmp_path, form, arrays, None)
        for rows in (None, (1, 9)):
            labeled = read_pool(path, memory=1, rows=rows).parts["labeled_features"]
            assert not is_stored(labeled)
            np.testing.assert_array_equal(labeled, arrays["labeled_features"])
        assert pool_size(path) == N


@pytest.mark.parametrize(
    ("form", "dtype"),
    [
        (form, dtype)
        for form in ("npz", "npz-compressed", "npy", "npy-fortran", "parquet-list")
        for dtype in ("f2", "u1", "i8", "?", ">f8", ">f4")
        # Arrow has one order of bytes only.
        if form != "parquet-list" or not dtype.startswith(">")
    ],
)
def test_every_dtype_is_widened_as_in_memory(tmp_path, form, dtype):
    raw = (POOL.features > 0).astype(dtype)
    path = written(tmp_path, form, {"features": raw}, None)
    found = read_pool(path, memory=1).parts["features"]
    expected = read_pool(path).pool.features
    np.testing.assert_array_equal(load(found), expected, strict=True)


def test_the_second_version_of_the_npy_header_is_read_and_the_third_refused(tmp_path):
    for version in ((1, 0), (2, 0)):
        with (tmp_path / "features.npy").open("wb") as file:
            np.lib.format.write_array(file, ARRAYS["features"], version=version)
        found = read_pool(tmp_path, memory=1).parts["features"]
        np.testing.assert_array_equal(load(found), ARRAYS["features"])
    (tmp_path / "features.npy").write_bytes(b"\x93NUMPY\x03\x00" + bytes(100))
    with pytest.raises(FileError, match="version"):
        read_pool(tmp_path, memory=1)


def test_members_with_extra_fields_and_64_bit_sizes_are_found(tmp_path):
    path = tmp_path / "pool.npz"
    np.save(tmp_path / "features.npy", ARRAYS["features"])
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a comment.txt", "hello")
        with archive.open("features.npy", "w", force_zip64=True) as member:
            member.write((tmp_path / "features.npy").read_bytes())
    found = read_pool(path, memory=1)
    np.testing.assert_array_equal(load(found.parts["features"]), ARRAYS["features"])
    assert found.ignored == ("a comment.txt",)


def shards(folder, *tables):
    folder.mkdir()
    for number, table in enumerate(tables):
        pq.write_table(pa.table(table), folder / f"{number}.parquet")
    return folder


def bad_pools(folder):
    """Pools that cannot be used, by what is wrong with them, with a word of the error."""
    features = nested(ARRAYS["features"])

    def parquet(name, **table):
        pq.write_table(pa.table(table), folder / f"{name}.parquet")
        return folder / f"{name}.parquet"

    def npz(name, save=np.savez, **arrays):
        save(folder / f"{name}.npz", **arrays)
        return folder / f"{name}.npz"

    def damaged(path, start, stop, byte=b"x"):
        data = path.read_bytes()
        path.write_bytes(data[:start] + byte * (stop - start) + data[stop:])
        return path

    yield "readable", damaged(npz("bits", features=ARRAYS["features"]), 400, 420)
    packed = npz("packed", np.savez_compressed, features=ARRAYS["features"])
    yield "readable", damaged(packed, 300, 350)
    yield "readable", damaged(npz("head", features=ARRAYS["features"]), 75, 90)
    whole = npz("whole", **ARRAYS).read_bytes()
    (folder / "cut.npz").write_bytes(whole[: len(whole) // 2])
    yield "only part of one", folder / "cut.npz"
    (folder / "bare.npz").write_bytes(b"")
    yield "readable", folder / "bare.npz"
    yield "unpickled", npz("objects", features=np.array([{"a": 1}] * 3, dtype=object))
    yield "embeddings", npz("names", embeddings=ARRAYS["features"])
    yield "rename it to `features`", npz("near", feature=ARRAYS["features"])
    yield (
        "features with 57 rows, probs with 4",
        npz("unequal", features=ARRAYS["features"], probs=ARRAYS["probs"][:4]),
    )
    yield "real numbers", npz("words", features=np.array([["a"], ["b"]]))
    yield "real numbers", npz("complex", features=np.ones((3, 2), complex))
    yield "a single number", npz("single", features=np.array(1.0))
    yield "0 7 times", npz("ids", features=np.ones((7, 2)), id=np.zeros(7, int))
    yield "whole numbers or strings", npz("halves", features=np.ones((7, 2)), id=np.arange(7) / 2)
    yield "whole numbers or strings", npz("wide", features=np.ones((7, 2)), id=np.ones((7, 1), int))
    for name, change in (("short", slice(None, -5)), ("noise", slice(20, None))):
        arrays = folder / name
        arrays.mkdir()
        np.save(arrays / "features.npy", ARRAYS["features"])
        data = (arrays / "features.npy").read_bytes()
        (arrays / "features.npy").write_bytes(data[change])
        yield "write the file again", arrays
    for name, byte in (("token", 120), ("quote", 20), ("shape", 70)):
        arrays = folder / name
        arrays.mkdir()
        np.save(arrays / "features.npy", ARRAYS["features"])
        damaged(arrays / "features.npy", byte, byte + 1, b"\x8b")
        yield "readable", arrays
    pickled = folder / "pickled"
    pickled.mkdir()
    np.save(pickled / "features.npy", np.array([{}], dtype=object), allow_pickle=True)
    yield "unpickled", pickled

    (folder / "noise.parquet").write_bytes(b"PAR1 not a parquet file")
    yield "readable", folder / "noise.parquet"
    yield "different lengths", parquet("ragged", features=pa.array([[1.0]] * 9 + [[1.0, 2.0]]))
    yield "different lengths", parquet("even", features=pa.array([[1.0], [1.0, 2.0], []]))
    yield "empty", parquet("gaps", features=pa.array([[1.0]] * 9 + [None]))
    yield "empty", parquet("first", features=pa.array([None, [1.0]]))
    yield "empty", parquet("holes", features=pa.array([[1.0]] * 9 + [[None]]))
    yield "empty", parquet("nobody", features=features, id=pa.array([*NAMES[1:], None]))
    noise = pa.array([b"\xff", *(name.encode() for name in NAMES[1:])]).view(pa.string())
    yield "readable", parquet("noisy", features=features, id=noise)
    yield "lists of numbers", parquet("structs", features=pa.array([{"a": 1.0}] * 3))
    yield "real numbers", parquet("texts", features=pa.array(["a", "b"]))
    yield "real numbers", parquet("decimals", features=pa.array([["1.5"]]).cast(
        pa.list_(pa.string())))  # fmt: skip
    yield "item-000 57 times", parquet("same", features=features, id=pa.array(NAMES[:1] * N))
    yield "whole numbers or strings", parquet("floats", features=features, id=pa.array([0.5] * N))
    yield "whole numbers or strings", parquet("pairs", features=features, id=pa.array([[1]] * N))
    yield (
        "different lengths",
        shards(folder / "widths", {"features": features}, {"features": nested(POOL.probs[:, :2])}),
    )
    yield "without this column", shards(
        folder / "columns", {"features": features, "probs": nested(POOL.probs)},
        {"features": features},
    )  # fmt: skip
    yield (
        "readable",
        shards(folder / "types", {"features": features}, {"features": pa.array(["a"])}),
    )


def test_unusable_pools_are_told_and_leave_nothing_behind(tmp_path, scratch):
    for word, path in bad_pools(tmp_path):
        with pytest.raises(SabalError, match=re.escape(word)):
            read_pool(path, memory=1, scratch=scratch)
        assert not scratch.exists() or not any(scratch.iterdir()), path


def test_files_of_other_types_are_read_as_the_first_one(tmp_path):
    first, second = ARRAYS["features"], POOL.features
    path = shards(tmp_path / "mixed", {"features": nested(second)}, {"features": nested(first)})
    stored = read_pool(path, memory=1).parts["features"]
    np.testing.assert_array_equal(load(stored), read_pool(path).parts["features"], strict=True)


def test_ids_in_other_types_of_strings(tmp_path):
    kinds = [pa.large_string(), pa.dictionary(pa.int32(), pa.string())]
    if hasattr(pa, "string_view"):
        kinds.append(pa.string_view())
    for kind in kinds:
        table = {"id": pa.array(NAMES).cast(kind), "features": nested(ARRAYS["features"])}
        pq.write_table(pa.table(table), tmp_path / "pool.parquet")
        contents = read_pool(tmp_path / "pool.parquet", memory=1)
        assert contents.ids[:].tolist() == NAMES, kind
        assert contents.ids[np.array([8, 2])].tolist() == [NAMES[8], NAMES[2]]


def test_an_empty_parquet_pool_is_told_as_in_memory(tmp_path):
    path = tmp_path / "pool.parquet"
    pq.write_table(columns(ARRAYS, None).slice(0, 0), path)
    assert pool_size(path) == 0
    messages = set()
    for memory in (None, 1):
        with pytest.raises(SabalError) as caught:
            read_pool(path, memory=memory)
        messages.add(str(caught.value))
    assert len(messages) == 1


def test_too_little_room_on_the_disk_is_told_before_anything_is_written(
    tmp_path, scratch, monkeypatch
):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(100, 58, 42))
    needed = ARRAYS["features"].nbytes
    for form in ("parquet-list", "npz-compressed", "npy-fortran"):
        path = written(tmp_path, form, {"features": ARRAYS["features"]}, None)
        with pytest.raises(FileError, match=rf"{needed} bytes.*42 bytes free.*scratch="):
            read_pool(path, memory=1, scratch=scratch)
        assert not any(scratch.iterdir())
    with pytest.raises(FileError, match="scratch="):
        pool_of_chunks([{"features": ARRAYS["features"]}], memory=1, scratch=scratch)
    in_place = read_pool(written(tmp_path, "npz", ARRAYS, None), memory=1, scratch=scratch)
    assert_holds(in_place, None)


def test_a_full_disk_is_told(tmp_path, scratch):
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full")
    from sabal.pools.scratch import Scratch

    told = pytest.raises(FileError, match=r"No space left.*scratch=")
    with open("/dev/full", "wb", buffering=0) as full, told:
        Scratch(scratch).write(full, b"x")


def test_a_scratch_folder_that_cannot_be_made_is_told(tmp_path):
    (tmp_path / "file").write_text("in the way")
    path = written(tmp_path, "parquet-list", ARRAYS, None)
    with pytest.raises(FileError):
        read_pool(path, memory=1, scratch=tmp_path / "file" / "scratch")


def test_rows_keep_their_scratch_folder(tmp_path, scratch):
    path = written(tmp_path, "parquet-list", ARRAYS, IDS["text"])
    part = read_pool(path, memory=1, scratch=scratch).parts["probs"].part(3, 9)
    np.testing.assert_array_equal(part[:], ARRAYS["probs"][3:9])
    del part
    assert not any(scratch.iterdir())
    ids = read_pool(path, memory=1, scratch=scratch).ids
    assert ids[np.array([4])].tolist() == [NAMES[4]]


SCRIPT = """
import os, sys
from sabal.pools import read_pool
contents = read_pool(sys.argv[1], memory=1, scratch=sys.argv[2])
child = os.fork()
if child == 0:
    del contents
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
assert len(os.listdir(sys.argv[2])) == 1
print(contents.parts["probs"][:3].shape)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_the_scratch_folder_ends_with_the_process_that_made_it(tmp_path, scratch):
    path = written(tmp_path, "parquet-list", ARRAYS, None)
    command = [sys.executable, "-W", "ignore", "-c", SCRIPT, path, scratch]
    answer = subprocess.run(command, capture_output=True, text=True)
    assert answer.stdout.strip() == "(3, 4)", answer.stderr
    assert not any(scratch.iterdir())


def test_the_default_scratch_folder_is_the_systems(tmp_path, monkeypatch):
    import tempfile

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    contents = read_pool(written(tmp_path, "parquet-list", ARRAYS, None), memory=1)
    assert len(list((tmp_path / "tmp").iterdir())) == 1
    del contents
    assert not any((tmp_path / "tmp").iterdir())


@pytest.mark.parametrize("passes", [1, 3])
@pytest.mark.parametrize("ids", [IDS["text"], IDS["numbers"], np.array([b"a", b"b", b"c"])])
def test_ids_are_compared_in_as_many_passes_as_it_takes(ids, passes, monkeypatch):
    monkeypatch.setattr(ids_module, "MIN_KEYS", -(-len(ids) // passes))
    monkeypatch.setattr(ids_module, "CHUNK", 10)
    Ids(ids).check_distinct(1)
    twice = ids.copy()
    twice[-1] = twice[0]
    with pytest.raises(InputError, match=f"{twice[0]!s} 2 times"):
        Ids(twice).check_distinct(1)


def test_different_ids_with_one_key_are_different(monkeypatch):
    monkeypatch.setattr(ids_module, "_keys", lambda items: np.zeros(len(items), dtype=np.uint64))
    Ids(IDS["text"]).check_distinct(1)
    with pytest.raises(InputError, match="distinct"):
        Ids(np.array(["a", "b", "a"])).check_distinct(1)


def cut(ids=None, step=10):
    """The pool as chunks."""
    arrays = ARRAYS if ids is None else {"id": ids, **ARRAYS}
    for start in range(0, N, step):
        yield {name: array[start : start + step] for name, array in arrays.items()}


@pytest.mark.parametrize("ids", IDS)
@pytest.mark.parametrize(("memory", "stored"), [(None, False), ("1GB", False), (1, True)])
def test_chunks_make_a_pool(scratch, ids, memory, stored):
    contents = pool_of_chunks(cut(IDS[ids]), memory=memory, scratch=scratch)
    assert_holds(contents, IDS[ids], stored=stored)
    assert scratch.exists() == stored
    del contents
    assert not stored or not any(scratch.iterdir())


def test_chunks_that_outgrow_memory_are_moved_to_disk(scratch):
    total = sum(array.nbytes for array in ARRAYS.values())
    assert_holds(pool_of_chunks(cut(), memory=4 * total, scratch=scratch), None, stored=False)
    for memory in (4 * total - 4, 2 * total, 700):
        assert_holds(pool_of_chunks(cut(IDS["text"]), memory=memory, scratch=scratch), IDS["text"])


def test_a_chunk_may_be_overwritten_with_the_next_and_be_of_any_library(scratch):
    def chunks(convert):
        buffer = np.empty((19, 5), "float32")
        for start in range(0, N, 19):
            buffer[:] = ARRAYS["features"][start : start + 19]
            yield {"features": convert(buffer), "id": list(range(start, start + 19))}

    for convert in (np.asarray, torch.as_tensor, np.ndarray.tolist):
        for memory in (None, 1):
            contents = pool_of_chunks(chunks(convert), memory=memory, scratch=scratch)
            np.testing.assert_array_equal(load(contents.parts["features"]), ARRAYS["features"])
            assert contents.ids[:].tolist() == list(range(N))


def test_short_numbers_join_long_ones_and_not_the_other_way_round():
    long, short = np.ones((2, 3)), np.ones((2, 3), "float32")
    assert pool_of_chunks([{"features": long}, {"features": short}]).parts["features"].shape[0] == 4
    with pytest.raises(InputError, match=r"float32.*float64.*chunk 1"):
        pool_of_chunks([{"features": short}, {"features": long}])


GOOD = {"features": np.ones((2, 3)), "id": ["a", "b"]}
BAD_CHUNKS = {
    "empty iterator": ([], "at least one chunk"),
    "no rows": ([{"features": np.ones((0, 3))}], "at least one row"),
    "no arrays": ([{}], "at least one array"),
    "no dict": ([np.ones((2, 3))], "dicts"),
    "unknown": ([{**GOOD, "colour": np.ones(2)}], "`colour`"),
    "near miss": ([{"feature": np.ones((2, 3))}], "did you mean 'features'"),
    "ids": ([{**GOOD, "ids": ["a", "b"]}], "did you mean 'id'"),
    "labelled": ([{**GOOD, "labeled_features": np.ones((2, 3))}], "no row for every item"),
    "other names": ([GOOD, {"features": np.ones((2, 3))}], "features and id in every chunk"),
    "other shape": ([GOOD, {**GOOD, "features": np.ones((2, 4))}], r"shape (4,)"),
    "other axes": ([GOOD, {**GOOD, "features": np.ones((2, 3, 1))}], r"shape (3, 1)"),
    "other kind": ([GOOD, {**GOOD, "features": np.ones((2, 3), int)}], "whole numbers"),
    "other ids": ([GOOD, {**GOOD, "id": [1, 2]}], "whole numbers"),
    "other rows": ([{"features": np.ones((2, 3)), "probs": np.ones((3, 2))}], "probs with 3"),
    "repeated ids": ([GOOD, GOOD], "distinct"),
    "float ids": ([{**GOOD, "id": [0.5, 1.5]}], "whole numbers or strings"),
    "no ids": ([{**GOOD, "id": 7}], "whole numbers or strings"),
    "words": ([{"features": [["a"], ["b"]]}], "real numbers"),
    "a number": ([{"features": 1.0}], "a row for every item"),
}


@pytest.mark.parametrize("memory", [None, 1])
@pytest.mark.parametrize("case", BAD_CHUNKS)
def test_bad_chunks_are_told_and_leave_nothing_behind(case, memory, scratch):
    chunks, word = BAD_CHUNKS[case]
    with pytest.raises(SabalError) as caught:
        pool_of_chunks(iter(chunks), memory=memory, scratch=scratch)
    assert word in str(caught.value)
    assert not scratch.exists() or not any(scratch.iterdir())


def test_an_error_in_the_callers_iterator_comes_through(scratch):
    def chunks():
        yield GOOD
        raise KeyError("the caller's own")

    with pytest.raises(KeyError, match="own"):
        pool_of_chunks(chunks(), memory=1, scratch=scratch)
    assert not any(scratch.iterdir())


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("1GiB", 2**30), ("2GB", 2 * 10**9), ("500 MB", 500 * 10**6), (123456, 123456),
        ("1.5g", 15 * 10**8), ("0.1GB", 10**8), ("64kib", 65536), (" 7 b ", 7), (np.int64(5), 5),
        ("1TiB", 2**40), (".5k", 500),
    ],
)  # fmt: skip
def test_bytes_in_words(text, count):
    assert parse_bytes(text) == count


@pytest.mark.parametrize(
    "wrong", ["", "GB", "1 2GB", "-1GB", "1e9", "inf", "1GG", "0", "0.1", "1iB", "9" * 99,
              0, -5, 1.5, True, None, [], np.ones(2)]
)  # fmt: skip
def test_words_that_are_no_bytes(wrong):
    with pytest.raises(InputError, match=r'500 MB.*"1GiB"'):
        parse_bytes(wrong)


def test_a_header_with_nonsense_is_refused(tmp_path):
    path = tmp_path / "features.npy"
    with path.open("wb") as file:
        header = {"descr": "<f8", "fortran_order": False, "shape": (-2, 3)}
        np.lib.format.write_array_header_1_0(file, header)
    with path.open("rb") as file, pytest.raises(ValueError, match="shape"):
        read_header(file)


@pytest.mark.parametrize("seed", range(8))
def test_a_parquet_pool_read_in_blocks_is_arrows_table_of_it(tmp_path, monkeypatch, seed):
    rng = np.random.default_rng(seed)
    n, width = (int(x) for x in rng.integers((1, 1), (90, 6)))
    kind = pa.list_(pa.float32() if seed % 2 else pa.float64())
    features = pa.array(rng.standard_normal((n, width)).tolist(), kind)
    probs = pa.array(rng.dirichlet(np.ones(3), size=n).tolist())
    table = pa.table({"features": features, "probs": probs, "id": (NAMES * 2)[:n]})
    path = tmp_path / "pool.parquet"
    pq.write_table(table, path, row_group_size=int(rng.integers(1, n + 1)))
    monkeypatch.setattr(parquet_module, "BATCH_BYTES", int(rng.integers(1, 2000)))

    arrays = parquet_module.ParquetPool(path).whole()

    expected = pq.read_table(path)
    assert set(arrays) == {"features", "probs", "id"}
    for name, array in arrays.items():
        column = expected.column(name).combine_chunks()
        plain = parquet_module.to_array(column, name, path)
        assert array.dtype == plain.dtype or name == "id"
        assert np.array_equal(array, plain)
