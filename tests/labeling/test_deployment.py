"""The app behind a web server, on its own address; and data that are not where they were."""

from __future__ import annotations

import shutil
import warnings

import pytest
from PIL import Image

from browsing import all_saved, shown
from sabal.errors import FileError, InputError
from sabal.labeling.project import Project
from sabal.labeling.web import create_app
from sabal.labeling.web.server import _address, _hosts, check_public_url

with warnings.catch_warnings():
    # With the older httpx it works as well, and says so.
    warnings.simplefilter("ignore")
    from fastapi.testclient import TestClient

PUBLIC = "https://label.example.org"
TOKEN = "sixteen-letters-1"  # noqa: S105


def photos_project(folder, **more):
    (folder / "photos").mkdir()
    for k in range(4):
        Image.new("RGB", (4, 4), (40 * k, 0, 0)).save(folder / "photos" / f"{k}.png")
    return Project.create(folder / "p", data=folder / "photos", classes=["a", "b"], **more)


@pytest.fixture
def project(tmp_path):
    with photos_project(tmp_path, backbone="pixels") as project:
        yield project


def test_a_proxy_may_pass_the_public_host_on_or_its_own(project):
    app = create_app(
        project, token=TOKEN, allowed_hosts=_hosts(True, PUBLIC), public_url=PUBLIC, worker=False
    )
    client = TestClient(app, base_url="http://127.0.0.1:8760")
    bearer = {"authorization": f"Bearer {TOKEN}"}
    undo = {"submission": "11111111-1111-4111-8111-111111111111", "annotator": "ann"}
    for host in ("label.example.org", "127.0.0.1:8760"):
        for origin in (PUBLIC, None, "https://evil.example", "http://label.example.org:81"):
            headers = {**bearer, "host": host, **({"origin": origin} if origin else {})}
            code = client.post("/api/undo", json=undo, headers=headers).status_code
            assert code == (200 if origin in (PUBLIC, None) else 403), (host, origin)
    refused = client.get("/api/status", headers={**bearer, "host": "evil.example"})
    assert refused.status_code == 400
    cookie = client.get(f"/login?token={TOKEN}", follow_redirects=False).headers["set-cookie"]
    assert "secure" in cookie.lower()


@pytest.mark.parametrize("status", [404, 502, 503])
def test_what_a_web_server_says_instead_of_the_app_is_taken_as_that(room, visit, digits, status):
    page = visit(room)
    shown(page)
    page.wait_for_load_state("networkidle")
    sorry = {"status": status, "content_type": "text/html", "body": "<h1>Sorry</h1>"}
    page.route("**/api/**", lambda route: route.fulfill(**sorry))
    item = shown(page)
    page.keyboard.press(digits[1][item])
    page.wait_for_selector("#trouble:has-text('The web server does not reach the app')")
    assert "1 answer is kept in this browser" in page.inner_text("#trouble")
    page.unroute("**/api/**")
    all_saved(page)
    assert room.labels() == [(item, digits[1][item], "ada")]
    page.trouble[:] = [each for each in page.trouble if f"status of {status}" not in each]


@pytest.mark.parametrize(
    ("given", "origin"),
    [
        ("https://Label.Example.org/", PUBLIC),
        ("https://label.example.org:443", PUBLIC),
        ("http://10.0.0.2:8080", "http://10.0.0.2:8080"),
        ("https://[::1]:8443", "https://[::1]:8443"),
    ],
)
def test_a_public_url_is_an_origin(given, origin):
    assert check_public_url(given) == origin
    assert _address("127.0.0.1", 1, "t", origin) == f"{origin}/login?token=t"
    assert _address("127.0.0.1", 1, None, origin) == f"{origin}/"


@pytest.mark.parametrize(
    "given", ["label.example.org", "ftp://x", "https://x/path", "", "https://x:y"]
)
def test_what_is_no_public_url_is_refused(given):
    with pytest.raises(InputError, match="public URL"):
        check_public_url(given)


def test_images_that_are_gone_are_said_at_start(project, tmp_path):
    assert project.missing_images() == []
    (tmp_path / "photos" / "2.png").unlink()
    assert project.missing_images() == ["2.png"]
    shutil.move(tmp_path / "photos", tmp_path / "moved")
    with pytest.raises(FileError, match="set `data`"):
        project.missing_images()
    path = project.folder / "sabal.toml"
    path.write_text(path.read_text().replace(str(tmp_path / "photos"), str(tmp_path / "moved")))
    with Project.open(project.folder) as again:
        assert again.missing_images() == ["2.png"]


@pytest.mark.parametrize("name", ["pixel", "Pixels", "tfidf", "efficientnet-lite0", "atuo"])
def test_a_misspelt_backbone_is_refused_before_anything_is_made(tmp_path, name):
    with pytest.raises(InputError, match="backbone"):
        photos_project(tmp_path, backbone=name)
    assert not (tmp_path / "p" / "sabal.toml").exists()
