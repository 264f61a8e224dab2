"""From slider to redrawn picture in a real Chromium: ``python benchmarks/bench_studio.py`` prints median and p95.

Two things are timed over 100 moves each. Densities: from the moment at which the epsilon slider moves to the frame in
which the picture of P and Q for that epsilon is painted. Statistic: the same for the picture of the tuned test (exact error
rates and a tuned clamp take longer; it follows the first). Each move starts when both pictures of the last one are there.
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
# Moves the slider and resolves, per chart, with the milliseconds to the frame after the drawing for the new epsilon.
MOVE = """async (place) => {
  const slider = document.getElementById('epsilon');
  slider.value = String(place);
  const wanted = String(Number((10 ** Number(slider.value)).toPrecision(3)));
  const start = performance.now();
  slider.dispatchEvent(new Event('input', { bubbles: true }));
  const drawn = (id) => new Promise((done, failed) => {
    const look = () => {
      if (document.getElementById(id).dataset.epsilon === wanted) requestAnimationFrame(() => done(performance.now() - start));
      else if (performance.now() - start > 60000) failed(new Error('not drawn within a minute: ' + id));
      else setTimeout(look, 1);
    };
    look();
  });
  return Promise.all([drawn('chart-densities'), drawn('chart-law')]);
}"""


def measure(page: Any, moves: int) -> dict[str, list[float]]:
    """Milliseconds for each move, at places that never repeat (an answer that is remembered would be quicker)."""
    rng = np.random.default_rng(1)
    places = np.round(rng.permutation(np.linspace(-1.5, 0.6, moves + 5)), 2)
    page.evaluate(MOVE, 0.99)  # everything is loaded and warm
    timed = [page.evaluate(MOVE, float(place)) for place in dict.fromkeys(places)][:moves]
    return {"densities": [each[0] for each in timed], "statistic": [each[1] for each in timed]}


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
                for chart, times in measure(page, moves).items():
                    median, p95 = np.percentile(times, [50, 95])
                    found = {"pair": name, "chart": chart, "moves": len(times)}
                    print(json.dumps({**found, "median_ms": round(float(median), 1), "p95_ms": round(float(p95), 1)}))
            browser.close()
    finally:
        server.should_exit = True
        thread.join()
        listening.close()


if __name__ == "__main__":
    main()
