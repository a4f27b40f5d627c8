"""Rows on disk, and rows derived from others, answer as the array in memory would."""

from __future__ import annotations

import os
import pickle
import threading
import weakref

import array_api_compat
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sabal.core.arrays import as_array, namespace, take_rows
from sabal.core.rows import DerivedRows, RawRows, StoredRows, is_stored, load
from sabal.core.rows import stored as stored_module
from sabal.errors import FileError, SabalError

DTYPES = [
    "f2",
    "f4",
    "f8",
    "i1",
    "u1",
    "i2",
    "u2",
    "i4",
    "i8",
    "u8",
    "?",
    ">f4",
    ">f8",
    ">i2",
    ">i8",
]
ROWS = [(), (1,), (3,), (2, 5), (0,)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("rows")


def made(shape, dtype, seed=0):
    numbers = np.random.default_rng(seed).integers(-100, 100, size=shape) / 8
    with np.errstate(invalid="ignore"):
        return numbers.astype(dtype) if np.dtype(dtype).kind != "u" else abs(numbers).astype(dtype)


def stored(folder, array, offset=0):
    path = folder / f"{os.urandom(8).hex()}.raw"
    path.write_bytes(b"\x07" * offset + array.tobytes() + b"trailing")
    return StoredRows(path, shape=array.shape, dtype=array.dtype, offset=offset)


def assert_same(found, expected):
    assert isinstance(found, np.ndarray)
    assert found.dtype == expected.dtype
    assert found.dtype.isnative
    assert found.shape == expected.shape
    assert found.flags.c_contiguous
    np.testing.assert_array_equal(found, expected)


bounds = st.one_of(st.none(), st.integers(-15, 15))


@given(
    length=st.integers(0, 12),
    row=st.sampled_from(ROWS),
    dtype=st.sampled_from(DTYPES),
    offset=st.sampled_from([0, 1, 128]),
    start=bounds,
    stop=bounds,
    data=st.data(),
)
def test_stored_rows_are_the_rows_of_the_array(
    folder, length, row, dtype, offset, start, stop, data
):
    raw = made((length, *row), dtype)
    plain = as_array(raw, "rows")
    rows = stored(folder, raw, offset)
    assert (rows.shape, rows.ndim, rows.dtype) == (plain.shape, plain.ndim, plain.dtype)
    assert (rows.nbytes, len(rows)) == (plain.nbytes, len(plain))
    assert_same(rows[start:stop], plain[start:stop])
    numbers = np.array(
        data.draw(st.lists(st.integers(0, max(0, length - 1)), max_size=9 if length else 0)),
        dtype=data.draw(st.sampled_from(["i8", "i4", "u2"])),
    )
    assert_same(rows[numbers], plain[numbers])
    assert_same(take_rows(rows, numbers), plain[numbers])
    first, last, _ = slice(start, stop).indices(length)
    part = rows.part(first, last)
    assert isinstance(part, StoredRows)
    assert_same(part[:], plain[first:last])
    assert_same(load(rows), plain)


@given(
    numbers=st.lists(st.integers(0, 299), max_size=40),
    dtype=st.sampled_from(["f4", "f2", ">f8"]),
    read=st.sampled_from([1, 40, 10_000]),
    gap=st.sampled_from([0, 30, 10_000]),
)
def test_near_rows_are_read_together_without_a_difference(folder, numbers, dtype, read, gap):
    raw = made((300, 3), dtype)
    rows = stored(folder, raw)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stored_module, "READ_BYTES", read)
        patch.setattr(stored_module, "GAP_BYTES", gap)
        numbers = np.array(numbers, dtype=np.int64)
        assert_same(rows[numbers], as_array(raw, "rows")[numbers])
        assert_same(rows[7:290], as_array(raw, "rows")[7:290])


def test_reads_that_come_in_pieces_are_put_together(folder, monkeypatch):
    raw = made((50, 3), "f8")
    rows = stored(folder, raw)
    whole = os.preadv
    monkeypatch.setattr(os, "preadv", lambda f, views, at: whole(f, [views[0][:7]], at))
    assert_same(rows[3:40], raw[3:40])


