"""Pictures of the studio's pages and of a report, taken in Chromium: ``python docs/make_studio_screens.py [plan ...]``.

Writes docs/screens/studio_{plan,change,estimate,describe,groups,monitor,sequential}.png and report.png at 1400 pixels,
and some of them at 420 pixels (``_420``) and dark (``_dark``), from made-up data, in few colours to keep them small.
Without words: all. ``--all FOLDER`` writes every page at 1400 and 420 pixels, light and dark, to that folder instead.
"""

from __future__ import annotations

import shutil
import socket
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import uvicorn
from PIL import Image
from playwright.sync_api import sync_playwright

import privatest as pt
from privatest.studio import create_app

SCREENS = Path(__file__).parent / "screens"
QUIET = ("gpu", "quic", "background-networking", "component-update", "sync")
ARGUMENTS = ["--headless", "--no-sandbox", "--no-first-run", *(f"--disable-{word}" for word in QUIET)]
LAB = "#kind=normal&null=0, 1&alternative=0.5, 1&epsilon=0.5&n=100"


def made_up(folder: Path) -> None:
    """Lab values that look like P, and a stream whose mean moves half-way."""
    rng = np.random.default_rng(2)
    folder.mkdir()
    (folder / "lab_values.csv").write_text("value\n" + "".join(f"{x:.4f}\n" for x in rng.normal(0.5, 1, 400)))
    stream = np.concatenate([rng.normal(0, 1, 700), rng.normal(0.5, 1, 700)])
    (folder / "stream.txt").write_text("".join(f"{x:.4f}\n" for x in stream))
    (folder / "stream.csv").write_text("value\n" + "".join(f"{x:.4f}\n" for x in stream))
    visits = [("new" if i % 2 else "old", int(rng.random() < (0.16 if i % 2 else 0.1))) for i in range(2000)]
    (folder / "visits.csv").write_text("arm,bought\n" + "".join(f"{arm},{bought}\n" for arm, bought in visits))


def until(page: Any, expression: str, seconds: float = 240) -> None:
    end = time.monotonic() + seconds
    while not page.evaluate(expression):
        if time.monotonic() > end:
            raise SystemExit(f"The page never came to: {expression}")
        time.sleep(0.05)


def plan(page: Any, address: str) -> None:
    page.goto(address + "/" + LAB)
    until(page, "document.getElementById('chart-sizes').dataset.points === '7'")
    until(page, "document.getElementById('chart-power').dataset.points === '9'")
    until(page, "document.getElementById('compare-note').textContent.startsWith('for advantage')")
    until(page, "!document.querySelector('.busy')")
    asked(page, "lab_values.csv", "value", "lab", "is the mean still 0")


def change(page: Any, address: str) -> None:
    page.goto(address + "/" + LAB + "&tab=change")
    page.reload()
    page.wait_for_selector("html[data-ready=yes]")
    asked(page, "stream.csv", "value", "lab", "when did the mean move")


def estimate(page: Any, address: str) -> None:
    page.goto(address + "/#tab=estimate&epsilon=1&n=400&estimate=normal(mean=?, sd=1)&low=-3&high=3&at=0.5&width=0.2")
    page.reload()
    page.wait_for_selector("html[data-ready=yes]")
    until(page, "document.getElementById('chart-widths').dataset.bounds === '7'")
    until(page, "!document.querySelector('#answers .busy')")
    asked(page, "lab_values.csv", "value", "lab", "how large is the mean")


def describe(page: Any, address: str) -> None:
    page.goto(address + "/#tab=describe&epsilon=1&least=-4&most=5&cells=32")
    page.reload()
    page.wait_for_selector("html[data-ready=yes]")
    asked(page, "lab_values.csv", "value", "lab", "what do the values look like")


def groups(page: Any, address: str) -> None:
    page.goto(address + "/#tab=groups&epsilon=0.5&control=1000&treatment=1000&rate=0.1&lift=0.05")
    page.reload()
    page.wait_for_selector("html[data-ready=yes]")
    until(page, "!document.querySelector('#answers .busy')")
    until(page, "document.getElementById('fact-arms').innerText.length > 1")
    asked(page, "visits.csv", "bought", "visits", "did the new page sell more", group="arm")


def monitor(page: Any, address: str) -> None:
    page.goto(address + "/" + LAB + "&tab=monitor")
    page.reload()
    page.wait_for_selector("html[data-ready=yes]")
    page.fill("#monitor-path", "stream.txt")
    page.fill("#monitor-dataset", "lab")
    page.fill("#monitor-request", "watch the mean")
    page.click("#monitor-button")
    until(page, "document.getElementById('watch-state').textContent === 'changed'")


