"""The labelling page in a real browser, driven by the keyboard as a person does."""

from __future__ import annotations

from browsing import all_saved, answer_all, digit_project, shown
from disk_limits import no_file_above
from sabal.labeling.project import Project
from waiting import until

INSIDE_WINDOW = """() => {
  const list = document.getElementById("classes").getBoundingClientRect();
  const end = Math.min(list.bottom, innerHeight) + 1;
  return [...document.querySelectorAll("#classes button")]
    .filter((button) => button.getBoundingClientRect().bottom <= end).length;
}"""
WATCH_NEWS = """() => {
  const watch = (id) => {
    const told = [];
    const place = document.getElementById(id);
    new MutationObserver(() => told.push(place.textContent)).observe(place, {childList: true});
    return told;
  };
  window.told = watch("training");
  window.waited = watch("message-title");
}"""


def test_a_batch_by_keyboard_then_the_model_learns_and_the_next_batch_comes(
    open_room, visit, digits, tmp_path
):
    room = open_room(digit_project(tmp_path, digits))
    page = visit(room)
    assert page.title() == "Label · Digits"
    page.evaluate(WATCH_NEWS)
    first = answer_all(page, digits[1], 7)  # six items, and a check
    assert len(set(first)) == 7
    page.wait_for_selector("#batch-number:has-text('2')")
    while "The model has learned: batch 2 is here" not in page.evaluate("window.told"):
        page.wait_for_timeout(100)
    second = answer_all(page, digits[1], 6)
    # Somebody who works alone waits for the model, and never for others.
    assert "Nothing open for you" not in page.evaluate("window.waited")
    assert not set(first) & set(second)
    assert {(item, digits[1][item], "ada") for item in first + second} == set(room.labels())

    page.click("nav >> text=Dashboard")
    page.wait_for_selector("svg.curve")
    assert "Too early to say" in page.inner_text(".advice")
    assert page.inner_text(".figures dd >> nth=0").startswith("13")


def test_undo_goes_back_one_by_one(room, visit, digits):
    page = visit(room)
    first, second, third = answer_all(page, digits[1], 3)
    fourth = shown(page, third)
    page.keyboard.press("u")
    assert shown(page, fourth) == third
    page.keyboard.press("u")
    assert shown(page, third) == second
    all_saved(page)
    assert [item for item, _, _ in room.labels()] == [first]
    page.keyboard.press("0")
    all_saved(page)
    assert (second, "0", "ada") in room.labels()


def test_undo_reaches_back_beyond_a_reload(room, visit, digits):
    page = visit(room)
    first = answer_all(page, digits[1], 1)[0]
    page.reload()
    second = shown(page)
    assert second != first
    page.keyboard.press("u")
    assert shown(page, second) == first
    assert room.labels() == []
    page.keyboard.press(digits[1][first])
    assert shown(page, first) == second
    page.keyboard.press("u")
    page.keyboard.press("u")
    page.wait_for_selector("#last:has-text('Nothing to undo')")


def test_skipping(room, visit):
    page = visit(room)
    first = shown(page)
    page.keyboard.press("s")
    shown(page, first)
    all_saved(page)
    assert room.skipped() == [first]
    assert room.labels() == []


def test_a_reload_in_the_middle_goes_on_where_it_was(room, visit, digits):
    page = visit(room)
    answered = answer_all(page, digits[1], 3)
    fourth = shown(page, answered[-1])
    page.reload()
    assert shown(page) == fourth
    assert page.inner_text("#person") == "ada"
    assert not page.is_visible("#name-dialog")
    assert [item for item, _, _ in room.labels()] == answered


def test_two_people_never_get_the_same_item(room, visit, digits):
    ada, bob = visit(room, "ada"), visit(room, "bob")
    mine, yours = [shown(ada)], [shown(bob)]
    for page, seen in [(ada, mine), (bob, yours), (ada, mine)]:
        page.keyboard.press(digits[1][seen[-1]])
        all_saved(page)
        if len(room.labels()) < 3:
            seen.append(shown(page, seen[-1]))
    assert not set(mine) & set(yours)
    assert {who for _, _, who in room.labels()} == {"ada", "bob"}
    assert len({item for item, _, _ in room.labels()}) == 3


