"""The page in a real Chromium: what a person sees, presses and is told; and what a checker of accessibility finds.

What its scripts decide by themselves is tested without a browser in test_logic.py. Most pages here draw nothing: in
place of Plotly they get a few lines that keep what would be drawn.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest

import privatest as pt
from privatest import report
from privatest.studio import create_app, planning_requests
from tests import needs

from .conftest import TOKEN, Studio, TestClient, fill, listening

pytestmark = pytest.mark.xdist_group("browser")

QUIET = ("gpu", "quic", "background-networking", "component-update", "sync", "extensions", "dev-shm-usage")
ARGUMENTS = ["--headless", "--no-sandbox", "--no-first-run", *(f"--disable-{word}" for word in QUIET)]
COIN = "#kind=bernoulli&null=0.4&alternative=0.6&epsilon=1&n=40"
P, Q = "bernoulli(0.4)", "bernoulli(0.6)"
KEEPER = """window.Plotly = {
  react: async (place, data, layout) => {
    place.classList.add("js-plotly-plot");
    Object.assign(place, { data, layout });
  },
  purge: (place) => { delete place.data; },
  Plots: { resize() {} },
};"""


def until(page: Any, expression: str, seconds: float = 300) -> None:
    """Wait for a condition. Playwright's own way evaluates text inside the page, which its policy forbids."""
    end = time.monotonic() + seconds
    while not page.evaluate(expression):
        assert time.monotonic() < end, f"never: {expression}"
        time.sleep(0.05)


class Watched:
    """A page, every request it made and everything it complained about."""

    def __init__(self, page: Any, served: Any) -> None:
        self.page, self.served = page, served
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.refused: list[str] = []
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("console", self._heard)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("response", self._answered)

    def _heard(self, message: Any) -> None:
        if message.type in {"error", "warning"}:
            # Chromium notes every refusal in its console: that is what was asked for.
            refused = "status of 422" in message.text
            (self.refused if refused else self.complaints).append(f"{message.text} at {message.location}")

    def _answered(self, response: Any) -> None:
        if response.status >= 500:
            self.complaints.append(f"{response.status} {response.url}")

    def open(self, settings: str = COIN) -> Any:
        self.page.goto(f"{self.served.address}/{settings}&launch={self.served.studio.app.state.launch()}")
        self.page.wait_for_selector("html[data-ready=yes]")
        return self.page

    def go(self, settings: str) -> None:
        """Other settings, as if an address was typed over this one: nothing is loaded again."""
        self.page.evaluate("(hash) => { location.hash = hash; }", settings)
        name = settings.partition("tab=")[2].partition("&")[0] or "plan"
        self.page.wait_for_selector(f"#panel-{name}:not([hidden])")

    def slide(self, name: str, value: float) -> None:
        """Move a slider as a hand does: its value, then the event."""
        self.page.eval_on_selector(
            f"#{name}",
            "(place, value) => { place.value = value; place.dispatchEvent(new Event('input', {bubbles: true})) }",
            value,
        )

    def choose(self, path: str, column: str = "toss", dataset: str = "claims") -> None:
        """Fill in a file of the folder, and one of its columns from the list."""
        self.page.fill("#run-path", path)
        self.page.dispatch_event("#run-path", "change")
        self.page.wait_for_selector(f"#run-column option[value='{column}']", state="attached")
        self.page.select_option("#run-column", column)
        self.page.fill("#run-dataset", dataset)

    def run(self, request: str) -> str:
        """Press Run under this name: the headline of what came out."""
        self.page.fill("#run-request", request)
        self.page.click("#run-button")
        until(self.page, f"document.getElementById('release').dataset.request === {json.dumps(request)}")
        return str(self.page.inner_text("#release .decision"))

    def number(self, name: str) -> float:
        return float(self.page.inner_text(f"#fact-{name}").replace(",", ""))

    def settled(self) -> None:
        until(self.page, "!document.querySelector('#answers .busy')")


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


