"""Write docs/screens/*.txt: what `plan`, `compare`, `test`, `detect` and others print in 80 columns.

Run it with `python docs/make_screens.py`. Releases are random, so those screens differ from run to run.
"""

from __future__ import annotations

import contextlib
import io
import os
import shlex
import sys
import tempfile
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SCREENS = ROOT / "docs" / "screens"
sys.path.insert(0, str(ROOT / "examples"))

import make_worked  # noqa: E402  the examples are no package

from privatest import cli  # noqa: E402

GRANT = "ledger grant --ledger ledger.db --dataset lab --epsilon 1"
PAID = "--ledger ledger.db --dataset lab"
COMMANDS = {
    "plan": ['plan --null "normal(0,1)" --alternative "normal(0.2,1)" --epsilon 0.5'],
    "plan_n": ['plan --null "bernoulli(0.12)" --alternative "bernoulli(0.2)" --epsilon 0.5 --n 300'],
    "compare": ['compare --null "bernoulli(0.6)" --alternative "bernoulli(0.4)" --epsilon 1'],
    "curve": ['curve --null "poisson(3)" --alternative "poisson(4)" --epsilon 0.5 --n 10,20,40,80,160'],
    "test": [GRANT, f"test lab_value_latest.csv --problem lab.toml {PAID} --request latest"],
    "detect": [f"detect lab_value.csv --problem lab.toml {PAID} --request when"],
    "fit": ["fit survey_latest.csv --problem survey.toml"],
    "ledger": ["ledger show --ledger ledger.db"],
    "errors": [
        'plan --null "nromal(0,1)" --alternative "normal(1,1)" --epsilon 1',
        f"test lab_value_latest.csv --problem lab.toml {PAID} --request again --column glucos",
        f"test lab_value_latest.csv --problem lab.toml {PAID} --request again",
    ],
}


def captured(line: str) -> str:
    """The command line as one would type it, and all that it prints."""
    page = io.StringIO()
    with contextlib.redirect_stdout(page), contextlib.redirect_stderr(page):
        cli.main(shlex.split(line))
    typed = textwrap.wrap(f"$ privatest {line}", 77, subsequent_indent="      ", break_long_words=False)
    return " \\\n".join(typed) + f"\n{page.getvalue()}"


def main() -> None:
    SCREENS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        make_worked.write(Path(folder))
        for name, problem in (("lab", "lab_value"), ("survey", "survey")):
            text = (ROOT / "examples" / problem / "problem.toml").read_text(encoding="utf-8")
            Path(folder, f"{name}.toml").write_text(text, encoding="utf-8")
        os.chdir(folder)
        for name, lines in COMMANDS.items():
            text = "\n".join(captured(line) for line in lines)
            (SCREENS / f"{name}.txt").write_text(text, encoding="utf-8")
            print(text)
        os.chdir(ROOT)


if __name__ == "__main__":
    main()
