"""A picture as the bytes of a file, without a trace in pyplot."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from privatest.pictures.canvas import apart

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["png"]


def png(draw: Callable[[], Axes], *, dpi: int = 120) -> bytes:
    """What ``draw()`` draws on axes of its own, as a PNG file.

    >>> import privatest as pt
    >>> png(pt.decompose("bernoulli(0.3)", "bernoulli(0.4)", epsilon=1).plot)[1:4]
    b'PNG'
    """
    with apart():
        figure: Any = draw().figure
    target = io.BytesIO()
    figure.savefig(target, format="png", dpi=dpi, metadata={"Software": None})
    return target.getvalue()