@contextlib.contextmanager
def watching(browser: Any, served: Any, *, drawn: bool) -> Iterator[Watched]:
    """At the end: no request left the machine, and the console is empty."""
    context = browser.new_context(viewport={"width": 1300, "height": 900})
    context.set_default_timeout(600_000)
    if not drawn:
        context.route(
            "**/static/plotly.min.js", lambda route: route.fulfill(body=KEEPER, content_type="text/javascript")
        )
    made = Watched(context.new_page(), served)
    yield made
    outside = {url for url in made.requests if urlsplit(url).scheme in {"http", "https", "ws", "wss"}}
    outside = {url for url in outside if not url.startswith(served.address + "/")}
    context.close()
    assert made.requests
    assert outside == set()
    assert made.complaints == []


@pytest.fixture
def watched(browser: Any, served: Any) -> Iterator[Watched]:
    """A page that draws nothing."""
    with watching(browser, served, drawn=False) as made:
        yield made


@pytest.fixture
def drawn(browser: Any, served: Any) -> Iterator[Watched]:
    """A page with its pictures."""
    with watching(browser, served, drawn=True) as made:
        yield made


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
    with watching(browser, watched.served, drawn=False) as elsewhere:  # somebody who read the address somewhere
        late = elsewhere.page
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
        elsewhere.complaints = [each for each in elsewhere.complaints if "401" not in each]  # the word that was used


def picture(page: Any, chart: str) -> str:
    """What is drawn: every path of the chart."""
    return str(
        page.eval_on_selector_all(f"#chart-{chart} path", "paths => paths.map((path) => path.getAttribute('d')).join()")
    )


def test_sliders_change_pictures_and_numbers_and_the_numbers_are_the_packages(drawn: Watched) -> None:
    page = drawn.open()
    drawn.settled()
    assert drawn.number("needed") == pt.sample_size(P, Q, epsilon=1, advantage=2 / 3)
    assert drawn.number("bound") == pt.lower_bound(P, Q, epsilon=1, advantage=2 / 3)
    assert drawn.number("nonprivate") == pt.sample_size(P, Q, epsilon=1, advantage=2 / 3, test="llr")
    page.wait_for_selector("#chart-sizes[data-points='7']")
    page.wait_for_selector("#chart-power[data-points='9']")
    until(page, "document.getElementById('compare-note').textContent.startsWith('for advantage')")
    sizes = page.evaluate(
        "document.getElementById('chart-sizes').data.find((each) => (each.name || '').startsWith('records needed'))"
    )
    assert sizes["y"] == [pt.sample_size(P, Q, epsilon=epsilon, advantage=2 / 3) for epsilon in sizes["x"]]
    rows = page.eval_on_selector_all(
        "#compare tbody tr", "rows => rows.map((row) => [...row.cells].map((cell) => cell.textContent))"
    )
    table = pt.compare(P, Q, epsilon=1, advantage=2 / 3)
    assert [row[0] for row in rows] == [row.test for row in table]
    assert [row[1].replace(",", "") for row in rows] == ["never" if row.n is None else str(row.n) for row in table]
    before = {chart: picture(page, chart) for chart in ("densities", "law", "sizes")}
    drawn.slide("epsilon", -0.7)  # 10^-0.7 is 0.2
    # At once, before any answer: what is of other settings is dimmed.
    dimmed = page.eval_on_selector_all(".chart.stale, #answers .busy", "all => all.length")
    assert dimmed >= 4
    for chart in before:
        page.wait_for_selector(f"#chart-{chart}[data-epsilon='0.2']:not(.stale)")
    drawn.settled()
    assert all(picture(page, chart) != paths for chart, paths in before.items())
    assert drawn.number("needed") == pt.sample_size(P, Q, epsilon=0.2, advantage=2 / 3)
    assert drawn.number("tau") == pytest.approx(pt.decompose(P, Q, epsilon=0.2).tau, rel=5e-3)
    drawn.slide("n", 2.0)
    page.wait_for_selector("#chart-law[data-n='100']:not(.stale)")
    test = pt.design(P, Q, epsilon=0.2, n=100)
    shown = [float(part) for part in page.inner_text("#fact-errors").split("/")]
    assert shown == pytest.approx([test.alpha, test.beta], rel=5e-3)
    assert drawn.number("advantage") == pytest.approx(test.advantage, rel=5e-3)


