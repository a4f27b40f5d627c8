"""Attacks by content: paths, texts and names, images, files to import and to open elsewhere."""

from __future__ import annotations

import asyncio
import csv
import io
import re
import threading
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import quote, unquote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image, ImageOps
from PIL.PngImagePlugin import PngInfo

import sabal
from sabal.errors import FileError
from sabal.labeling import sources
from sabal.labeling.exchange import answer_rows as exchange_rows
from sabal.labeling.exchange import formats
from sabal.labeling.exchange.exporting import export_file
from sabal.labeling.exchange.importing import import_file
from sabal.labeling.features.image_features import open_image
from sabal.labeling.project import Project
from sabal.labeling.store.records import NewBatchItem
from sabal.labeling.web import create_app, media
from security_helpers import client_of, label, text_project

PACKAGE = Path(sabal.__file__).parent
WEB = PACKAGE / "labeling" / "web"
ATTACK = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'><svg onload=alert(3)>"
FORMULAS = ["=1+1", "+1", "-1+cmd", "@SUM(1)", "\t=1", "\r=2", "'=3", "''@x", "'plain", "plain"]


@pytest.fixture
def project(tmp_path):
    with text_project(tmp_path / "texts") as project:
        yield project


@pytest.fixture
def client(project):
    with client_of(project) as client:
        yield client


# Paths.

TRAVERSALS = [
    "../p/sabal.toml",
    "..%2fp%2fsabal.toml",
    "%2e%2e/p/sabal.toml",
    "%2e%2e%2fp%2fsabal.db",
    "..%252fp%252fsabal.toml",
    "%252e%252e%252fp",
    "....//....//etc/passwd",
    "..%5cp%5csabal.toml",
    "..\\p\\sabal.toml",
    "/etc/passwd",
    "%2fetc%2fpasswd",
    "//etc/passwd",
    "file:///etc/passwd",
    "inside.png%00.txt",
    "%00",
    "inside.png/..",
    "hop/../inside.png",
    "..",
    ".",
    "%c0%ae%c0%ae%2fp",
    "%uff0e%uff0e/p",
    "outside.png",
    "hop/secret.png",
    "hop%2fsecret.png",
    ".hidden.png",
    "A" * 5000,
]


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """A folder of images with links that lead out of it, and a secret beside it."""
    folder = tmp_path_factory.mktemp("pictures")
    photos, elsewhere = folder / "photos", folder / "elsewhere"
    photos.mkdir()
    elsewhere.mkdir()
    for path in (photos / "inside.png", photos / ".hidden.png", elsewhere / "secret.png"):
        Image.new("L", (4, 4), 9).save(path)
    (photos / "outside.png").symlink_to(elsewhere / "secret.png")
    (photos / "hop").symlink_to(elsewhere, target_is_directory=True)
    (photos / "loop.png").symlink_to(photos / "loop.png")
    with Project.create(folder / "p", data=photos, classes=["a", "b"]) as project:
        yield project


@pytest.mark.parametrize("prefix", ["/media/", "/static/", "/media/photos/", "/static/../"])
def test_nothing_outside_of_the_folder_is_served(pictures, prefix):
    app = create_app(pictures, worker=False)
    for path in TRAVERSALS:
        status, kind, body = asyncio.run(get_raw(app, prefix + path))
        assert 300 <= status < 500, path
        assert kind.startswith(("application/json", "text/plain")), path
        assert b"lease_seconds" not in body
        assert b"root:" not in body


async def get_raw(app, path):
    """A request whose path nobody tidies up on the way, as the server hands it over."""
    raw = path.encode()
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": unquote(path),
        "raw_path": raw,
        "root_path": "",
        "query_string": b"",
        "headers": [(b"host", b"127.0.0.1:8760")],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 8760),
    }
    sent = []

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message):
        sent.append(message)

    await app(scope, receive, send)
    headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    body = b"".join(message.get("body", b"") for message in sent[1:])
    return sent[0]["status"], headers["content-type"], body


