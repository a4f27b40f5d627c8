"""A team in a real browser: the life of a project, from its start to its export.

One server, one browser, and several people.
"""

from __future__ import annotations

import csv
import json

from typer.testing import CliRunner

from browsing import all_saved, fits, shown, violations
from sabal.cli import app as command
from sabal.labeling.project import Project
from waiting import until

CLASSES = ("sport", "money", "food")
TEXTS = {
    "sport": "The team won the final match in extra time",
    "money": "Shares fell after the bank raised its rates",
    "food": "Add the onions and let the soup simmer",
}
GUIDELINE = (
    "# Topics\n\nThe **main** topic. <script>alert(1)</script> "
    "[more](https://example.org) [bad](javascript:alert(1)) ![no](https://example.org/x.png)"
)


def write_texts(path, numbers):
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["id", "text"])
        for number in numbers:
            topic = CLASSES[number % 3]
            rows.writerow([f"{topic}-{number}", f"{TEXTS[topic]}, part {number}."])
    return path


def run(*arguments):
    done = CliRunner().invoke(command, [str(each) for each in arguments])
    assert done.exit_code == 0, done.output
    return done.output


def new_link(page, name, role):
    """Add a person on the lead's page; gives their link."""
    page.fill("#new-person", name)
    page.select_option("#new-role", role)
    page.click("#add-person button")
    page.wait_for_selector("#link-dialog[open]")
    assert violations(page) == []
    link = page.input_value("#link")
    page.click("#link-dialog >> text=Done")
    return link


def label_all(page, count, mistake=False):
    """Label what comes by its id; with `mistake`, the first one wrongly. Gives the ids."""
    seen = []
    for _ in range(count):
        item = shown(page, seen[-1] if seen else "")
        topic = item.split("-")[0]
        position = CLASSES.index(topic)
        if mistake and not seen:
            position = (position + 1) % 3
        page.click(f"#classes button >> nth={position}")
        seen.append(item)
    all_saved(page)
    return seen


def test_the_life_of_a_project(tmp_path, open_room, visit):
    folder = tmp_path / "news"
    texts = write_texts(tmp_path / "texts.csv", range(30))
    run("init", folder, "--data", texts, "--classes", ",".join(CLASSES), "--backbone", "tfidf",
        "--initial", 4, "--batch", 4, "--check-share", 0, "--overlap", 2)  # fmt: skip
    room = open_room(Project.open(folder))

    # Three people: the lead comes first, and from then on nobody gets in without a link.
    lead = visit(room, None)
    lead.goto(room.address + "project")
    assert violations(lead) == []
    new_link(lead, "Ada", "lead")
    lead.wait_for_url(room.address)
    assert lead.inner_text("#person").split() == ["Ada", "lead"]
    lead.goto(room.address + "project")
    links = {}
    for name in ("Bob", "Cleo"):
        links[name] = new_link(lead, name, "annotator")
        lead.wait_for_selector(f"[data-person={name}]")
    stranger = visit(room, None)
    assert "login" in stranger.url
    phone = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
    bob, cleo = visit(room, None), visit(room, None, **phone)
    bob.goto(links["Bob"])
    cleo.goto(links["Cleo"])
    assert bob.inner_text("#person").split() == ["Bob", "annotator"]
    assert bob.inner_text("nav").split() == ["Label", "Items", "Help"]
    refused = bob.goto(room.address + "project")
    assert refused.status == 403
    bob.goto(room.address)

    # A class is renamed and a guideline written while people label; their pages follow.
    shown(bob)
    lead.click("[data-class=money] >> text=Rename")
    assert violations(lead) == []
    lead.fill("#class-name", "finance")
    lead.keyboard.press("Enter")
    lead.wait_for_selector("[data-class=finance]")
    lead.fill("#guideline", GUIDELINE)
    lead.click("#guidelines button")
    lead.wait_for_selector("#news:has-text('saved')")
    assert violations(lead) == []
    bob.wait_for_selector("#classes [data-label=finance]")
    shown(bob)
    bob.keyboard.press("h")
    bob.wait_for_selector(".guidelines strong")
    assert violations(bob) == []
    html = bob.inner_html(".guidelines")
    assert "<script" not in html
    assert "<img" not in html
    assert 'href="javascript' not in html
    bob.keyboard.press("Escape")

    # Two people label the same four items, and disagree on one.
    cleo.reload()
    both = label_all(bob, 4, mistake=True)
    assert set(label_all(cleo, 4)) == set(both)
    assert violations(cleo) == []
    assert fits(cleo)

    # The lead decides.
    lead.goto(room.address + "disagreements")
    lead.wait_for_selector(f"#item-title:has-text('{both[0]}')")
    assert violations(lead) == []
    right = CLASSES.index(both[0].split("-")[0])
    lead.click(f"#classes button >> nth={right}")
    lead.wait_for_selector("#item-dialog", state="hidden")

    # New data, while the app runs.
    added = run("add", folder, write_texts(tmp_path / "more.csv", range(30, 36)))
    assert "6" in added
    lead.goto(room.address + "items?text=part+35")
    assert lead.inner_text(".count").startswith("1")

    # Bob corrects an answer of his on the items page, where he sees his own only.
    bob.goto(room.address + "items")
    assert "Cleo" not in bob.content()
    bob.click(f".tile[data-id='{both[1]}']")
    bob.wait_for_selector("#item-dialog[open]")
    other = (CLASSES.index(both[1].split("-")[0]) + 1) % 3
    bob.click(f"#classes button >> nth={other}")
    bob.wait_for_selector("#item-history:has-text('History')")
    while bob.locator("#item-events li").count() < 2:
        bob.wait_for_timeout(50)

    # Two people differ on an item that nobody decided: the model disagrees with one of them.
    def disagrees():
        lead.goto(room.address + "items?shown=model")
        return lead.locator(f".tile[data-id='{both[1]}']").count() == 1

    until(disagrees)

    # The model has learned meanwhile, and predicts; everything is in the export.
    lead.goto(room.address + "dashboard")
    lead.wait_for_selector("#batch-title:has-text('batch 2')")
    assert violations(lead) == []
    run("predict", folder, tmp_path / "more.csv", "--out", tmp_path / "predicted.csv")
    assert len((tmp_path / "predicted.csv").read_text().splitlines()) == 7
    run("export", folder, "--out", tmp_path / "labels.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "labels.jsonl").read_text().splitlines()]
    given = {(row["id"], row["annotator"]): row["label"] for row in rows}
    present = ("sport", "finance", "food")
    assert given[both[0], "Ada"] == present[right]
    assert given[both[1], "Bob"] == present[other]
    assert "money" not in set(given.values())
    for page in (stranger, bob, lead):
        page.trouble[:] = [each for each in page.trouble if "403" not in each]
