"""Write docs/families.md: what can be written as text, from the table that the parser reads.

    python docs/make_families.py

A test compares the page with what this makes.
"""

from __future__ import annotations

from pathlib import Path

from privatest.hypotheses.distribution import number_text
from privatest.hypotheses.families import ALIASES, FAMILIES, Family

PAGE = Path(__file__).with_name("families.md")

HEAD = """\
# Families: P and Q as text

Made by `python docs/make_families.py` from the table that the parser reads.

Wherever P or Q is asked for, in Python, on the command line, in problem files and in the studio, a text such as
`"normal(0, 1)"` will do. Values are given in order or by name, `"normal(mean=0, sd=1)"`; a fraction such as `1/3` is
exact. Texts are parsed, never evaluated.
"""

TAIL = """\
## Beside the families

| text | records | meaning |
|---|---|---|
| `categorical(a=0.2, b=0.8)` | labels | the share of each; they add up to 1 |
| `categorical(0.2, 0.8)` | 0, 1, ... | the same for whole numbers from 0 on |
| `mixture(0.3, normal(0, 1), 0.7, normal(2, 1))` | as its parts' | each part with its weight |
| `near(normal(0, 1), 0.02)` | as its centre's | every law within total variation 0.02 |
| `contaminated(normal(0, 1), 0.02)` | as its centre's | 98% from it, 2% from anywhere |
| `any_of(poisson(3), poisson(4))` | as its parts' | one of these |
| `median(5)`, `median_above(5, 0.6)`, `median_below(5, 0.6)` | real numbers | by the side of a public cut |

Instead of a value a parameter may have a range, `"normal(mean<=0, sd in [0.8, 1.2])"`: [sets](sets.md). Of an
[estimate](estimates.md) one is a question mark, `"normal(mean=?, sd=1)"`. It stands for the whole value: `-?`, `1?`,
`1/?`, `mean<=?` are refused. Of an exponential write `exponential(?)` for the mean, `exponential(rate=?)` for one over
it.

What no text says: any frozen continuous or discrete distribution of scipy's, a mapping from labels to probabilities, an
array of probabilities, and `pt.density(logpdf, support=...)` for a density of your own.

```python
import math

import privatest as pt
from scipy import stats

print(pt.sample_size("lognormal(0, 1)", "lognormal(0.5, 1)", epsilon=1))  # mean and sd of log(x) ...
print(pt.sample_size("normal(0, 1)", "normal(0.5, 1)", epsilon=1))  # ... so these are the same question
print(pt.sample_size(stats.lognorm(1, scale=math.exp(0)), stats.lognorm(1, scale=math.exp(0.5)), epsilon=1))
print(pt.sample_size({"yes": 0.3, "no": 0.7}, {"yes": 0.4, "no": 0.6}, epsilon=1))
```

```text
25
25
25
92
```
"""


def rows(families: list[Family]) -> list[str]:
    """One line for each family, its parameters in the order in which they are written."""
    short = {name: [alias for alias, full in ALIASES.items() if full == name] for name in FAMILIES}
    lines = ["| text | records | parameters | scipy |", "|---|---|---|---|"]
    for family in families:
        told = [
            f"`{one.name}`: {one.meaning} ({one.rule[0]}"
            + (")" if one.default is None else f"; {number_text(one.default)} if left out)")
            for one in family.parameters
        ]
        also = f" (also {', '.join(f'`{alias}`' for alias in short[family.name])})" if short[family.name] else ""
        scipy = f"`{family.scipy}`" if family.scipy != "share_above" else ""
        lines.append(f"| `{family.signature()}`{also} | {family.about} | {'; '.join(told)} | {scipy} |")
    return lines


def page() -> str:
    """The whole of it."""
    every = list(FAMILIES.values())
    return "\n".join(
        [
            *(HEAD, "## Numbers on the line", "", *rows([one for one in every if not one.discrete]), ""),
            *("## Whole numbers", "", *rows([one for one in every if one.discrete]), "", TAIL.rstrip("\n")),
            "",
        ]
    )


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
