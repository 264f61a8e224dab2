"""Everything that a picture holds: its texts, and every number behind its artists."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from matplotlib.collections import Collection
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, StepPatch
from matplotlib.text import Text


def texts(axes: Any) -> list[str]:
    return [artist.get_text() for artist in axes.figure.findobj(Text) if artist.get_text()]


def legend(axes: Any) -> list[str]:
    return [text.get_text() for text in axes.get_legend().get_texts()]


def numbers(axes: Any) -> np.ndarray:
    """Coordinates of all lines, patches, areas and texts."""

    def found() -> Iterator[np.ndarray]:
        for line in axes.figure.findobj(Line2D):
            yield from (np.asarray(part, dtype=float).ravel() for part in line.get_data(orig=True))
        for patch in axes.figure.findobj(Patch):
            if isinstance(patch, StepPatch):
                yield from (np.asarray(part, dtype=float).ravel() for part in patch.get_data()[:2])
            yield np.asarray(patch.get_path().vertices, dtype=float).ravel()
            yield np.asarray(patch.get_patch_transform().transform(patch.get_path().vertices), dtype=float).ravel()
        for collection in axes.figure.findobj(Collection):
            yield np.asarray(collection.get_offsets(), dtype=float).ravel()
            yield from (np.asarray(path.vertices, dtype=float).ravel() for path in collection.get_paths())
        for text in axes.figure.findobj(Text):
            yield np.asarray(text.get_position(), dtype=float)

    return np.concatenate(list(found()))


def area(collection: Any) -> float:
    """Area of the polygons of fill_between, by the shoelace formula."""
    total = 0.0
    for path in collection.get_paths():
        x, y = path.vertices.T
        total += abs(float(np.sum(x * np.roll(y, -1) - y * np.roll(x, -1)))) / 2
    return total


def labelled(axes: Any, start: str) -> list[Any]:
    """Artists and containers whose label starts so."""
    everything = [*axes.get_children(), *axes.containers]
    return [artist for artist in everything if str(artist.get_label()).startswith(start)]