def test_notions_and_what_may_leave_are_chosen_where_the_question_takes_them(watched: Watched) -> None:
    page = watched.open()
    page.select_option("#notion", "gdp")
    page.fill("#notion-mu", "0.5")
    page.select_option("#ask-release", "decision")
    until(page, "/[0-9]/.test(document.querySelector('#fact-needed').textContent)")
    watched.settled()
    assert not page.is_visible("#epsilon")
    wanted = pt.sample_size(P, Q, privacy="gdp(0.5)", advantage=2 / 3, release="decision")
    assert watched.number("needed") == wanted != pt.sample_size(P, Q, epsilon=1, advantage=2 / 3)
    assert "privacy=gdp" in page.url
    assert "gdp(0.5)" in page.inner_text("#path")
    until(page, "[...document.querySelectorAll('#compare tbody td')].some((each) => each.textContent === 'as asked')")
    watched.go("#tab=plan&kind=bernoulli&null=0.4&alternative=0.6&epsilon=1&neighbours=add-remove")
    watched.settled()
    assert page.is_visible("#epsilon")
    hidden = pt.sample_size(P, Q, epsilon=1, advantage=2 / 3, neighbours="add-remove")
    assert watched.number("needed") == hidden != pt.sample_size(P, Q, epsilon=1, advantage=2 / 3)
    # A question shows the controls that the package's table gives it, and no others.
    takes = planning_requests.controls()["takes"]
    for tab, request in (("change", "/run/change"), ("groups", "/groups"), ("monitor", "/monitors")):
        page.click(f"#tab-{tab}")
        for name, control in (("privacy", "notion"), ("neighbours", "neighbours"), ("release", "ask-release")):
            assert page.is_visible(f"#{control}") == (name in takes[request]), (tab, name)
        assert page.is_visible("#advantage") == (tab == "plan"), tab  # elsewhere it would do nothing


def test_a_run_is_charged_once_handed_over_and_dimmed_when_the_question_moves(watched: Watched) -> None:
    studio, page = watched.served.studio, watched.open()
    ledger, before = studio.ledger, studio.ledger.spent("claims")
    page.fill("#run-path", "../ledger.db")
    page.fill("#run-dataset", "claims")
    page.click("#run-button")
    page.wait_for_selector("#run-problem:not([hidden])")
    assert "inside the studio's folder" in page.inner_text("#run-problem")
    watched.choose("tosses.csv")
    names = page.eval_on_selector_all("#run-column option", "all => all.map((each) => each.textContent)")
    assert names == ["the only one", "toss", "other", "another name …"]
    page.fill("#run-request", "pressed twice")
    page.dblclick("#run-button")
    page.eval_on_selector("#run", "form => { form.requestSubmit(); form.requestSubmit() }")
    page.wait_for_selector("#release .decision")
    page.wait_for_selector("#run-button:not([disabled])")
    first = page.inner_text("#release .decision")
    assert watched.run("pressed twice") == first  # and once more, when the answer is there
    assert "look like P" in first
    assert ledger.spent("claims") - before == 1
    assert page.inner_text("#budgets tbody tr td:nth-child(3)") == f"{float(ledger.spent('claims')):g}"
    page.wait_for_selector("#chart-release[data-n='400']")
    page.fill("#report-purpose", "to see whether the coin is fair")
    page.fill("#report-author", "A. Nonymous")
    with page.expect_download() as found:
        page.click("#report-button")
    text = Path(found.value.path()).read_text()
    granted = f"epsilon {float(ledger.granted('claims')):g}"
    for words in ("to see whether the coin is fair", "A. Nonymous", granted, "pressed twice", "Signatures"):
        assert words in text
    assert ledger.spent("claims") - before == 1  # the report cost nothing
    assert not page.is_visible("#release-stale")
    watched.slide("epsilon", -0.5)
    assert page.is_visible("#release-stale")
    page.select_option("#neighbours", "add-remove")
    page.fill("#run-request", "hidden")
    page.click("#run-button")
    page.wait_for_selector("#run-problem:not([hidden])")
    assert "is hidden" in page.inner_text("#run-problem")
    page.fill("#run-n", "390")
    watched.run("hidden")
    assert not re.search(r"(?<![\d.,])400(?![\d.,])", page.inner_text("#release"))  # as a number of its own
    assert "is not revealed" in page.inner_text("#release")