def test_two_tabs_under_one_name_say_what_the_other_did(room, visit):
    one = visit(room)
    first = shown(one)
    two = one.context.new_page()
    two.goto(room.address)
    assert shown(two) == first
    one.keyboard.press("3")
    all_saved(one)
    two.keyboard.press("7")
    two.wait_for_selector("#last:has-text('instead of 3, which you had said in another tab')")
    assert room.labels() == [(first, "7", "ada")]


def test_who_has_answered_all_is_told_that_another_person_is_waited_for(
    open_quickly, visit, digits, tmp_path
):
    room = open_quickly(digit_project(tmp_path, digits, overlap=2))
    page = visit(room)
    answer_all(page, digits[1], 7)
    page.wait_for_selector("#message-text:has-text('7 items wait for a second annotator')")
    assert page.inner_text("#batch-text") == "0 of 7 · 7 partly answered"
    page.goto(room.address + "dashboard")
    assert "7 items wait for a second annotator" in page.inner_text("#main")


def test_the_guess_is_nowhere_before_the_answer(open_room, visit, digits, tmp_path):
    room = open_room(digit_project(tmp_path, digits, show_guess=True))
    page = visit(room)
    received = []
    page.on("response", lambda response: received.append(response))
    answer_all(page, digits[1], 7)
    item = shown(page)
    page.wait_for_selector("#batch-number:has-text('2')")
    with Project.open(room.folder) as project:
        second = {each.item: each.why["guess"] for each in project.store.batch(1)}
    while item not in second:
        page.keyboard.press(digits[1][item])
        item = shown(page, item)
    all_saved(page)
    probability = str(second[item]["probability"])
    assert "guess" not in page.inner_html("#stage")
    assert "guess" not in page.inner_text("#last")
    assert not [each for each in received if "/api/" in each.url and probability in each.text()]
    page.keyboard.press(digits[1][item])
    page.wait_for_selector("#last:has-text('the model')")


def test_what_is_said_while_the_server_is_away_is_kept_and_sent_once(room, visit, digits):
    page = visit(room)
    items = [shown(page)]
    page.wait_for_load_state("networkidle")
    page.context.set_offline(True)
    page.keyboard.press(digits[1][items[0]])
    items.append(shown(page, items[0]))
    page.keyboard.press(digits[1][items[1]])
    page.wait_for_selector("#saved[data-state=stuck]")
    assert room.labels() == []
    kept = page.evaluate("Object.keys(localStorage).filter(key => key.includes('outbox')).length")
    assert kept == 2
    page.context.set_offline(False)
    page.reload()
    all_saved(page)
    assert shown(page) not in items
    assert room.labels() == [(item, digits[1][item], "ada") for item in items]
    # The browser reports requests that failed for want of a network.
    page.trouble[:] = [each for each in page.trouble if "ERR_INTERNET_DISCONNECTED" not in each]


def test_what_is_not_stored_yet_is_counted_all_the_same(room, visit, digits):
    page = visit(room)
    page.route("**/api/labels", lambda route: route.abort())
    item = ""
    for _ in range(3):
        item = shown(page, item)
        page.keyboard.press(digits[1][item])
    for _ in range(2):
        with page.expect_response("**/api/status*"):
            pass
        page.wait_for_timeout(100)
        assert page.inner_text("#batch-text").startswith("3 of ")
    page.unroute("**/api/labels")
    all_saved(page)
    page.wait_for_selector("#budget-text:has-text('3 of')")
    # An answer that was stored between two requests for the status counts twice until the next.
    page.wait_for_selector("#batch-text:has-text('3 of')")
    page.trouble.clear()


def test_a_lost_connection_is_said_where_the_item_was(room, visit, digits):
    page = visit(room)
    shown(page)
    page.wait_for_load_state("networkidle")
    page.context.set_offline(True)
    page.keyboard.press(digits[1][shown(page)])
    page.wait_for_selector("#trouble:has-text('Connection lost')")
    assert "1 answer is kept in this browser" in page.inner_text("#trouble")
    assert "You can go on labelling" in page.inner_text("#trouble")
    count = 1
    while item := page.get_attribute("#stage", "data-item"):
        page.keyboard.press(digits[1][item])
        count += 1
    page.wait_for_selector("#message-title:has-text('Connection lost')")
    assert f"{count} answers are kept in this browser" in page.inner_text("#message-text")
    assert page.inner_text("#training") == "Connection lost"
    assert room.labels() == []
    page.context.set_offline(False)
    page.wait_for_selector("#trouble", state="hidden")
    all_saved(page)
    until(
        lambda: page.evaluate(
            "document.getElementById('training').textContent !== 'Connection lost'"
        )
    )
    assert len(room.labels()) == count
    page.trouble[:] = [each for each in page.trouble if "ERR_INTERNET_DISCONNECTED" not in each]


