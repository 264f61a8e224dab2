"""From slider to redrawn picture in a real Chromium: ``python benchmarks/bench_studio.py`` prints median and p95.

Two things are timed. Densities: from the moment at which the epsilon slider moves to the frame in which the picture of
P and Q for that epsilon is painted, over 100 moves. Statistic: the same for the picture of the tuned test, which
follows when the slider rests (exact error rates and a tuned clamp take longer), over 20 moves. Meanwhile the page fills
in its slower curves, as it does for a user.
"""

from __future__ import annotations

import argparse
import json
import shutil
import socket
import threading
import time
from typing import Any

import numpy as np
import uvicorn
from playwright.sync_api import sync_playwright

from privatest.studio import create_app

QUIET = ("gpu", "quic", "background-networking", "component-update", "sync")
ARGUMENTS = ["--headless", "--no-sandbox", "--no-first-run", *(f"--disable-{word}" for word in QUIET)]
PROBLEMS = {
    "normal(0, 1) against normal(0.5, 1)": "#kind=normal&null=0, 1&alternative=0.5, 1&epsilon=0.5&n=100",
    "bernoulli(0.4) against bernoulli(0.6)": "#kind=bernoulli&null=0.4&alternative=0.6&epsilon=0.5&n=100",
}
# Moves the slider and gives the milliseconds to the frame after the drawing for the new epsilon.
MOVE = """async ([id, place]) => {
  const slider = document.getElementById('epsilon');
  slider.value = String(place);
  const wanted = String(Number((10 ** Number(slider.value)).toPrecision(3)));
  const start = performance.now();
  slider.dispatchEvent(new Event('input', { bubbles: true }));
  return new Promise((done, failed) => {
    const look = () => {
      const there = document.getElementById(id).dataset.epsilon === wanted;
      if (there) requestAnimationFrame(() => done(performance.now() - start));
      else if (performance.now() - start > 60000) failed(new Error('not drawn within a minute: ' + id));
      else setTimeout(look, 1);
    };
    look();
  });
}"""


def measure(page: Any, chart: str, moves: int, pause: float) -> list[float]:
    """Milliseconds for each move, at places that never repeat (an answer that is remembered would be quicker)."""
    first = {"chart-densities": -1.50, "chart-law": -1.505}[chart]
    places = np.random.default_rng(1).permutation(np.arange(moves)) * 0.02 + first + 0.01
    page.evaluate(MOVE, [chart, 0.9])  # everything is loaded and warm
    found = []
    for place in places:
        page.wait_for_timeout(1000 * pause)
        found.append(page.evaluate(MOVE, [chart, round(float(place), 2)]))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--moves", type=int, default=100)
    moves = parser.parse_args().moves
    app = create_app()
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", access_log=False))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    address = f"http://127.0.0.1:{listening.getsockname()[1]}"
    try:
        with sync_playwright() as play:
            browser = play.chromium.launch(executable_path=shutil.which("chromium"), args=ARGUMENTS)
            page = browser.new_page(viewport={"width": 1360, "height": 900})
            page.goto(f"{address}/?token={app.state.token}")
            for name, settings in PROBLEMS.items():
                page.goto("about:blank")
                page.goto(address + "/" + settings)
                page.wait_for_selector("#chart-law[data-n='100']", timeout=60_000)
                time.sleep(1)
                for chart, count, pause in (("chart-densities", moves, 0.05), ("chart-law", moves // 5, 0.3)):
                    times = measure(page, chart, count, pause)
                    median, p95 = np.percentile(times, [50, 95])
                    found = {"pair": name, "chart": chart, "moves": len(times)}
                    print(
                        json.dumps({**found, "median_ms": round(float(median), 1), "p95_ms": round(float(p95), 1)}),
                        flush=True,
                    )
            browser.close()
    finally:
        server.should_exit = True
        thread.join()
        listening.close()


if __name__ == "__main__":
    main()
