"""Pictures of the studio's three tabs, taken in Chromium: ``python docs/make_studio_screens.py``.

Writes docs/screens/studio_{plan,run,monitor}.png (and studio_plan_dark.png) from made-up data.
"""

from __future__ import annotations

import shutil
import socket
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


def run(page: Any) -> None:
    page.click("#tab-run")
    page.fill("#run-path", "lab_values.csv")
    page.fill("#run-column", "value")
    page.fill("#run-dataset", "lab")
    page.fill("#run-request", "is the mean still 0")
    page.click("#run-button")
    until(page, "document.getElementById('chart-release').dataset.n === '400'")
    page.wait_for_timeout(300)
    page.screenshot(path=SCREENS / "studio_run.png", full_page=True)


def monitor(page: Any) -> None:
    page.click("#tab-monitor")
    page.fill("#monitor-path", "stream.txt")
    page.fill("#monitor-dataset", "lab")
    page.fill("#monitor-request", "watch the mean")
    page.click("#monitor-button")
    until(page, "document.getElementById('watch-state').textContent === 'changed'")
    page.wait_for_timeout(300)
    page.screenshot(path=SCREENS / "studio_monitor.png", full_page=True)


def main() -> None:
    chromium = shutil.which("chromium")
    if chromium is None:
        raise SystemExit("Chromium is not installed. Get it: apt-get install chromium")
    SCREENS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as where:
        made_up(Path(where, "data"))
        ledger = pt.Ledger(Path(where, "ledger.db"))
        ledger.grant("lab", epsilon=2)
        ledger.grant("survey", epsilon=1)
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
                plan(page, address)
                run(page)
                monitor(page)
                browser.close()
        finally:
            server.should_exit = True
            thread.join()
            listening.close()
    print(*(path.relative_to(SCREENS.parent.parent) for path in sorted(SCREENS.glob("studio_*.png"))), sep="\n")


if __name__ == "__main__":
    main()
