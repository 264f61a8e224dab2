"""`make readme`: every command and snippet of the README, as written, in an environment that has only what it installs.

The project's files (those that git tracks) are copied to an empty folder; the shell commands run there one block after
the other in one shell, the Python snippets with the Python that they installed. `make test` is the suite itself and is
left out. The tests run the same commands in the environment of development (:func:`commands`, `tests/test_readme.py`).
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.conftest import examples

ROOT = Path(__file__).resolve().parents[1]
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LEFT_OUT = ("make test",)


def commands(text: str) -> list[str]:
    """The shell commands of a document in their order, lines that go on joined to one; comments are left off.

    >>> commands("```sh\\nmake run  # first\\na \\\\\\n  b\\n```\\n")
    ['make run', 'a b']
    """
    lines = "".join(BLOCK.findall(text)).replace("\\\n", " ").splitlines()
    return [re.sub(r"\s+", " ", command) for line in lines if (command := re.sub(r"\s+# .*", "", line).strip())]


def copy(folder: Path) -> None:
    """The files of the project as somebody who clones it has them, changes that are not committed included."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, check=True).stdout.decode().split("\0")
    for name in filter(None, names):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes((ROOT / name).read_bytes())


def main() -> int:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    wanted = [command for command in commands(text) if command not in LEFT_OUT]
    with tempfile.TemporaryDirectory(prefix="privatest-fresh-") as name:
        folder = Path(name)
        copy(folder)
        # One shell, so that what is activated stays so.
        lines = ["set -e", *(f"echo '$' {quoted(command)}\n{command}" for command in wanted)]
        start = time.monotonic()
        done = subprocess.run(["sh", "-c", "\n".join(lines)], cwd=folder)
        if done.returncode != 0:
            print(f"A command of the README failed with exit code {done.returncode}; the last one shown.")
            return 1
        count = snippets(folder, text)
        seconds = time.monotonic() - start
    print(
        f"README: {len(wanted)} commands and {count} snippets ran as written in a fresh environment, in {seconds:.0f} s"
    )
    return 0


def quoted(command: str) -> str:
    return "'" + command.replace("'", "'\\''") + "'"


def snippets(folder: Path, text: str) -> int:
    """Run the Python blocks with what the README installed, in one process, and compare what they print."""
    found = list(examples(text))
    marks = [f"print({str(number)!r} * 60)" for number in range(len(found))]
    program = "\n".join(f"{example.code}\n{mark}" for example, mark in zip(found, marks, strict=True))
    done = subprocess.run([folder / "env/bin/python", "-c", program], cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(done.stderr)
    rest = done.stdout
    for number, example in enumerate(found):
        printed, _, rest = rest.partition(str(number) * 60 + "\n")
        if example.printed is not None and printed != example.printed:
            raise SystemExit(f"README.md, line {example.line} prints\n{printed}\ninstead of\n{example.printed}")
    return len(found)


if __name__ == "__main__":
    sys.exit(main())
