"""Writing files: whole or absent, through links and to devices, with the mode that was there."""

from __future__ import annotations

import errno
import os
import socket
import stat
import subprocess
import sys
import threading

import pytest

from devices import is_device, make_device
from sabal.core.files import (
    is_standard_output,
    is_stream,
    make_folder,
    move_into_place,
    move_to_new,
    sync_folder,
    write_bytes_whole,
    write_text_whole,
    write_whole,
)
from sabal.errors import FileError
from sabal.loop.journal import Journal
from sabal.selection import check_destination

BOTH = pytest.mark.parametrize(
    "put",
    [write_text_whole, lambda path, text: write_whole(path, lambda made: made.write_text(text))],
    ids=["memory", "file"],
)


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def synced(monkeypatch):
    """What is synced, and what is renamed, in their order."""
    done = []
    fsync, replace = os.fsync, os.replace

    def note_fsync(descriptor):
        is_folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        done.append("folder" if is_folder else "file")
        fsync(descriptor)

    def note_replace(made, target):
        done.append("rename")
        replace(made, target)

    monkeypatch.setattr(os, "fsync", note_fsync)
    monkeypatch.setattr(os, "replace", note_replace)
    return done


@BOTH
def test_a_link_stays_and_its_target_is_replaced(tmp_path, put):
    (tmp_path / "real").mkdir()
    target, link, second = tmp_path / "real" / "a.csv", tmp_path / "b.csv", tmp_path / "c.csv"
    target.write_text("old")
    link.symlink_to("real/a.csv")
    second.symlink_to(link)
    assert put(second, "new") == second
    assert target.read_text() == "new"
    assert link.is_symlink()
    assert second.is_symlink()
    assert os.listdir(tmp_path / "real") == ["a.csv"]


def test_a_link_to_nothing_makes_what_it_names(tmp_path):
    link = tmp_path / "link.csv"
    link.symlink_to("new.csv")
    write_text_whole(link, "content")
    assert link.is_symlink()
    assert (tmp_path / "new.csv").read_text() == "content"


def test_links_that_lead_nowhere_are_an_error_and_stay(tmp_path):
    loop, lost = tmp_path / "loop.csv", tmp_path / "lost.csv"
    loop.symlink_to(loop)
    lost.symlink_to(tmp_path / "no" / "folder.csv")
    for link in (loop, lost):
        with pytest.raises(FileError, match="to write"):
            write_text_whole(link, "content")
        assert link.is_symlink()
    with pytest.raises(FileError, match="no folder"):
        check_destination(lost)


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444, 0o755])
def test_a_file_keeps_its_mode(tmp_path, mode):
    path = tmp_path / "a.csv"
    path.write_text("old")
    path.chmod(mode)
    write_text_whole(path, "new")
    assert path.read_text() == "new"
    assert mode_of(path) == mode


@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_a_new_file_has_the_mode_of_any_new_file(tmp_path, umask):
    before = os.umask(umask)
    try:
        write_text_whole(tmp_path / "a.csv", "new")
    finally:
        os.umask(before)
    assert mode_of(tmp_path / "a.csv") == 0o666 & ~umask


@pytest.mark.parametrize("name", ["x" * 251 + ".csv", "🦔" * 62 + ".csv"], ids=["ascii", "wide"])
def test_every_name_that_the_file_system_takes_can_be_written(tmp_path, name):
    write_text_whole(tmp_path / name, "content")
    assert os.listdir(tmp_path) == [name]


@BOTH
def test_a_pipe_is_written_to(tmp_path, put):
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    read = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    put(pipe, "content" * 20_000)
    reader.join(60)
    assert read == ["content" * 20_000]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert os.listdir(tmp_path) == ["pipe.csv"]


@BOTH
def test_a_socket_is_written_to(tmp_path, monkeypatch, put):
    monkeypatch.chdir(tmp_path)  # the paths of sockets are short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("s")
        server.listen()
        put("s", "content")
        connection, _ = server.accept()
        with connection:
            assert connection.recv(100) == b"content"
            assert connection.recv(100) == b""
    assert stat.S_ISSOCK(os.stat("s").st_mode)
    with pytest.raises(FileError, match="refused"):
        put("s", "content")
    assert stat.S_ISSOCK(os.stat("s").st_mode)


@BOTH
@pytest.mark.parametrize("link", [False, True])
def test_a_device_stays_a_device(tmp_path, put, link):
    device = make_device(tmp_path, "null")
    if link:
        (tmp_path / "link").symlink_to(device)
    put(tmp_path / "link" if link else device, "content")
    assert is_device(device)
    assert (tmp_path / "link").is_symlink() == link


@BOTH
def test_a_full_device_is_said_in_words(tmp_path, put):
    device = make_device(tmp_path, "full")
    with pytest.raises(FileError, match=r"No space left on device; check .* room"):
        put(device, "content")
    assert is_device(device)


@BOTH
def test_an_open_descriptor_is_written_on_where_it_is(tmp_path, put):
    """Others append to the same file: it is neither replaced nor written from its beginning."""
    path = tmp_path / "log"
    path.write_text("before\n")
    inode = path.stat().st_ino
    with path.open("a") as file:
        put(f"/dev/fd/{file.fileno()}", "content\n")
        link = tmp_path / "link.csv"
        link.symlink_to(f"/proc/self/fd/{file.fileno()}")
        put(link, "more\n")
    assert path.read_text() == "before\ncontent\nmore\n"
    assert path.stat().st_ino == inode
    with pytest.raises(FileError, match="to write"):
        put("/dev/fd/987", "content")


