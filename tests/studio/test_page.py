"""The page in a real Chromium: what a person sees, presses and is told."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

import privatest as pt
from tests import needs

from .conftest import TOKEN

pytestmark = pytest.mark.xdist_group("browser")

QUIET = ("gpu", "quic", "background-networking", "component-update", "sync")
ARGUMENTS = ["--headless", "--no-sandbox", "--no-first-run", *(f"--disable-{word}" for word in QUIET)]
COIN = "#kind=bernoulli&null=0.4&alternative=0.6&epsilon=1&n=40"


def until(page: Any, expression: str, seconds: float = 60) -> None:
    """Wait for a condition. Playwright's own way evaluates text inside the page, which its policy forbids."""
    end = time.monotonic() + seconds
    while not page.evaluate(expression):
        assert time.monotonic() < end, f"never: {expression}"
        time.sleep(0.03)


class Watched:
    """A page, every request it made and everything it complained about."""

    def __init__(self, page: Any, served: Any) -> None:
        self.page, self.served = page, served
        self.requests: list[str] = []
        self.answers: list[str] = []
        self.complaints: list[str] = []
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("console", self._heard)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("response", self._answered)

    def _heard(self, message: Any) -> None:
        if message.type in {"error", "warning"}:
            self.complaints.append(f"{message.text} at {message.location}")

    def _answered(self, response: Any) -> None:
        if response.status >= 500:
            self.complaints.append(f"{response.status} {response.url}")

    def open(self, settings: str = COIN) -> Any:
        self.page.goto(f"{self.served.address}/{settings}&launch={self.served.studio.app.state.launch()}")
        self.page.wait_for_selector("html[data-ready=yes]")
        return self.page

    def slide(self, name: str, value: float) -> None:
        """Move a slider as a hand does: its value, then the event."""
        self.page.eval_on_selector(
            f"#{name}",
            "(place, value) => { place.value = value; place.dispatchEvent(new Event('input', {bubbles: true})) }",
            value,
        )

    def number(self, name: str) -> float:
        return float(self.page.inner_text(f"#fact-{name}").replace(",", ""))

    def settled(self) -> None:
        until(self.page, "!document.querySelector('#facts .busy')")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        needs.missing("Chromium is not installed. Get it: apt-get install chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        opened = play.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        yield opened
        opened.close()


@pytest.fixture
def watched(browser: Any, served: Any) -> Iterator[Watched]:
    """At the end: no request left the machine, and the console is empty."""
    context = browser.new_context(viewport={"width": 1300, "height": 900})
    context.set_default_timeout(60_000)
    made = Watched(context.new_page(), served)
    yield made
    outside = {url for url in made.requests if urlsplit(url).scheme in {"http", "https", "ws", "wss"}}
    outside = {url for url in outside if not url.startswith(served.address + "/")}
    context.close()
    assert made.requests
    assert outside == set()
    assert made.complaints == []


def test_the_printed_address_opens_one_page_and_leaves_no_secret_in_it(watched: Watched, browser: Any) -> None:
    page, first = watched.page, watched.served.first
    page.goto(first)
    page.wait_for_selector("#chart-densities[data-epsilon='0.5']")
    word = first.partition("launch=")[2]
    assert word not in page.url + page.content()
    assert TOKEN not in page.url + page.content()
    assert page.context.cookies() == []
    assert page.evaluate("Object.values(sessionStorage)") == [TOKEN]
    assert page.evaluate("Object.values(localStorage)") == []
    page.reload()  # the key is there still
    page.wait_for_selector("#chart-densities[data-epsilon='0.5']")
    second = page.context.new_page()  # beside a page that is open, another needs no word
    second.goto(watched.served.address)
    second.wait_for_selector("#chart-densities[data-epsilon='0.5']")
    second.close()
    elsewhere = browser.new_context()  # somebody who read the address somewhere
    late = elsewhere.new_page()
    late.goto(first)
    late.wait_for_selector("#launch-problem:not([hidden])")
    assert "used before" in late.inner_text("#launch-problem")
    assert not late.is_visible("#main")
    late.fill("#launch-word", watched.served.first)  # a new one, pasted
    late.click("#launch button")
    late.wait_for_selector("#chart-densities[data-epsilon='0.5']")
    late.evaluate("sessionStorage.clear()")
    late.reload()
    late.wait_for_selector("#launch:not([hidden])")
    late.evaluate(f"location.hash = {watched.served.first.partition('#')[2]!r}")  # an address typed over this one
    late.wait_for_selector("#chart-densities[data-epsilon='0.5']")
    elsewhere.close()


@pytest.mark.parametrize("name", ["constructor", "__proto__", ""])
def test_an_address_that_names_no_family_opens_the_first_one(watched: Watched, name: str) -> None:
    page = watched.open(f"#kind={name}&goal={name}&tab={name}&neighbours={name}&{name or 'x'}=1&epsilon=1")
    watched.settled()
    assert page.input_value("#kind") == "normal"
    assert page.is_visible("#panel-plan")
    assert name not in page.url or not name


def test_a_test_that_hides_how_many_records_there_are(watched: Watched) -> None:
    page = watched.open(COIN + "&tab=run&neighbours=add-remove")
    page.fill("#run-path", "tosses.csv")
    page.fill("#run-column", "toss")
    page.fill("#run-dataset", "claims")
    page.click("#run-button")
    page.wait_for_selector("#run-problem:not([hidden])")
    assert "stays hidden" in page.inner_text("#run-problem")
    page.fill("#run-n", "390")
    page.click("#run-button")
    page.wait_for_selector("#release .decision")
    page.wait_for_selector("#chart-release[data-n='390']")
    assert "400" not in page.inner_text("#release")
    assert "is not revealed" in page.inner_text("#release")
    page.click("#tab-plan")
    watched.settled()
    P, Q = "bernoulli(0.4)", "bernoulli(0.6)"
    wanted = pt.sample_size(P, Q, epsilon=1, advantage=0.67, neighbours="add-remove")
    assert watched.number("needed") == wanted != pt.sample_size(P, Q, epsilon=1, advantage=0.67)


def test_sliders_change_pictures_and_numbers_and_the_numbers_are_the_packages(watched: Watched) -> None:
    page = watched.open()
    watched.settled()
    P, Q = "bernoulli(0.4)", "bernoulli(0.6)"
    assert watched.number("needed") == pt.sample_size(P, Q, epsilon=1, advantage=0.67)
    assert watched.number("bound") == pt.lower_bound(P, Q, epsilon=1, advantage=0.67)
    before = {chart: picture(page, chart) for chart in ("densities", "law", "sizes")}
    watched.slide("epsilon", -0.7)  # 10^-0.7 is 0.2
    page.wait_for_selector("#chart-densities[data-epsilon='0.2']")
    page.wait_for_selector("#chart-law[data-epsilon='0.2']")
    page.wait_for_selector("#chart-sizes[data-epsilon='0.2']")
    watched.settled()
    assert all(picture(page, chart) != drawn for chart, drawn in before.items())
    assert watched.number("needed") == pt.sample_size(P, Q, epsilon=0.2, advantage=0.67)
    split = pt.decompose(P, Q, epsilon=0.2)
    assert watched.number("tau") == pytest.approx(split.tau, rel=5e-3)
    watched.slide("n", 2.0)
    page.wait_for_selector("#chart-law[data-n='100']")
    watched.settled()
    test = pt.design(P, Q, epsilon=0.2, n=100)
    shown = [float(part) for part in page.inner_text("#fact-errors").split("/")]
    assert shown == pytest.approx([test.alpha, test.beta], rel=5e-3)
    assert watched.number("advantage") == pytest.approx(test.advantage, rel=5e-3)


def test_curves_and_table_fill_in(watched: Watched) -> None:
    page = watched.open()
    page.wait_for_selector("#chart-sizes[data-points='7']")
    page.wait_for_selector("#chart-power[data-points='9']")
    until(page, "document.querySelectorAll('#compare tbody tr').length > 5")
    drawn = page.evaluate(
        "document.getElementById('chart-sizes').data.find((each) => (each.name || '').startsWith('records needed'))"
    )
    exact = [
        pt.sample_size("bernoulli(0.4)", "bernoulli(0.6)", epsilon=epsilon, advantage=0.67) for epsilon in drawn["x"]
    ]
    assert drawn["y"] == exact
    rows = page.eval_on_selector_all(
        "#compare tbody tr", "rows => rows.map((row) => [...row.cells].map((cell) => cell.textContent))"
    )
    table = pt.compare("bernoulli(0.4)", "bernoulli(0.6)", epsilon=1, advantage=0.67)
    assert [row[0] for row in rows] == [row.test for row in table]
    assert [row[1].replace(",", "") for row in rows] == ["never" if row.n is None else str(row.n) for row in table]


def picture(page: Any, chart: str) -> str:
    """What is drawn: every path of the chart."""
    return str(
        page.eval_on_selector_all(f"#chart-{chart} path", "paths => paths.map((path) => path.getAttribute('d')).join()")
    )


def test_a_permalink_restores_everything(watched: Watched) -> None:
    page = watched.open()
    page.select_option("#kind", "table")
    page.fill("#table", "never, 0.5, 0.3\noften, 0.5, 0.7")
    page.select_option("#goal", "errors")
    watched.slide("alpha", -1.5)
    page.fill("#epsilon-number", "0.75")
    page.fill("#n-number", "77")
    page.wait_for_selector("#chart-law[data-n='77'][data-epsilon='0.75']")
    watched.settled()
    link = page.url
    assert "token" not in link
    seen = [page.inner_text(f"#fact-{name}") for name in ("needed", "errors", "tau")]
    other = page.context.new_page()
    other.goto(link)
    other.wait_for_selector("#chart-law[data-n='77'][data-epsilon='0.75']")
    until(other, "!document.querySelector('#facts .busy')")
    assert other.input_value("#kind") == "table"
    assert other.input_value("#table").startswith("never")
    assert (other.input_value("#goal"), other.input_value("#n-number")) == ("errors", "77")
    assert other.inner_text("#alpha-value") == "0.032"
    assert [other.inner_text(f"#fact-{name}") for name in ("needed", "errors", "tau")] == seen
    other.close()


def test_a_run_pressed_twice_is_charged_once(watched: Watched) -> None:
    ledger, page = watched.served.studio.ledger, watched.open(COIN + "&tab=run")
    before = ledger.spent("claims")
    page.fill("#run-path", "tosses.csv")
    page.fill("#run-column", "toss")
    page.fill("#run-dataset", "claims")
    page.dblclick("#run-button")
    page.eval_on_selector("#run", "form => { form.requestSubmit(); form.requestSubmit() }")
    page.wait_for_selector("#release .decision")
    page.wait_for_selector("#run-button:not([disabled])")
    first = page.inner_text("#release pre, #release .decision")
    page.click("#run-button")  # and once more, when the answer is there
    page.wait_for_selector("#run-button:not([disabled])")
    assert page.inner_text("#release pre, #release .decision") == first
    assert "look like P" in first
    assert ledger.spent("claims") - before == 1
    assert page.inner_text("#budgets tbody tr td:nth-child(3)") == f"{float(ledger.spent('claims')):g}"
    page.wait_for_selector("#chart-release[data-n='400']")


def test_a_change_is_found_in_an_uploaded_file(watched: Watched) -> None:
    studio = watched.served.studio
    page = watched.open("#kind=bernoulli&null=0.2&alternative=0.8&epsilon=0.5&tab=run")
    page.check("input[value=change]")
    page.set_input_files("#run-file", studio.folder / "changed.csv")
    page.fill("#run-column", "toss")
    page.fill("#run-dataset", "claims")
    page.click("#run-button")
    page.wait_for_selector("#release .decision")
    found = int(re.sub(r"\D", "", page.inner_text("#release .decision").split("\n")[0].partition("The records")[0]))
    assert abs(found - 300) <= 100


def test_a_refusal_is_told_where_it_happened(watched: Watched) -> None:
    page = watched.open(COIN + "&tab=run")
    page.fill("#run-path", "../ledger.db")
    page.fill("#run-dataset", "claims")
    page.click("#run-button")
    page.wait_for_selector("#run-problem:not([hidden])")
    assert "inside the studio's folder" in page.inner_text("#run-problem")
    # Chromium notes every answer of status 422 in its console: that is this test's doing.
    assert all("422" in each for each in watched.complaints)
    watched.complaints.clear()
    page.click("#tab-plan")
    page.fill("#null-p", "1.5")
    page.wait_for_selector("#problem:not([hidden])")
    assert "p=1.5" in page.inner_text("#problem")
    page.goto("about:blank")  # nothing more is asked
    assert all("422" in each for each in watched.complaints)
    watched.complaints.clear()


# What becomes of an answer of which only the head has arrived, when the body breaks off.
BROKEN_OFF = """
async (asked_again) => {
  const { get } = await import("/static/ask.js");
  const plain = window.fetch;
  let stream = null;
  window.fetch = (path, options) =>
    path === "/api/none"
      ? Promise.resolve(new Response(new ReadableStream({ start(made) { stream = made; } })))
      : plain(path, options);
  const controller = new AbortController();
  const outcome = get("/api/none", controller.signal).catch((error) => `${error.name}: ${error.message}`);
  setTimeout(() => { if (asked_again) controller.abort(); stream.error(new TypeError("over")); }, 50);
  try { return await outcome; } finally { window.fetch = plain; }
}
"""


def test_a_question_asked_again_while_its_answer_arrives_is_no_complaint(watched: Watched) -> None:
    page = watched.open()
    assert page.evaluate(BROKEN_OFF, True).startswith("AbortError")
    assert "no readable answer" in page.evaluate(BROKEN_OFF, False)


def test_a_monitor_is_followed_live(watched: Watched) -> None:
    studio = watched.served.studio
    grows = studio.folder / "live.txt"
    lines = (studio.folder / "stream.txt").read_text().splitlines()
    grows.write_text("\n".join(lines[:200]) + "\n")
    page = watched.open("#kind=bernoulli&null=0.2&alternative=0.8&epsilon=0.5&tab=monitor")
    page.fill("#monitor-path", "live.txt")
    page.fill("#monitor-dataset", "claims")
    page.click("#monitor-button")
    until(page, "document.getElementById('chart-monitor').dataset.points > 3")
    assert page.inner_text("#watch-state") == "following"
    with open(grows, "a") as file:
        file.write("\n".join(lines[200:]) + "\n")
    until(page, "document.getElementById('watch-state').textContent === 'changed'")
    assert abs(int(page.inner_text("#watch-alarm")) - 300) <= 150
    page.reload()
    until(page, "document.getElementById('watch-state').textContent === 'changed'")


def test_a_sequential_test_is_followed_to_its_verdict(watched: Watched) -> None:
    page = watched.open("#kind=bernoulli&null=0.2&alternative=0.8&epsilon=0.5&tab=sequential")
    page.fill("#sequential-dataset", "claims")
    page.click("#sequential-button")
    until(page, "document.getElementById('walk-state').textContent === 'waiting for records'")
    assert "a fixed test needs" in page.inner_text("#walk-expected-note")
    page.fill("#walk-feed-lines", "1\n" * 400)
    page.click("#walk-feed-button")
    until(page, "document.getElementById('walk-state').textContent === 'alternative'")
    assert int(page.get_attribute("#chart-walk", "data-points")) >= 1
    assert "verdict: alternative" in page.get_attribute("#chart-walk", "aria-label")
    page.reload()
    until(page, "document.getElementById('walk-state').textContent === 'alternative'")


def test_tabs_and_controls_work_from_the_keyboard_and_have_names(watched: Watched) -> None:
    page = watched.open()
    page.focus("#tab-plan")
    for key, tab in (
        ("ArrowRight", "run"),
        ("ArrowRight", "estimate"),
        ("ArrowRight", "groups"),
        ("ArrowRight", "monitor"),
        ("ArrowRight", "sequential"),
        ("ArrowRight", "plan"),
        ("End", "sequential"),
        ("ArrowLeft", "monitor"),
        ("Home", "plan"),
    ):
        page.keyboard.press(key)
        assert page.evaluate("document.activeElement.id") == f"tab-{tab}"
        assert page.get_attribute(f"#tab-{tab}", "aria-selected") == "true"
        assert page.is_visible(f"#panel-{tab}")
    unnamed = page.evaluate(
        """[...document.querySelectorAll('input, select, textarea, button, [role=img], [role=region], [role=tabpanel]')]
        .filter((each) => !each.closest('[hidden]') && !(each.labels && each.labels.length)
          && !each.getAttribute('aria-label') && !each.getAttribute('aria-labelledby') && !each.textContent.trim())
        .map((each) => each.id || each.outerHTML.slice(0, 80))"""
    )
    assert unnamed == []
    page.focus("#epsilon")
    before = page.input_value("#epsilon-number")
    page.keyboard.press("ArrowRight")
    assert page.input_value("#epsilon-number") != before
    assert "epsilon" in page.get_attribute("#epsilon", "aria-valuetext")


def test_nothing_is_cut_off_on_narrow_pages_and_at_other_zooms(watched: Watched) -> None:
    """1300 points at 150% and at 80% zoom are 867 and 1625 points wide; 360 last, when all charts were wide before."""
    page = watched.page
    page.set_viewport_size({"width": 360, "height": 740})
    watched.open()
    page.wait_for_selector("#chart-law[data-n='40']")
    for width, height in ((360, 740), (867, 600), (1625, 1125), (360, 740)):
        page.set_viewport_size({"width": width, "height": height})
        for tab in ("run", "monitor", "sequential", "plan"):
            page.click(f"#tab-{tab}")
            until(page, "document.documentElement.scrollWidth <= document.documentElement.clientWidth", 5)


def test_dark_pages_are_dark_and_readable(watched: Watched) -> None:
    page = watched.page
    page.emulate_media(color_scheme="dark", reduced_motion="reduce")
    watched.open()
    page.wait_for_selector("#chart-densities[data-epsilon='1']")
    colours = page.evaluate(
        """['--card', '--ink', '--soft', '--bad', '--accent', '--null', '--alternative', '--third'].map(
        (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim())"""
    )
    paper = luminance(colours[0])
    assert paper < 0.05
    for colour in colours[1:]:
        assert (luminance(colour) + 0.05) / (paper + 0.05) >= 4.5


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_labels_that_are_links_marks_or_pictures_stay_text(watched: Watched) -> None:
    page = watched.open("#kind=table&epsilon=1")
    label = '<a href="https://evil.example/">press</a>'
    page.fill("#table", f"{label}, 0.5, 0.3\n<b>two</b>, 0.5, 0.7")
    until(page, "document.querySelector('#chart-densities .xtick text') !== null")
    until(page, "document.querySelector('#chart-densities').textContent.includes('<b>two</b>')")
    assert label in page.evaluate("document.querySelector('#chart-densities').textContent")
    assert page.evaluate("document.querySelectorAll('svg a, main a').length") == 0
    page.fill("#table", "<img src=x onerror=document.title=1>, 0.5, 0.3\n<b>often</b>, 0.5, 0.7")
    until(page, "document.querySelector('#chart-densities').textContent.includes('<b>often</b>')")
    page.wait_for_timeout(300)
    assert page.title() == "privatest studio"
    assert page.query_selector("img[src=x]") is None
    watched.complaints.clear()


SHIFTED = "#kind=written&epsilon=1&n=60&goal=errors&alpha=0.1&beta=0.2&null=bernoulli(0.3)"


def test_a_two_sided_question_shows_both_thresholds_and_its_power(watched: Watched) -> None:
    page = watched.open(f"{SHIFTED}&alternative=any_of(bernoulli(p<%3D0.1), bernoulli(p>%3D0.6))")
    until(page, "document.querySelector('#chart-law').dataset.thresholds === '2'")
    assert "outside the thresholds" in page.get_attribute("#chart-law", "aria-label")
    until(page, "document.querySelector('#densities-note').textContent.includes('hardest to tell apart')")
    assert "the largest over the sets" in page.inner_text("#fact-errors-note")
    page.fill("#along-family", "bernoulli(p=?)")
    until(page, "document.querySelector('#along-note').textContent.includes('between which')")
    page.fill("#along-from", "0.05")
    page.fill("#along-to", "0.8")
    until(page, "document.querySelector('#chart-along').dataset.points === '31'", 120)
    Q = pt.any_of("bernoulli(p<=0.1)", "bernoulli(p>=0.6)")
    test = pt.design("bernoulli(0.3)", Q, epsilon=1, n=60, alpha=0.1)
    drawn = page.evaluate("document.querySelector('#chart-along').data[0].y")
    assert drawn[0] == pytest.approx(test.power("bernoulli(0.05)"), abs=1e-9)
    assert "family=" in page.evaluate("location.hash")
    page.fill("#along-family", "bernoulli(0.4)")
    until(page, "document.querySelector('#along-note').textContent.includes('question mark')")
    watched.complaints = [each for each in watched.complaints if "422" not in each]  # the refusal was asked for


def test_data_that_fit_neither_are_a_headline(watched: Watched) -> None:
    tosses = [1] * 200 + [0] * 200  # halfway between 0.2 and 0.8
    (watched.served.studio.folder / "halfway.csv").write_text("toss\n" + "".join(f"{toss}\n" for toss in tosses))
    watched.served.studio.ledger.grant("halfway", epsilon=1)  # others have spent what there was of "claims"
    page = watched.open("#tab=run&kind=bernoulli&null=0.2&alternative=0.8&epsilon=1")
    page.fill("#run-path", "halfway.csv")
    page.fill("#run-column", "toss")
    page.fill("#run-dataset", "halfway")
    page.click("#run-button")
    until(page, "document.querySelector('#release .decision') !== null")
    assert page.inner_text("#release .decision").startswith("The data fit neither P nor Q")
    until(page, "document.querySelector('#chart-release').dataset.fits === 'neither'")


def test_an_estimate_is_planned_and_run_on_its_own_tab(watched: Watched) -> None:
    watched.served.studio.ledger.grant("rates", epsilon=1)
    page = watched.open("#tab=estimate&epsilon=1&n=100&estimate=bernoulli(?)&low=&high=&at=0.3&width=0.25")
    until(page, "!document.querySelector('#panel-estimate .busy')")
    made = pt.design_estimate("bernoulli(?)", epsilon=1, n=100)
    assert watched.number("width") == pytest.approx(made.expected_width(0.3), rel=1e-3)
    assert watched.number("shortest") == pytest.approx(made.width_bound(0.3), rel=1e-3)
    assert watched.number("enough") == made.sample_size(width=0.25, at=0.3)
    assert not page.is_visible("#kind")  # P and Q are no part of this question
    page.fill("#run-path", "tosses.csv")
    page.fill("#run-column", "toss")
    page.fill("#run-dataset", "rates")
    page.fill("#run-request", "how often")
    page.click("#run-button")
    until(page, "document.getElementById('release').dataset.request === 'how often'")
    assert "p: about 0." in page.inner_text("#release .decision")
    until(page, "document.getElementById('chart-release').dataset.task === 'estimate'")
    page.fill("#ask-low", "0.9")
    page.fill("#ask-high", "0.1")
    until(page, "document.getElementById('problem').textContent.includes('lower end first')")
    watched.complaints[:] = [each for each in watched.complaints if "422" not in each]  # the browser tells of refusals
    page.click("#tab-run")
    assert page.is_visible("#run-button")
    assert "Nothing yet" in page.inner_text("#release")
    page.click("#tab-estimate")
    assert "p: about 0." in page.inner_text("#release .decision")


def test_two_groups_are_planned_and_run_on_their_own_tab(watched: Watched) -> None:
    folder = watched.served.studio.folder
    rows = "".join(f"{'ab'[i % 2]},{int(i % 5 == 0)}\n" for i in range(200))
    (folder / "arms.csv").write_text("arm,bought\n" + rows)
    watched.served.studio.ledger.grant("arms", epsilon=1)
    page = watched.open("#tab=groups&epsilon=1&control=100&treatment=100&rate=0.3&lift=0.3&miss=0.3")
    until(page, "!document.querySelector('#panel-groups .busy')")
    made = pt.design_groups(n=(100, 100), epsilon=1)
    assert watched.number("power") == pytest.approx(made.power((0.3, 0.6)), abs=1e-3)
    assert page.inner_text("#fact-arms").partition(" ")[0] == str(made.sample_size(rate=0.3, lift=0.3, beta=0.3))
    assert page.is_visible("#run-group")
    for name, value in (("path", "arms.csv"), ("column", "bought"), ("group", "arm"), ("dataset", "arms")):
        page.fill(f"#run-{name}", value)
    page.fill("#run-request", "b or a")
    page.click("#run-button")
    until(page, "document.getElementById('release').dataset.request === 'b or a'")
    assert "b minus a: about" in page.inner_text("#release .decision")
    page.fill("#ask-lift", "0.9")
    until(page, "document.getElementById('problem').textContent.includes('between 0 and 1')")
    watched.complaints[:] = [each for each in watched.complaints if "422" not in each]
    page.set_viewport_size({"width": 420, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth") <= 420  # nothing wider than a telephone