def test_without_a_ledger_run_says_why_and_made_up_data_are_one_press_away(browser: Any, tmp_path: Path) -> None:
    fill(tmp_path / "data")
    app = create_app(folder=tmp_path / "data", token=TOKEN)
    studio = Studio(tmp_path / "data", pt.Ledger(tmp_path / "unused.db"), app, TestClient(app))
    with listening(studio) as served, watching(browser, served, drawn=False) as watched:
        page = watched.open(COIN + "&tab=groups")
        assert page.is_disabled("#run-button")
        assert "started without a ledger" in page.inner_text("#run [data-reason]")
        assert "needs a ledger" in page.inner_text("#path")
        page.click("#run [data-demo]")
        page.wait_for_selector("#run-group option[value='arm']", state="attached")
        assert not page.is_disabled("#run-button")
        assert (page.input_value("#run-path"), page.input_value("#run-column")) == ("demo/visits.csv", "bought")
        told = watched.run("a try") + page.inner_text("#release")
        assert any(f"rate of {a} minus rate of {b}: about" in told for a, b in (("new", "old"), ("old", "new")))
        page.click("#tab-plan")
        watched.choose("tosses.csv", dataset="demo")  # what is real is not paid for by what is made up
        page.fill("#run-request", "another try")
        page.click("#run-button")
        page.wait_for_selector("#run-problem:not([hidden])")
        assert "is granted for" in page.inner_text("#run-problem")
        watched.complaints = [each for each in watched.complaints if "409" not in each]


def test_a_monitor_is_followed_live_and_a_sequential_test_to_its_verdict(watched: Watched) -> None:
    studio = watched.served.studio
    grows = studio.folder / "live.txt"
    lines = (studio.folder / "stream.txt").read_text().splitlines()
    grows.write_text("\n".join(lines[:200]) + "\n")
    page = watched.open("#kind=bernoulli&null=0.2&alternative=0.8&epsilon=0.5&tab=monitor")
    page.fill("#monitor-path", "live.txt")
    page.fill("#monitor-dataset", "claims")
    page.fill("#monitor-between", "1e9")  # by default one run in fifty has a false alarm
    page.click("#monitor-button")
    until(page, "document.getElementById('chart-monitor').dataset.points > 3")
    assert page.inner_text("#watch-state") == "following"
    with open(grows, "a") as file:
        file.write("\n".join(lines[200:]) + "\n")
    until(page, "document.getElementById('watch-state').textContent === 'changed'")
    assert abs(int(page.inner_text("#watch-alarm")) - 300) <= 150
    threshold, levels = page.evaluate(
        """(() => { const place = document.getElementById('chart-monitor');
        const level = place.layout.shapes.find((each) => each.yref === 'y2').y0;
        return [level, place.data.find((each) => each.yaxis === 'y2').y]; })()"""
    )
    assert levels[-1] > threshold >= max(levels[:-1])  # the alarm is where the line is crossed
    rarely = (
        "goal=errors&alpha=0.000001&beta=0.000001"  # with 0.05 the verdict on ones alone is "null" once in 250 runs
    )
    watched.go(f"#kind=bernoulli&null=0.2&alternative=0.8&epsilon=0.5&{rarely}&tab=sequential")
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
    assert page.evaluate("document.getElementById('watch-state').textContent") == "changed"


def test_labels_that_are_links_marks_or_pictures_stay_text(drawn: Watched) -> None:
    page = drawn.open("#kind=table&epsilon=1")
    label = '<a href="https://evil.example/">press</a>'
    page.fill("#table", f"{label}, 0.5, 0.3\n<b>two</b>, 0.5, 0.7")
    until(page, "document.querySelector('#chart-densities .xtick text') !== null")
    until(page, "document.querySelector('#chart-densities').textContent.includes('<b>two</b>')")
    assert label in page.evaluate("document.querySelector('#chart-densities').textContent")
    assert page.evaluate("document.querySelectorAll('svg a, main a').length") == 0
    page.fill("#table", "<img src=x onerror=document.title=1>, 0.5, 0.3\n<b>often</b>, 0.5, 0.7")
    until(page, "document.querySelector('#chart-densities').textContent.includes('<b>often</b>')")
    assert page.title() == "privatest studio"
    assert page.query_selector("img[src=x]") is None
    page.fill("#table", "a, 1.5, 0.3\nb, 0.5, 0.7")  # a refusal is told where it happened
    page.wait_for_selector("#problem:not([hidden])")