def test_neighbours_are_read_at_once_and_distant_rows_are_not(folder, monkeypatch):
    raw = made((20_000, 16), "f4")
    rows = stored(folder, raw)
    calls, whole = [], os.preadv

    def counted(descriptor, views, at):
        calls.append(len(views[0]))
        return whole(descriptor, views, at)

    monkeypatch.setattr(os, "preadv", counted)
    assert_same(rows[np.array([9, 3, 4, 5])], raw[[9, 3, 4, 5]])
    assert calls == [7 * 64]
    calls.clear()
    assert_same(rows[np.array([19_999, 3])], raw[[19_999, 3]])
    assert calls == [64, 64]


def test_what_is_handed_out_is_the_callers(folder):
    rows = stored(folder, made((5, 2), "f4"))
    first = rows[:]
    first[:] = 0
    assert np.any(rows[:] != 0)


@pytest.mark.parametrize(
    "wrong", [3, slice(0, 4, 2), slice(4, 0, -1), np.array([0.5]), np.zeros((2, 2), int), "a", None]
)
def test_what_no_pass_asks_for_is_refused(folder, wrong):
    rows = stored(folder, made((5, 2), "f4"))
    with pytest.raises(TypeError):
        rows[wrong]


@pytest.mark.parametrize("wrong", [[5], [-1], [0, 99]])
def test_rows_that_are_not_there_are_refused(folder, wrong):
    rows = stored(folder, made((5, 2), "f4"))
    derived = DerivedRows(np.abs, rows, shape=rows.shape, dtype=rows.dtype)
    for kind in (rows, derived):
        with pytest.raises(IndexError):
            kind[np.array(wrong)]


@pytest.mark.parametrize("dtype", ["U3", "S2", "c16", "M8[s]", "O"])
def test_only_numbers_are_rows(folder, dtype):
    with pytest.raises(SabalError):
        StoredRows(folder / "absent", shape=(1, 2), dtype=dtype)


def test_raw_rows_are_as_they_are_written(folder):
    for raw in (np.array(["a", "", "é"]), np.arange(3, dtype=">i8"), np.array(["", ""])):
        path = folder / "raw"
        path.write_bytes(raw.tobytes())
        rows = RawRows(path, shape=raw.shape, dtype=raw.dtype)
        np.testing.assert_array_equal(rows[:], raw)
        np.testing.assert_array_equal(rows[np.array([1, 0])], raw[[1, 0]])
        assert rows[:].dtype.isnative


def test_a_file_cut_short_is_told(folder):
    path = folder / "short.raw"
    path.write_bytes(np.zeros((4, 2)).tobytes()[:-3])
    rows = StoredRows(path, shape=(4, 2), dtype="f8")
    assert rows[:3].shape == (3, 2)
    for asked in (slice(None), np.array([3]), np.array([0, 3])):
        with pytest.raises(FileError, match=r"64 bytes.*ends after 61"):
            rows[asked]


def test_a_file_that_is_gone_or_a_folder_is_told(folder):
    for path in (folder / "gone.raw", folder):
        with pytest.raises(FileError):
            StoredRows(path, shape=(4, 2), dtype="f8")[:]


def test_stored_rows_are_arrays_of_numpy_as_far_as_a_library_looks(folder):
    raw = made((5, 2), "f4")
    rows = stored(folder, raw)
    assert array_api_compat.array_namespace(rows, raw) is namespace(raw)
    assert namespace(rows, raw) is namespace(raw)
    assert array_api_compat.device(rows) == "cpu"
    assert array_api_compat.is_array_api_obj(rows)
    assert as_array(rows, "rows") is rows
    with pytest.raises(SabalError, match="one array library"):
        namespace(rows, torch.zeros(2))


def test_nothing_is_loaded_by_accident(folder):
    rows = stored(folder, made((5, 2), "f4"))
    derived = DerivedRows(np.abs, rows, shape=rows.shape, dtype=rows.dtype)
    for kind in (rows, derived):
        with pytest.raises(TypeError, match="load"):
            np.asarray(kind)
        with pytest.raises(TypeError):
            list(kind)


def test_rows_travel_to_other_processes(folder, monkeypatch, tmp_path):
    raw = made((6, 2), "f4")
    rows = stored(folder, raw, offset=3).part(1, 5)
    assert_same(rows[:], raw[1:5])
    monkeypatch.chdir(folder)
    relative = StoredRows(os.path.basename(rows.path), shape=(6, 2), dtype="f4", offset=3)
    sent = pickle.dumps((rows, relative))
    monkeypatch.chdir(tmp_path)
    again, whole = pickle.loads(sent)  # noqa: S301
    assert_same(again[:], raw[1:5])
    assert_same(whole[:], raw)


