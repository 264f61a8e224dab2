"""Pictures of the studio's tabs, taken in Chromium: ``python docs/make_studio_screens.py [plan run monitor ...]``.

Writes docs/screens/studio_{plan,run,monitor}.png (and studio_plan_dark.png), and studio_{estimate,groups}.png at 1400
and at 420 pixels, from made-up data. Without words: all of them.
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
    until(page, "document.querySelectorAll('#compare tbody tr').length > 3")
    until(page, "!document.querySelector('.busy')")
    page.screenshot(path=SCREENS / "studio_plan.png", full_page=True)
    page.emulate_media(color_scheme="dark")
    page.wait_for_timeout(600)
    page.screenshot(path=SCREENS / "studio_plan_dark.png")
    page.emulate_media(color_scheme="light")


def run(page: Any, address: str) -> None:
    page.goto(address + "/" + LAB)
    page.click("#tab-run")
    page.fill("#run-path", "lab_values.csv")
    page.fill("#run-column", "value")
    page.fill("#run-dataset", "lab")
    page.fill("#run-request", "is the mean still 0")
    page.click("#run-button")
    until(page, "document.getElementById('chart-release').dataset.n === '400'")
    page.wait_for_timeout(300)
    page.screenshot(path=SCREENS / "studio_run.png", full_page=True)


def monitor(page: Any, address: str) -> None:
    page.goto(address + "/" + LAB)
    page.click("#tab-monitor")
    page.fill("#monitor-path", "stream.txt")
    page.fill("#monitor-dataset", "lab")
    page.fill("#monitor-request", "watch the mean")
    page.click("#monitor-button")
    until(page, "document.getElementById('watch-state').textContent === 'changed'")
    page.wait_for_timeout(300)
    page.screenshot(path=SCREENS / "studio_monitor.png", full_page=True)


def estimate(page: Any, address: str) -> None:
    page.goto(address + "/#tab=estimate&epsilon=1&n=400&estimate=normal(mean=?, sd=1)&low=-3&high=3&at=0.5&width=0.2")
    page.reload()
    page.wait_for_selector("html[data-ready=yes]")
    until(page, "document.getElementById('chart-widths').dataset.bounds === '7'")
    until(page, "!document.querySelector('#panel-estimate .busy')")
    asked(page, "lab_values.csv", "value", "lab", "how large is the mean")
    both(page, "estimate")


def groups(page: Any, address: str) -> None:
    page.goto(address + "/#tab=groups&epsilon=0.5&control=1000&treatment=1000&rate=0.1&lift=0.05")
    page.reload()
    page.wait_for_selector("html[data-ready=yes]")
    until(page, "!document.querySelector('#panel-groups .busy')")
    until(page, "document.getElementById('fact-arms').innerText.length > 1")
    page.fill("#run-group", "arm")
    page.fill("#run-control", "old")
    asked(page, "visits.csv", "bought", "visits", "did the new page sell more")
    both(page, "groups")


def asked(page: Any, path: str, column: str, dataset: str, request: str) -> None:
    for name, value in (("path", path), ("column", column), ("dataset", dataset), ("request", request)):
        page.fill(f"#run-{name}", value)
    page.click("#run-button")
    until(page, f"document.getElementById('release').dataset.request === '{request}'")
    page.wait_for_timeout(600)


def both(page: Any, name: str) -> None:
    """The whole page, on a desk and on a telephone."""
    for width, ending in ((1400, ""), (420, "_420")):
        page.set_viewport_size({"width": width, "height": 900})
        page.evaluate("scrollTo(0, 0)")
        page.wait_for_timeout(800)
        page.screenshot(path=SCREENS / f"studio_{name}{ending}.png", full_page=True)
    page.set_viewport_size({"width": 1360, "height": 900})


def main() -> None:
    wanted = sys.argv[1:] or ["plan", "run", "monitor", "estimate", "groups"]
    chromium = shutil.which("chromium")
    if chromium is None:
        raise SystemExit("Chromium is not installed. Get it: apt-get install chromium")
    SCREENS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as where:
        made_up(Path(where, "data"))
        ledger = pt.Ledger(Path(where, "ledger.db"))
        ledger.grant("lab", epsilon=2)
        ledger.grant("survey", epsilon=1)
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
                page = browser.new_page(viewport={"width": 1360, "height": 900})
                page.goto(f"{address}/#launch={app.state.launch()}")
                page.wait_for_selector("html[data-ready=yes]")
                tabs = {"plan": plan, "run": run, "monitor": monitor, "estimate": estimate, "groups": groups}
                for name in wanted:
                    tabs[name](page, address)
                browser.close()
        finally:
            server.should_exit = True
            thread.join()
            listening.close()
    print(*(path.relative_to(SCREENS.parent.parent) for path in sorted(SCREENS.glob("studio_*.png"))), sep="\n")


if __name__ == "__main__":
    main()