def test_an_image_inside_is_served_and_a_link_out_is_not(pictures):
    keys = {item.key for item in pictures.items}
    assert {"inside.png", "outside.png", "loop.png"} <= keys
    assert not keys & {".hidden.png", "hop/secret.png"}
    with client_of(pictures) as client:
        assert client.get("/media/inside.png").status_code == 200
        for name in ("outside.png", "loop.png"):
            assert client.get(f"/media/{name}").status_code == 404
    for name in ("../elsewhere/secret.png", "/etc/passwd", "outside.png", "a\0b", "", "."):
        with pytest.raises(FileError):
            pictures.data_file(name)


def test_a_table_cannot_name_files_elsewhere(tmp_path):
    Image.new("L", (4, 4)).save(tmp_path / "secret.png")
    (tmp_path / "data").mkdir()
    names = ["../secret.png", str(tmp_path / "secret.png"), "none.png"]
    data = tmp_path / "data" / "pool.parquet"
    pq.write_table(pa.table({"image": names, "features": [[0.0], [1.0], [2.0]]}), data)
    with (
        Project.create(tmp_path / "p", data=data, classes=["a", "b"]) as project,
        client_of(project) as client,
    ):
        for item in project.items:
            answer = client.get(f"/media/{item.key}")
            assert answer.status_code == 404
            assert answer.json()["error"]["fix"]


# What people wrote.


class Elements(HTMLParser):
    """Tags and attributes of a page, as a browser sees them."""

    def __init__(self, text):
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str | None]] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]


def test_names_and_texts_are_text_everywhere(tmp_path):
    """The pages have the same elements whatever people wrote, and JSON is not taken for HTML."""

    def pages(folder, word):
        with (
            text_project(
                folder,
                texts=(word, "two"),
                classes=(word, "other"),
                name=word,
                ids={0: word},
                show_guess=True,
            ) as project,
            client_of(project) as client,
        ):
            answer = client.post("/api/labels", json=label(word, word, annotator=word[:80]))
            assert answer.status_code == 200
            project.store.set_state("failed", 1.0, word)
            texts = {path: client.get(path).text for path in ("/", "/dashboard", "/help")}
            for path in (
                "/api/batch?round=0",
                "/api/status",
                "/api/next?annotator=bob&count=9",
                "/api/export?format=jsonl",
                f"/api/export?format={ATTACK}",
                f"/media/{ATTACK}",
                f"/{ATTACK}",
            ):
                told = client.get(path)
                assert not told.headers["content-type"].startswith("text/html"), path
                assert told.headers["x-content-type-options"] == "nosniff"
            return texts

    plain, attacked = pages(tmp_path / "plain", "plain"), pages(tmp_path / "nasty", ATTACK)
    for path, text in attacked.items():
        found, expected = Elements(text), Elements(plain[path])
        assert found.tags == expected.tags, path
        names = [(tag, name) for tag, name, _ in found.attributes]
        assert names == [(tag, name) for tag, name, _ in expected.attributes]
        assert not any(name.startswith("on") or name == "style" for _, name in names)
        links = [value for _, name, value in found.attributes if name in ("href", "src", "action")]
        assert all(value.startswith(("/", "#")) and value[1:2] != "/" for value in links)


def test_templates_and_scripts_have_no_way_around_the_policy():
    markup = "|".join(
        [r"<style", r"\sstyle=", r"\son[a-z]+=", "javascript:", r"\|\s*safe", "autoescape"]
    )
    script = "|".join(
        ["innerHTML", "outerHTML", "insertAdjacentHTML", r"document\.write", r"\beval\(",
         r"new Function", r"setAttribute\(\"(on|style)", r"set(Timeout|Interval)\(\s*[\"'`]"]
    )  # fmt: skip
    files = sorted((WEB / "templates").glob("*.html")) + sorted((WEB / "static").iterdir())
    assert {path.suffix for path in files} == {".html", ".js", ".css", ".svg"}
    for path in files:
        text = path.read_text(encoding="utf-8")
        assert not re.search(markup, text) or path.suffix in (".js", ".css"), path.name
        assert path.suffix != ".js" or not re.search(script, text), path.name
        assert all("src=" in tag for tag in re.findall(r"<script[^>]*>", text)), path.name