def test_the_owner_stays_as_long_as_the_rows_and_stays_behind(folder):
    class Owner:
        pass

    gone = []
    owner = Owner()
    weakref.finalize(owner, gone.append, True)
    path = folder / "owned.raw"
    path.write_bytes(bytes(16))
    part = StoredRows(path, shape=(2, 1), dtype="f8", owner=owner).part(0, 1)
    del owner
    assert not gone
    assert b"Owner" not in pickle.dumps(part)
    del part
    assert gone


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="open files cannot be counted")
def test_files_are_closed_with_the_rows(folder):
    before = len(os.listdir("/proc/self/fd"))
    rows = [stored(folder, made((6, 2), "f4")) for _ in range(5)]
    for row in rows:
        row[:]
        row.part(0, 2)[:]
    assert len(os.listdir("/proc/self/fd")) == before + 5
    del rows, row
    assert len(os.listdir("/proc/self/fd")) == before


def test_threads_read_the_same_file(folder):
    raw = made((2000, 8), "f8")
    rows = stored(folder, raw)
    wrong = []

    def read(seed):
        rng = np.random.default_rng(seed)
        for _ in range(50):
            numbers = rng.integers(0, 2000, 20)
            if not np.array_equal(rows[numbers], raw[numbers]):
                wrong.append(seed)

    threads = [threading.Thread(target=read, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@given(
    length=st.integers(1, 12),
    start=bounds,
    stop=bounds,
    numbers=st.lists(st.integers(0, 11), max_size=9),
    library=st.sampled_from(["numpy", "torch", "stored", "derived"]),
)
def test_derived_rows_are_the_function_of_the_rows(folder, length, start, stop, numbers, library):
    left, right = made((length, 3), "f8", 1), made((length, 3), "f8", 2)
    numbers = np.array([k for k in numbers if k < length], dtype=np.int64)

    def kind(array):
        if library == "torch":
            return torch.as_tensor(array)
        if library == "derived":
            return DerivedRows(np.negative, stored(folder, -array), shape=array.shape, dtype="f8")
        return stored(folder, array) if library == "stored" else array

    dtype = torch.float64 if library == "torch" else np.dtype("f8")
    rows = DerivedRows(lambda a, b: a[:, :2] * b[:, :2], kind(left), kind(right),
                       shape=(length, 2), dtype=dtype)  # fmt: skip
    expected = left[:, :2] * right[:, :2]
    assert (rows.shape, rows.ndim, rows.dtype) == (expected.shape, 2, dtype)
    assert (rows.nbytes, len(rows)) == (expected.nbytes, length)
    reference = kind(left)
    assert namespace(rows, reference) is namespace(reference)
    assert array_api_compat.device(rows) == array_api_compat.device(reference)
    assert is_stored(rows) == (library in ("stored", "derived"))
    np.testing.assert_array_equal(rows[start:stop], expected[start:stop])
    np.testing.assert_array_equal(take_rows(rows, numbers), expected[numbers])
    np.testing.assert_array_equal(rows[numbers], expected[numbers])
    if library == "torch":
        assert isinstance(rows[:], torch.Tensor)
    first, last, _ = slice(start, stop).indices(length)
    np.testing.assert_array_equal(load(rows.part(first, last)), expected[first:last])
    assert load(rows).dtype == np.float64
    np.testing.assert_array_equal(load(rows), expected)


def test_derived_rows_need_sources_of_their_length():
    with pytest.raises(SabalError, match="sources of 4 rows"):
        DerivedRows(np.abs, np.zeros((3, 2)), shape=(4, 2), dtype="f8")
    with pytest.raises(SabalError):
        DerivedRows(np.abs, shape=(4, 2), dtype="f8")


def test_derived_rows_travel_with_a_function_that_does(folder):
    raw = made((6, 2), "f4")
    rows = DerivedRows(np.abs, stored(folder, raw), shape=raw.shape, dtype=raw.dtype)
    again = pickle.loads(pickle.dumps(rows))  # noqa: S301
    np.testing.assert_array_equal(again[:], abs(raw))


def test_arrays_in_memory_are_not_stored():
    assert not is_stored(np.zeros(3))
    assert not is_stored(torch.zeros(3))
    assert not is_stored(None)
    assert not is_stored(DerivedRows(np.abs, np.zeros((3, 1)), shape=(3, 1), dtype="f8"))
    np.testing.assert_array_equal(load(torch.arange(3)), np.arange(3))