def test_a_full_disk_is_said_and_what_was_answered_arrives_later(room, visit, digits):
    page = visit(room)
    first = shown(page)
    page.wait_for_load_state("networkidle")
    with no_file_above((room.folder / "sabal.db-wal").stat().st_size):
        page.keyboard.press(digits[1][first])
        page.wait_for_selector("#trouble:has-text('Disk full')")
        while item := page.get_attribute("#stage", "data-item"):
            page.keyboard.press(digits[1][item])
        page.wait_for_selector("#message-title:has-text('Disk full')")
        assert "Tell whoever runs the app" in page.inner_text("#message-text")
        assert room.labels() == []
    all_saved(page)
    page.wait_for_selector("#trouble", state="hidden")
    assert first in [item for item, _, _ in room.labels()]
    page.trouble[:] = [each for each in page.trouble if "503" not in each]


def test_the_grid_is_walked_with_arrows(room, visit, digits):
    page = visit(room)
    shown(page)
    page.keyboard.press("g")
    page.wait_for_selector("#grid li >> nth=6")
    assert page.locator("#grid li").count() == 7
    first = shown(page)
    page.keyboard.press("ArrowRight")
    second = shown(page, first)
    page.keyboard.press(digits[1][second])
    third = shown(page, second)
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    assert shown(page, third) == first
    assert page.inner_text("#grid li >> nth=1") == digits[1][second]
    assert page.get_attribute("#grid li >> nth=0", "aria-selected") == "true"
    all_saved(page)
    assert room.labels() == [(second, digits[1][second], "ada")]
    page.keyboard.press("g")
    assert page.is_visible("#one img")


def test_an_answer_can_be_changed_by_going_back(room, visit):
    page = visit(room)
    first = shown(page)
    page.keyboard.press("1")
    second = shown(page, first)
    page.keyboard.press("ArrowLeft")
    assert shown(page, second) == first
    assert page.get_attribute("#classes [data-label='1']", "aria-pressed") == "true"
    page.keyboard.press("7")
    assert shown(page, first) == second
    all_saved(page)
    assert room.labels() == [(first, "7", "ada")]


def test_a_key_that_is_held_down_answers_once(room, visit):
    page = visit(room)
    first = shown(page)
    for _ in range(4):
        page.keyboard.down("3")
    page.keyboard.up("3")
    shown(page, first)
    all_saved(page)
    assert room.labels() == [(first, "3", "ada")]


def test_many_classes_by_number_and_by_name(open_quickly, visit, tmp_path):
    (tmp_path / "texts.csv").write_text(
        "body\n" + "".join(f'"text {n} <b>bold</b> 🙂"\n' for n in range(30)), encoding="utf-8"
    )
    names = [f"<i>class</i> {chr(65 + n)}" for n in range(12)]
    room = open_quickly(
        Project.create(
            tmp_path / "project",
            data=tmp_path / "texts.csv",
            text_column="body",
            classes=names,
            backbone="tfidf",
            initial=5,
        )
    )
    page = visit(room)
    first = shown(page)
    assert "<b>bold</b> 🙂" in page.inner_text("#one")
    page.keyboard.press("1")
    page.keyboard.press("2")
    second = shown(page, first)
    page.keyboard.press("/")
    page.keyboard.type("CLASS</i> c")
    page.keyboard.press("Enter")
    shown(page, second)
    all_saved(page)
    assert [(item, label) for item, label, _ in room.labels()] == [
        (first, names[11]),
        (second, names[2]),
    ]


