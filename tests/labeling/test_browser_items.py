"""Reviewing in a real browser: all items, another label, earlier answers, several items at once."""

from __future__ import annotations

import csv

import pytest

from browsing import all_saved, fits, shown, violations
from sabal.labeling.project import Project
from sabal.labeling.store.records import ImportedLabel, Submission
from waiting import until

TEXTS = {
    "sport": "The team won the final match in extra time.",
    "money": "Shares fell after the bank raised its rates.",
    "food": "Add the onions and let the soup simmer.",
}


@pytest.fixture
def news(open_quickly, tmp_path):
    """A project of texts with other columns, of which ada has labelled three, one wrongly."""
    with (tmp_path / "news.csv").open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["id", "text", "author"])
        for number in range(30):
            label = list(TEXTS)[number % 3]
            rows.writerow([f"{label}-{number}", f"{TEXTS[label]} Story {number}.", f"a{number}"])
    project = Project.create(
        tmp_path / "project",
        data=tmp_path / "news.csv",
        classes=list(TEXTS),
        backbone="tfidf",
        initial=6,
        check_share=0.0,
        name="News",
    )
    return open_quickly(project)


def answered(room, who="ada", count=3):
    """Answer items in the store, all but the first as they are; gives their ids."""
    with Project.open(room.folder) as project:
        items = [item.item for item in project.store.next_items(who, count)]
        for number, item in enumerate(items):
            right = item.split("-")[0]
            label = right if number else next(name for name in TEXTS if name != right)
            project.store.submit(Submission(f"{who}-{item}", who, item, label))
    return items


def current(room):
    return {item: label for item, label, _ in room.labels()}


def test_items_are_searched_filtered_and_given_another_label(news, visit):
    first, *others = answered(news)
    page = visit(news)
    shown(page)
    page.click("nav >> text=Items")
    assert page.inner_text(".count").startswith("30")
    assert violations(page) == []
    page.fill("[name=text]", "soup")
    page.keyboard.press("Enter")
    page.wait_for_url("**text=soup**")
    assert page.inner_text(".count").startswith("10")
    page.click("text=Clear")
    page.wait_for_url("**/items")
    page.select_option("[name=shown]", "labeled")
    page.wait_for_url("**shown=labeled**")
    assert page.inner_text(".count").startswith("3")

    page.click(f".tile[data-id='{first}']")
    page.wait_for_selector("#item-dialog[open]")
    assert violations(page) == []
    assert page.inner_text("#item-title") == first
    page.click("#item-details summary")
    assert f"a{first.split('-')[1]}" in page.inner_text("#item-columns")
    right = first.split("-")[0]
    page.keyboard.press(str(list(TEXTS).index(right) + 1))
    page.wait_for_selector(f"#item-said:has-text('ada: {right}')")
    assert current(news)[first] == right
    page.click("#item-history summary")
    assert page.locator("#item-events li").count() == 2, "what was said before is kept"
    rows = sorted([first, *others], key=lambda name: int(name.split("-")[1]))
    step = 1 if rows[0] == first else -1
    other = rows[rows.index(first) + step]
    page.keyboard.press("ArrowRight" if step > 0 else "ArrowLeft")
    page.wait_for_selector(f"#item-title:has-text('{other}')")
    page.keyboard.press("Escape")
    page.wait_for_selector("#item-dialog", state="hidden")
    until(lambda: page.evaluate(f"document.activeElement.textContent === '{other}'"))


def test_the_lead_decides_disagreements_one_by_one(news, visit):
    with Project.open(news.folder) as project:
        for item in (items := [each.item for each in project.store.next_items("ada", 2)]):
            project.store.submit(Submission(f"a{item}", "ada", item, "sport"))
        project.store.import_labels(ImportedLabel(item, "food", "bob") for item in items)
    page = visit(news, "cleo")
    page.goto(news.address + "dashboard")
    page.click("text=Decide 2 disagreements")
    for item in sorted(items, key=lambda name: int(name.split("-")[1])):
        page.wait_for_selector(f"#item-title:has-text('{item}')")
        assert "ada: sport · bob: food" in page.inner_text("#item-said")
        assert page.locator("#item-dialog [aria-pressed=true]").count() == 0  # nothing sways
        page.keyboard.press("Space")  # scrolls, and neither closes nor labels
        assert page.is_visible("#item-dialog")
        page.keyboard.press("3")
    page.wait_for_selector("#item-dialog", state="hidden")
    page.wait_for_selector(".count:has-text('0 items')")
    with Project.open(news.folder) as project:
        assert project.store.disagreements() == []
        assert {each.label for each in project.store.training_labels()} == {"food"}
        assert len(project.store.history()) == 6


def test_earlier_answers_come_back_after_a_reload(news, visit):
    items = answered(news)
    page = visit(news)
    fourth = shown(page)
    assert fourth not in items
    for item in reversed(items):
        page.keyboard.press("ArrowLeft")
        page.wait_for_selector(f"#stage[data-item='{item}']", state="attached")
    wrong = current(news)[items[0]]
    assert page.get_attribute(f"#classes [data-label='{wrong}']", "aria-pressed") == "true"
    right = items[0].split("-")[0]
    page.keyboard.press(str(list(TEXTS).index(right) + 1))
    assert shown(page, items[0]) == fourth
    all_saved(page)
    assert current(news)[items[0]] == right


def test_items_like_one_are_labelled_at_once_and_columns_are_shown(news, visit):
    page = visit(news, viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    first = shown(page)
    kind, number = first.split("-")
    page.tap("#info")
    page.wait_for_selector(f"#details:has-text('a{number}')")
    assert violations(page) == []
    page.tap("#bulk")
    page.wait_for_selector("#bulk-list li")
    assert violations(page) == []
    assert fits(page)
    page.select_option("#bulk-class", kind)
    assert page.is_disabled("#bulk-label")
    ids = page.eval_on_selector_all("#bulk-list input", "boxes => boxes.map(box => box.value)")
    alike = [each for each in ids if each.startswith(kind)]
    assert ids[: len(alike)] == alike, "the nearest come first"
    for each in alike[:2]:
        page.tap(f"#bulk-list label:has([value='{each}'])")
    page.tap("#bulk-label")
    page.wait_for_selector("#bulk-dialog", state="hidden")
    all_saved(page)
    assert current(news) == dict.fromkeys(alike[:2], kind)
    page.tap("#bulk")
    page.wait_for_selector("#bulk-list li")
    assert not page.query_selector(f"#bulk-list [value='{alike[0]}']")


def test_no_page_has_a_violation_in_light_or_dark_or_on_a_phone(news, visit):
    answered(news)
    phone = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
    for options in ({"color_scheme": "dark"}, phone):
        page = visit(news, **options)
        shown(page)
        for path in ("", "items", "items?shown=labeled", "dashboard", "help"):
            page.goto(news.address + path)
            if not path:
                shown(page)
            assert violations(page) == [], path
            assert fits(page), path