def test_estimates_and_groups_are_planned_and_run_on_their_own_tabs(watched: Watched) -> None:
    studio = watched.served.studio
    rows = "".join(f"{'ab'[i % 2]},{int(i % 5 == 0)}\n" for i in range(200))
    (studio.folder / "arms.csv").write_text("arm,bought\n" + rows)
    page = watched.open("#tab=estimate&epsilon=1&n=100&estimate=bernoulli(?)&low=&high=&at=0.3&width=0.25")
    watched.settled()
    made = pt.design_estimate("bernoulli(?)", epsilon=1, n=100)
    assert watched.number("width") == pytest.approx(made.expected_width(0.3), rel=1e-3)
    assert watched.number("shortest") == pytest.approx(made.width_bound(0.3), rel=1e-3)
    assert watched.number("enough") == made.sample_size(width=0.25, at=0.3)
    assert not page.is_visible("#kind")  # P and Q are no part of this question
    watched.choose("tosses.csv")
    assert "p: about 0." in watched.run("how often")
    until(page, "document.getElementById('chart-release').dataset.task === 'estimate'")
    page.fill("#ask-low", "0.9")
    page.fill("#ask-high", "0.1")
    until(page, "document.getElementById('problem').textContent.includes('lower end first')")
    page.click("#tab-plan")
    assert "Nothing yet" in page.inner_text("#release")
    page.click("#tab-estimate")
    assert "p: about 0." in page.inner_text("#release .decision")
    watched.go("#tab=groups&epsilon=1&control=100&treatment=100&rate=0.3&lift=0.3&miss=0.3")
    watched.settled()
    arms = pt.design_groups(n=(100, 100), epsilon=1)
    assert watched.number("power") == pytest.approx(arms.power((0.3, 0.6)), abs=1e-3)
    assert page.inner_text("#fact-arms").partition(" ")[0] == str(arms.sample_size(rate=0.3, lift=0.3, beta=0.3))
    watched.choose("arms.csv", "bought")
    page.select_option("#run-group", "arm")
    assert "rate of b minus rate of a: about" in watched.run("b or a")
    page.fill("#ask-lift", "0.9")
    until(page, "document.getElementById('problem').textContent.includes('between 0 and 1')")


def test_a_column_is_described_with_one_press_and_one_charge(watched: Watched) -> None:
    studio = watched.served.studio
    values = np.random.default_rng(3).normal(2, 1, 600)
    (studio.folder / "column.csv").write_text("value\n" + "".join(f"{value:.3f}\n" for value in values))
    before = studio.ledger.spent("claims")
    page = watched.open("#tab=describe&epsilon=1&least=-2&most=6&cells=16")
    assert not page.is_visible("#kind")
    assert "16 cells between -2 and 6" in page.inner_text("#run .summary")
    watched.choose("column.csv", "value")
    headline = watched.run("the column")
    until(page, "document.getElementById('chart-release').dataset.points === '18'")
    assert re.match(r"mean of the records, clipped to \[-2, 6\]: about [12]\.?\d*; median: about [12]\.?\d*", headline)
    told = page.inner_text("#release")
    for name in ("0.25 quantile", "0.75 quantile", "below -2", "1.5 to 2"):  # as they are called, point and all
        assert name in told
    assert studio.ledger.spent("claims") == before + 1
    page.fill("#ask-most", "")
    assert "and at most: write a number" in page.inner_text("#run .summary")
    page.fill("#ask-labels", "0,1")
    watched.choose("tosses.csv")
    assert watched.run("the tosses").startswith("share of 0: about 0.")
    page.click("#report-button")
    until(page, "document.getElementById('report-note').textContent.startsWith('Saved')")


@cache
def axe() -> str:
    """The checker's script: npm's axe-core, of the version that package.json names."""
    place = Path(os.environ.get("AXE_CORE", Path(__file__).parents[1] / "node_modules" / "axe-core")) / "axe.min.js"
    if not place.is_file():
        needs.missing("axe-core is not installed. Get it: npm ci --prefix tests")
    return place.read_text()