def test_long_texts_scroll_thirty_classes_fit_and_wrong_digits_choose_nothing(
    open_quickly, visit, tmp_path
):
    text = "A line of the text. " * 300
    (tmp_path / "texts.csv").write_text(
        "text\n" + "".join(f'"{n} {text}"\n' for n in range(30)), encoding="utf-8"
    )
    names = [f"name of class {n}" for n in range(1, 31)]
    room = open_quickly(
        Project.create(
            tmp_path / "project",
            data=tmp_path / "texts.csv",
            classes=names,
            backbone="tfidf",
            initial=5,
        )
    )
    page = visit(room, viewport={"width": 1280, "height": 800})
    first = shown(page)
    page.wait_for_selector("#one .text.more-below")
    assert page.is_visible("#more")
    tops = [0]
    for key in ("Space", "PageDown", "ArrowDown", "Shift+Space", "End"):
        page.keyboard.press(key)
        tops.append(page.evaluate("document.querySelector('#one .text').scrollTop"))
    assert tops[0] < tops[1] < tops[2] < tops[3] > tops[4] > 0
    assert tops[5] > tops[3]
    page.wait_for_selector("#one .text.more-above:not(.more-below)")
    assert not page.is_visible("#more")

    assert page.evaluate(INSIDE_WINDOW) == 30
    for digit in "930":  # 93 is no class, and 0 begins another number
        page.keyboard.press(digit)
    assert page.inner_text("#typed") == "0"
    page.keyboard.press("Escape")
    assert shown(page) == first
    page.keyboard.press("0")
    page.keyboard.press("7")
    second = shown(page, first)
    assert page.evaluate("document.querySelector('#one .text').scrollTop") == 0
    page.click("#classes button >> nth=1")
    shown(page, second)
    page.keyboard.press("Space")  # scrolls, and does not press the button again
    all_saved(page)
    assert [(item, label) for item, label, _ in room.labels()] == [
        (first, names[6]),
        (second, names[1]),
    ]


def test_an_image_can_be_enlarged_and_moved(room, visit):
    page = visit(room)
    first = shown(page)
    usual = page.locator("#one img").bounding_box()["width"]
    page.keyboard.press("z")
    page.wait_for_selector("#one.zoomed")
    assert page.locator("#one img").bounding_box()["width"] > 1.5 * usual
    left, top = page.evaluate("[one.scrollLeft, one.scrollTop]")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    until(lambda: page.evaluate(f"one.scrollLeft > {left} && one.scrollTop > {top}"))
    assert shown(page) == first
    page.keyboard.press("1")
    shown(page, first)
    assert not page.query_selector("#one.zoomed")
    page.click("#one img")
    page.wait_for_selector("#one.zoomed")
    page.keyboard.press("Escape")
    assert not page.query_selector("#one.zoomed")
    all_saved(page)


def test_an_image_that_is_still_loading_is_enlarged_once_it_is_there(room, visit):
    page = visit(room)
    first, held = shown(page), []
    page.route("**/media/**", lambda route: held.append(route))  # no builtin here
    page.reload()
    until(lambda: page.evaluate("Boolean(document.querySelector('#one img'))"))
    page.keyboard.press("z")
    assert not page.query_selector("#one.zoomed")
    until(lambda: held and page.evaluate("true"))
    for route in held:
        route.continue_()
    page.wait_for_selector("#one.zoomed")
    middle = page.evaluate("2 * one.scrollTop + one.clientHeight - one.scrollHeight")
    assert abs(middle) <= 2
    assert shown(page) == first


def test_help_opens_and_closes_with_the_keyboard(room, visit):
    page = visit(room)
    shown(page)
    page.keyboard.press("?")
    page.wait_for_selector("#help-dialog[open]")
    page.keyboard.press("1")  # keys do nothing behind a dialog
    page.keyboard.press("Escape")
    page.wait_for_selector("#help-dialog", state="hidden")
    assert room.labels() == []


def test_everything_has_a_name_and_fits_a_phone(room, visit, digits):
    page = visit(room, viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True)
    answer_all(page, digits[1], 1)
    for path in ("", "dashboard", "help"):
        page.goto(room.address + path)
        wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert wide <= 0, path
        nameless = page.evaluate(
            "[...document.querySelectorAll('button, a, input, img, progress')]"
            ".filter(each => !(each.innerText?.trim() || each.getAttribute('aria-label')"
            " || each.hasAttribute('alt') || each.labels?.length"
            " || each.closest('[hidden], dialog')))"
            ".map(each => each.outerHTML)"
        )
        assert nameless == [], path


def test_the_page_is_usable_by_touch(room, visit, digits):
    page = visit(room, viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    first = shown(page)
    page.tap(f"#classes [data-label='{digits[1][first]}']")
    second = shown(page, first)
    page.tap("#undo")
    assert shown(page, second) == first
    page.tap("#skip")
    assert shown(page, first) == second
    all_saved(page)
    assert room.skipped() == [first]