def test_standard_output_that_is_closed_is_not_another_file(tmp_path):
    """Without standard output its number is that of the first file that is opened."""
    code = (
        "import sys\n"
        "from sabal.core.files import write_text_whole\n"
        "from sabal.errors import FileError\n"
        "other = open('other', 'w')\n"
        "assert other.fileno() == 1 or sys.stdout is None\n"
        "try: write_text_whole('/dev/stdout', 'content')\n"
        "except FileError as error: sys.stderr.write(str(error))\n"
    )
    run = ["sh", "-c", f'exec {sys.executable} -c "$0" >&-', code]
    answer = subprocess.run(run, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    assert answer.returncode == 0, answer.stderr
    assert "expected to write standard output; got Bad file descriptor" in answer.stderr
    assert (tmp_path / "other").read_text() == ""


def test_what_is_a_stream(tmp_path):
    (tmp_path / "a.csv").write_text("")
    for path in (tmp_path, tmp_path / "a.csv", tmp_path / "none", "x" * 5_000, "-", "a\0"):
        assert not is_stream(path)
    assert is_stream("/dev/stdout")
    assert is_standard_output("/dev/stdout")
    assert is_standard_output("/proc/self/fd/1")
    assert not is_standard_output("/dev/null")


def test_a_batch_needs_an_ending_unless_it_goes_to_a_stream(tmp_path):
    assert check_destination(tmp_path / "a.JSONL") == ".jsonl"
    assert check_destination("/dev/null") == ".csv"
    assert check_destination("/dev/stdout") == ".csv"
    os.mkfifo(tmp_path / "pipe.parquet")
    assert check_destination(tmp_path / "pipe.parquet") == ".parquet"
    with pytest.raises(FileError, match="ends in"):
        check_destination(tmp_path / "null")


# What survives a power failure


def test_a_file_is_synced_before_it_is_renamed_and_the_folder_after(tmp_path, synced):
    write_text_whole(tmp_path / "a.csv", "content")
    assert synced == ["file", "rename", "folder"]


def test_a_model_is_synced_as_well(tmp_path, synced):
    journal = Journal(tmp_path)

    def save(path):
        path.write_bytes(b"model")
        return True

    journal.keep_model(0, save)
    assert synced[-3:] == ["file", "rename", "folder"]
    assert journal.model_path(0).read_bytes() == b"model"
    assert os.listdir(journal.model_path(0).parent) == ["model.safetensors"]


def test_a_model_that_cannot_be_kept_leaves_the_one_before(tmp_path):
    journal = Journal(tmp_path)
    journal.keep_model(0, lambda path: bool(path.write_bytes(b"model")))

    def fail(path):
        path.write_bytes(b"half")
        raise FileError("a", "b", "c")

    with pytest.raises(FileError):
        journal.keep_model(0, fail)
    journal.keep_model(0, lambda path: False)
    assert journal.model_path(0).read_bytes() == b"model"
    assert os.listdir(journal.model_path(0).parent) == ["model.safetensors"]


def test_a_folder_is_synced_with_all_that_is_in_it(tmp_path, synced):
    made = tmp_path / "made"
    (made / "sub").mkdir(parents=True)
    (made / "sub" / "a").write_text("")
    (made / "b").write_text("")
    move_into_place(made, tmp_path / "there")
    assert sorted(synced[:4]) == ["file", "file", "folder", "folder"]
    assert synced[4:] == ["rename", "folder"]
    with pytest.raises(FileError, match="to write"):
        move_into_place(made, tmp_path / "there")


def test_new_folders_are_synced(tmp_path, synced):
    make_folder(tmp_path / "a" / "b")
    assert synced == ["folder", "folder"]
    make_folder(tmp_path / "a" / "b")
    assert len(synced) == 2


@pytest.mark.parametrize(
    ("number", "is_told"),
    [(errno.EINVAL, False), (errno.ENOTSUP, False), (errno.EIO, True), (errno.ENOSPC, True)],
)
def test_only_file_systems_that_cannot_sync_folders_are_excused(
    tmp_path, monkeypatch, number, is_told
):
    def refuse(descriptor):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", refuse)
    if is_told:
        with pytest.raises(OSError, match=r"error|space"):
            sync_folder(tmp_path)
    else:
        sync_folder(tmp_path)


@pytest.mark.parametrize("links", [True, False])
def test_a_move_to_a_new_name_replaces_nothing(tmp_path, monkeypatch, links):
    def cannot_link(made, target):
        raise OSError(errno.EPERM, "Operation not permitted")

    if not links:
        monkeypatch.setattr(os, "link", cannot_link)
    made, target = tmp_path / "made", tmp_path / "target"
    write_bytes_whole(made, b"new")
    move_to_new(made, target)
    assert target.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["target"]
    write_bytes_whole(made, b"newer")
    with pytest.raises(FileError, match="to write"):
        move_to_new(made, target)
    assert target.read_bytes() == b"new"