def sequential(page: Any, address: str) -> None:
    page.goto(address + "/" + LAB + "&tab=sequential")
    page.reload()
    page.wait_for_selector("html[data-ready=yes]")
    page.fill("#sequential-path", "stream.txt")
    page.fill("#sequential-dataset", "lab")
    page.fill("#sequential-request", "decide early")
    page.click("#sequential-button")
    until(page, "document.getElementById('walk-state').textContent === 'null'")


def report(page: Any, address: str) -> None:
    """The report of the first question, as the page hands it over."""
    page.goto(address + "/" + LAB)
    page.reload()
    page.wait_for_selector("html[data-ready=yes]")
    asked(page, "lab_values.csv", "value", "lab", "is the mean still 0")
    page.fill("#report-purpose", "To see whether the new reagent shifts the measurements")
    page.fill("#report-author", "Laboratory 3")
    with page.expect_download() as found:
        page.click("#report-button")
    place = Path(tempfile.mkdtemp(), "report.html")
    found.value.save_as(place)
    page.goto(place.as_uri())


def asked(page: Any, path: str, column: str, dataset: str, request: str, group: str | None = None) -> None:
    page.fill("#run-path", path)
    page.dispatch_event("#run-path", "change")
    page.wait_for_selector(f"#run-column option[value={column}]", state="attached")
    page.select_option("#run-column", column)
    if group is not None:
        page.select_option("#run-group", group)
        page.fill("#run-control", "old")
    page.fill("#run-dataset", dataset)
    page.fill("#run-request", request)
    page.click("#run-button")
    until(page, f"document.getElementById('release').dataset.request === '{request}'")
    until(
        page, "!document.querySelector('#chart-release.stale') && document.querySelector('#chart-release svg') !== null"
    )


TABS = {
    "plan": plan,
    "change": change,
    "estimate": estimate,
    "describe": describe,
    "groups": groups,
    "monitor": monitor,
    "sequential": sequential,
    "report": report,
}
KEPT = {"plan_dark", "plan_420", "monitor_420", "report_420_dark"}
"""What is kept besides every page at 1400 pixels, light."""


def shots(page: Any, name: str, folder: Path, *, every: bool) -> None:
    """The whole page, on a desk and on a telephone, light and dark."""
    stem = name if name == "report" else f"studio_{name}"
    for width, wide in ((1400, ""), (420, "_420")):
        for scheme, dark in (("light", ""), ("dark", "_dark")):
            ending = wide + dark
            if not (every or not ending or name + ending in KEPT):
                continue
            page.set_viewport_size({"width": width, "height": 900})
            page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            page.evaluate("scrollTo(0, 0)")
            page.wait_for_timeout(700)
            place = folder / f"{stem}{ending}.png"
            page.screenshot(path=place, full_page=True)
            smaller(place)
    page.set_viewport_size({"width": 1400, "height": 900})
    page.emulate_media(color_scheme="light")


def smaller(place: Path) -> None:
    """The same picture in few colours."""
    with Image.open(place) as shot:
        few = shot.convert("RGB").quantize(128, dither=Image.Dither.NONE)
    few.save(place, optimize=True)


def main() -> None:
    words = sys.argv[1:]
    every = "--all" in words
    folder = SCREENS
    if every:
        at = words.index("--all")
        folder = Path(words[at + 1])
        words = words[:at] + words[at + 2 :]
    wanted = words or list(TABS)
    chromium = shutil.which("chromium")
    if chromium is None:
        raise SystemExit("Chromium is not installed. Get it: apt-get install chromium")
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as where:
        made_up(Path(where, "data"))
        ledger = pt.Ledger(Path(where, "ledger.db"))
        ledger.grant("lab", epsilon=5)
        ledger.grant("survey", privacy="zcdp(0.5)")
        ledger.grant("visits", epsilon=1, covers=[Path(where, "data", "visits.csv")])
        app = create_app(folder=Path(where, "data"), ledger=ledger)
        listening = socket.create_server(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(app, log_level="error", access_log=False))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        address = f"http://127.0.0.1:{listening.getsockname()[1]}"
        try:
            with sync_playwright() as play:
                browser = play.chromium.launch(executable_path=chromium, args=ARGUMENTS)
                page = browser.new_page(viewport={"width": 1400, "height": 900})
                page.set_default_timeout(240_000)
                page.goto(f"{address}/#launch={app.state.launch()}")
                page.wait_for_selector("html[data-ready=yes]")
                for name in wanted:
                    TABS[name](page, address)
                    shots(page, name, folder, every=every)
                browser.close()
        finally:
            server.should_exit = True
            thread.join()
            listening.close()
    print(*sorted(path.name for path in folder.glob("*.png")), sep="\n")


if __name__ == "__main__":
    main()