def test_the_policy_allows_nothing_inline_and_nothing_from_elsewhere(client):
    for path in ("/", "/dashboard", "/help", "/login", "/api/status", "/nowhere", "/media/none"):
        headers = client.get(path, follow_redirects=False).headers
        policy = dict(part.split(" ", 1) for part in headers["content-security-policy"].split("; "))
        assert policy["default-src"] == "'self'"
        assert {policy[name] for name in ("object-src", "base-uri", "frame-ancestors")} == {
            "'none'"
        }
        assert policy["form-action"] == "'self'"
        assert set(policy) <= {
            "default-src", "object-src", "base-uri", "frame-ancestors", "form-action",
        }  # fmt: skip
        assert headers["cross-origin-resource-policy"] == "same-origin"


# Images and files that are too much.


def png_that_claims(width, height):
    """A PNG of a few bytes whose header promises an enormous image."""

    def chunk(kind, data):
        body = kind + data
        return len(data).to_bytes(4, "big") + body + zlib.crc32(body).to_bytes(4, "big")

    header = width.to_bytes(4, "big") + height.to_bytes(4, "big") + bytes([8, 0, 0, 0, 0])
    parts = (chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(b"")), chunk(b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


@pytest.mark.parametrize("side", [7_100, 11_000, 60_000])
def test_images_that_unpack_to_gigabytes_are_refused(tmp_path, side):
    (tmp_path / "photos").mkdir()
    Image.new("L", (8, 8)).save(tmp_path / "photos" / "good.png")
    bomb = tmp_path / "photos" / "bomb.png"
    bomb.write_bytes(png_that_claims(side, side))
    for read in (media.reencoded, open_image):
        # Refused for its size, before it is found to be incomplete; larger ones by Pillow itself.
        with pytest.raises(FileError, match=f"{side} x {side}" if side == 7_100 else None):
            read(bomb)
    with (
        Project.create(tmp_path / "p", data=tmp_path / "photos", classes=["a", "b"]) as project,
        client_of(project) as client,
    ):
        refused = client.get("/media/bomb.png")
        assert refused.status_code == 404
        assert str(tmp_path) not in refused.text


@pytest.mark.parametrize("side", [40, 400])
@pytest.mark.parametrize("ending", ["jpg", "gif", "png", "webp", "tif", "bmp"])
def test_nothing_but_the_pixels_of_an_image_is_served(tmp_path, ending, side):
    """Comments, and what cameras write beside a picture."""
    secret = b"SECRET"
    exif, text = Image.Exif(), PngInfo()
    exif[0x010E] = secret.decode()
    text.add_text("Comment", secret.decode())
    image = Image.new("RGB", (side, side), (200, 30, 30))
    more = {"jpg": {"exif": exif}, "webp": {"exif": exif}, "png": {"pnginfo": text}}
    more["tif"] = {"description": secret.decode()}
    path = tmp_path / f"picture.{ending}"
    given = more.get(ending, {})
    image.save(path, comment=secret, icc_profile=secret, xmp=secret, **given)
    assert secret in path.read_bytes() or ending == "bmp"
    served, _ = media.reencoded(path)
    assert secret not in served
    with Image.open(io.BytesIO(served)) as shown:
        assert shown.size == (side, side)
        assert not {"comment", "exif", "icc_profile", "xmp", "Comment"} & shown.info.keys()
        assert np.allclose(np.asarray(shown.convert("RGB"))[5, 5], (200, 30, 30), atol=8)


def test_transparent_images_stay_transparent(tmp_path):
    image = Image.new("P", (400, 400), 0)
    image.putpalette([255, 0, 0, 0, 255, 0])
    image.paste(1, (0, 0, 200, 400))
    image.save(tmp_path / "half.gif", transparency=0, comment=b"SECRET")
    served, kind = media.reencoded(tmp_path / "half.gif")
    assert kind == "image/png"
    assert b"SECRET" not in served
    with Image.open(io.BytesIO(served)) as shown:
        assert shown.convert("RGBA").getpixel((300, 9))[3] == 0
        assert shown.convert("RGBA").getpixel((100, 9)) == (0, 255, 0, 255)


def test_images_whose_names_have_line_breaks_are_shown(tmp_path):
    for name in ("two\nlines", "\r\n", "end\n", "a\u2028b", "tab\tand\x0b"):
        folder = tmp_path / "photos" / f"in {name}"
        folder.mkdir(parents=True)
        Image.new("L", (4, 4)).save(folder / f"{name}.png")
    with (
        Project.create(tmp_path / "p", data=tmp_path / "photos", classes=["a", "b"]) as project,
        client_of(project) as client,
    ):
        project.store.add_round(0, [NewBatchItem(row) for row in range(5)], strategy="random")
        for item in project.items:
            assert client.get(f"/media/{quote(item.key, safe='')}").status_code == 200
            assert client.post("/api/labels", json=label(item.key, "a")).status_code == 200
        assert len(project.store.labels()) == 5
        for form in ("csv", "jsonl", "parquet"):
            path = export_file(project.store, tmp_path / f"labels.{form}", form)
            assert import_file(project.store, path).unknown == []


def test_a_file_that_calls_itself_an_image_starts_no_program(tmp_path):
    """PostScript is drawn by another program, if Pillow is let: it is not."""
    out = io.BytesIO()
    Image.new("L", (8, 8)).save(out, "EPS")
    path = tmp_path / "picture.png"
    path.write_bytes(out.getvalue())
    for read in (media.reencoded, open_image):
        with pytest.raises(FileError, match="cannot identify"):
            read(path)


def test_a_file_to_import_has_an_end(project, tmp_path, monkeypatch):
    small, large = tmp_path / "small.csv", tmp_path / "large.csv"
    small.write_text("id,label\nt0,cat\n")
    large.write_text("id,label\n" + "t1,cat\n" * 1_000)
    packed = tmp_path / "packed.parquet"
    rows = 5_000
    pq.write_table(pa.table({"id": ["t1"] * rows, "label": [f"{n}" for n in range(rows)]}), packed)
    # Packed, the table is within the limit.
    largest = {large: 2_000, packed: packed.stat().st_size, Path("/dev/zero"): 10_000}
    for path, limit in largest.items():
        monkeypatch.setattr(exchange_rows, "MAX_FILE_BYTES", limit)
        with pytest.raises(FileError, match="split it"):
            import_file(project.store, path, "csv" if path.name == "zero" else None)
    assert project.store.history() == []
    assert import_file(project.store, small).labels == 1


def test_a_small_parquet_file_of_many_rows_is_refused_before_it_is_decoded(tmp_path, monkeypatch):
    """Encoded, a million equal rows or one long text a hundred times take a few bytes."""
    limit = 2**20
    monkeypatch.setattr(exchange_rows, "MAX_FILE_BYTES", limit)
    monkeypatch.setattr(exchange_rows, "MAX_FILE_ROWS", 300_000)
    tables = {
        "rows": pa.table({"id": ["i0"] * 310_000, "label": ["a"] * 310_000}),
        "values": pa.table({"id": ["i0"] * 250_000, "label": ["a long name"] * 250_000}),
        "texts": pa.table({"id": ["x" * 50_000] * 100, "label": ["a"] * 100}),
        "numbers": pa.table({"id": [7] * 290_000, "label": ["a"] * 290_000}),
    }
    for name, table in tables.items():
        path = tmp_path / f"{name}.parquet"
        pq.write_table(table, path)
        groups = pq.ParquetFile(path).metadata
        encoded = sum(groups.row_group(k).total_byte_size for k in range(groups.num_row_groups))
        assert encoded < limit
        seen, batches = [], formats.parquet_batches(path, ["id", "label"], name)
        with pytest.raises(FileError, match="300000 rows" if name == "rows" else "1 MB"):
            seen.extend(row for batch in batches for row in batch.to_pylist())
        assert sum(len(str(row["id"])) + len(row["label"]) for row in seen) <= limit, name


def test_a_small_table_of_many_items_is_refused_before_it_is_decoded(tmp_path, monkeypatch):
    monkeypatch.setattr(exchange_rows, "MAX_FILE_ROWS", 3_000)
    monkeypatch.setattr(sources, "MAX_DATA_BYTES", 2**20)
    for name, table in {
        "rows": pa.table({"text": ["a"] * 4_000}),
        "texts": pa.table({"text": ["x" * 50_000] * 100}),
        "features": pa.table({"features": [[1.0]] * 4_000}),
    }.items():
        path = tmp_path / f"{name}.parquet"
        pq.write_table(table, path)
        with pytest.raises(FileError, match="split it"):
            sources.read_source(path)
    pq.write_table(pa.table({"id": ["a", "b"], "text": ["one", "two"]}), path)
    assert [item.content for item in sources.read_source(path).items] == ["one", "two"]


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_a_file_of_short_rows_has_an_end(project, tmp_path, monkeypatch, form):
    monkeypatch.setattr(exchange_rows, "MAX_FILE_ROWS", 50)
    path = tmp_path / f"rows.{form}"
    row = "t0,cat\n" if form == "csv" else '{"id": "t0", "label": "cat"}\n'
    path.write_text(("id,label\n" if form == "csv" else "") + 60 * row)
    with pytest.raises(FileError, match="50 rows"):
        import_file(project.store, path)


def test_large_images_are_made_small_before_they_are_copied(tmp_path, monkeypatch):
    """Ten photographs of 49 megapixels at a time left a gigabyte."""
    seen = []
    transpose = ImageOps.exif_transpose
    monkeypatch.setattr(
        "PIL.ImageOps.exif_transpose", lambda image: seen.append(image.size) or transpose(image)
    )
    path = tmp_path / "large.jpg"
    exif = Image.Exif()
    exif[0x0112] = 6  # lies on its side
    Image.new("RGB", (3000, 1500), (9, 99, 199)).save(path, exif=exif)
    assert open_image(path).size == (512, 1024)
    served, _ = media.reencoded(path)
    with Image.open(io.BytesIO(served)) as shown:
        assert shown.size == (512, 1024)
    assert seen == [(1024, 512)] * 2


def test_few_images_are_decoded_at_a_time(pictures, monkeypatch):
    lock, under_way, most = threading.Lock(), [], []
    decoded = media.reencoded

    def counted(path, side):
        with lock:
            under_way.append(path)
            most.append(len(under_way))
        try:
            time.sleep(0.01)
            return decoded(path, side)
        finally:
            with lock:
                under_way.pop()

    monkeypatch.setattr(media, "reencoded", counted)
    with client_of(pictures) as client, ThreadPoolExecutor(10) as people:
        asked = [people.submit(client.get, "/media/inside.png") for _ in range(20)]
        assert {each.result().status_code for each in asked} == {200}
    assert max(most) <= media.MAX_CONCURRENT


# Files for a spreadsheet.


def test_a_spreadsheet_runs_nothing_and_comes_home_as_it_was(tmp_path):
    texts = [f"text {n}" for n in range(len(FORMULAS))]
    ids = dict(enumerate(FORMULAS))
    classes = tuple(FORMULAS)
    with (
        text_project(tmp_path / "a", texts, classes, ids=ids) as one,
        text_project(tmp_path / "b", texts, classes, ids=ids) as two,
    ):
        with client_of(one) as client:
            for word in FORMULAS:
                who = word if word.strip() == word else f"@{word.strip()}"
                sent = client.post("/api/labels", json=label(word, word, annotator=who))
                assert sent.status_code == 200
            told = client.get("/api/export?format=csv").text
        path = export_file(one.store, tmp_path / "labels.csv", "csv")
        assert path.read_bytes().decode() == told
        cells = [cell for row in csv.reader(io.StringIO(told, newline="")) for cell in row]
        assert len(cells) > 50
        assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@", "\t", "\r"))]
        assert import_file(two.store, path).labels == len(FORMULAS)
        kept = [[(r.id, r.label, r.annotator) for r in each.store.labels()] for each in (one, two)]
        assert kept[0] == kept[1]
        assert (
            export_file(two.store, tmp_path / "again.csv", "csv").read_bytes() == path.read_bytes()
        )