FOUND = """async () => {
  const { violations } = await axe.run(document, { resultTypes: ["violations"] });
  return violations.map((each) => `${each.id}: ${each.nodes.map((node) => node.target.join(" ")).join(", ")}`);
}"""
UNSEEN = """() => {
  const counts = document.querySelectorAll('[role="tab"][aria-selected="true"], .path [aria-current]');
  const cut = ({ left, right }) => left < -1 || right > innerWidth + 1;
  const found = [...counts].filter((each) => cut(each.getBoundingClientRect()));
  return found.map((each) => `${each.textContent} is out of view`);
}"""
STATES = [(width, scheme) for width in (1400, 420) for scheme in ("light", "dark")]


def checked(page: Any, name: str, states: list[tuple[int, str]]) -> list[str]:
    """What the checker finds on a page that is open, in each state; and whether anything is cut."""
    found = []
    for width, scheme in states:
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        wide = page.evaluate("document.documentElement.scrollWidth")
        until_seen = time.monotonic() + 20  # the page hears of its new size a frame later
        while (unseen := page.evaluate(UNSEEN)) and time.monotonic() < until_seen:
            time.sleep(0.05)
        found += [f"{name} {width} {scheme}: {each}" for each in [*page.evaluate(FOUND), *unseen]]
        found += [f"{name} {width}: {wide} pixels wide"] if wide > width else []
    return found


@pytest.mark.parametrize(
    "states",
    [STATES[::3], pytest.param(STATES, marks=pytest.mark.exhaustive)],
    ids=["two", "all"],
)
def test_a_checker_of_accessibility_finds_nothing_and_the_keyboard_suffices(
    browser: Any, served: Any, tmp_path: Path, states: list[tuple[int, str]]
) -> None:
    script = axe()
    test = pt.design(P, Q, epsilon=1, n=400)
    ledger = served.studio.ledger
    release = test.run(np.zeros(400), ledger=ledger, dataset="claims", request="for the page")
    asked = {"null": P, "alternative": Q, "epsilon": 1, "dataset": "claims", "request": "for the page"}
    about = {"purpose": "to be checked", "author": "A. Nonymous", "ledger": ledger}
    report.write(tmp_path / "report.html", question=asked, design=test, result=release, kind="test", **about)
    with watching(browser, served, drawn=True) as watched:
        page = watched.open()
        watched.settled()
        # In a world of its own, which the page's policy does not bind.
        client = page.context.new_cdp_session(page)
        client.send("Page.setBypassCSP", {"enabled": True})
        page.reload()
        page.wait_for_selector("html[data-ready=yes]")
        watched.settled()
        page.evaluate(script)
        page.focus("#tab-plan")
        found = []
        for key, tab in (
            ("Home", "plan"),
            ("ArrowRight", "change"),
            ("ArrowRight", "estimate"),
            ("ArrowRight", "describe"),
            ("ArrowRight", "groups"),
            ("ArrowRight", "monitor"),
            ("End", "sequential"),
        ):
            page.keyboard.press(key)
            assert page.evaluate("document.activeElement.id") == f"tab-{tab}"
            assert page.get_attribute(f"#tab-{tab}", "aria-selected") == "true"
            assert page.is_visible(f"#panel-{tab}")
            found += checked(page, tab, states)
        page.keyboard.press("ArrowRight")  # around the end
        assert page.evaluate("document.activeElement.id") == "tab-plan"
        page.focus("#epsilon")
        before = page.input_value("#epsilon-number")
        page.keyboard.press("ArrowRight")
        assert page.input_value("#epsilon-number") != before
        assert "epsilon" in page.get_attribute("#epsilon", "aria-valuetext")
        page.evaluate(
            "document.querySelector('#epsilon').removeAttribute('id')"
        )  # a check that finds nothing ever is none
        assert any("label" in each for each in page.evaluate(FOUND))
        page.goto((tmp_path / "report.html").as_uri())
        page.evaluate(script)
        found += checked(page, "report", states)
        page.eval_on_selector_all("details", "all => all.forEach((each) => { each.open = true; })")
        found += checked(page, "report, unfolded", states)
    assert found == []
