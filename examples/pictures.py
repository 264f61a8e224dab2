"""Pictures of a plan, saved as files: every result of the package draws itself with ``.plot()``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import privatest as pt


def save(result: Any, target: Path, **options: Any) -> Path:
    """Draw a result and save it; the figure is of the axes that ``plot`` returns."""
    result.plot(**options).figure.savefig(target, dpi=110)
    return target


def plan(null: Any, alternative: Any, epsilon: float, folder: Path) -> list[Path]:
    """What can be seen before any data: the excess that privacy caps, records against epsilon, power, all tests."""
    needed = pt.sample_size(null, alternative, epsilon=epsilon)
    sizes = sorted({max(round(needed * share), 1) for share in (0.1, 0.25, 0.5, 0.75, 1, 1.5, 2.5, 4)})
    return [
        save(pt.decompose(null, alternative, epsilon=epsilon), folder / "decomposition.png"),
        save(pt.sample_complexity(null, alternative, epsilon=epsilon), folder / "complexity.png"),
        save(pt.power_curve(null, alternative, epsilon=epsilon, n=sizes), folder / "power.png"),
        save(pt.compare(null, alternative, epsilon=epsilon), folder / "compare.png"),
    ]
