"""Figures, colours, line styles, legends, texts that are safe to draw, and PNG files, for all pictures.

Colours are Okabe and Ito's, which people with any colour vision can tell apart; every line and area also has a style
or a hatch of its own, so that a picture reads in black and white.
"""

from __future__ import annotations

import io
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

from privatest.errors import MissingExtra
from privatest.facts import Probability, short
from privatest.privacy import Pure, as_notion

if TYPE_CHECKING:
    from matplotlib.axes import Axes


BLACK: Final = "#000000"
BLUE: Final = "#0072B2"
GREEN: Final = "#009E73"
GREY: Final = "#6E6E6E"
ORANGE: Final = "#E69F00"
SKY: Final = "#56B4E9"
VERMILLION: Final = "#D55E00"
ALPHA, BETA, EPSILON, TAU = "\u03b1", "\u03b2", "\u03b5", "\u03c4"
MINUS, PLUS_MINUS, PRIME, SQUARED = "\u2212", "\u00b1", "\u2032", "\u00b2"
STYLE: Final[Any] = {
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.labelsize": 10,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 10,
    "font.size": 9,
    "grid.alpha": 0.35,
    "grid.linewidth": 0.5,
    "hatch.linewidth": 0.7,
    "legend.fontsize": 8.5,
    "legend.framealpha": 0.9,
    "lines.linewidth": 1.6,
}
SIZE: Final = (7.6, 4.2)
OWN: Final = "privatest-own"
"""Label of a figure of our own, whose legend may stand beside the picture."""

_APART: ContextVar[bool] = ContextVar("privatest-apart", default=False)


@contextmanager
def apart() -> Iterator[None]:
    """Draw, within this context, each new picture on a new figure, even if pyplot is in use."""
    token = _APART.set(True)
    try:
        yield
    finally:
        _APART.reset(token)


@contextmanager
def drawing(ax: Axes | None, size: tuple[float, float] = SIZE) -> Iterator[Axes]:
    """The axes to draw on, in our style: the caller's, or new ones.

    New axes belong to a figure of pyplot if pyplot is in use, so that notebooks and ``plt.show()`` show it, and
    to a figure of their own otherwise, so that a server that draws thousands keeps none.
    """
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtra.of("Pictures need matplotlib.", "plot") from None
    with mpl.rc_context(STYLE):
        if ax is None:
            figure: Any
            if not _APART.get() and ("matplotlib.pyplot" in sys.modules or "ipykernel" in sys.modules):
                from matplotlib import pyplot as plt

                figure = plt.figure(figsize=size, layout="constrained")
            else:
                figure = Figure(figsize=size, layout="constrained")
            figure.set_label(OWN)
            ax = figure.add_subplot()
        yield ax


def legend(ax: Axes, order: tuple[str, ...] = ()) -> None:
    """Add a legend: beside the picture on a figure of our own, else where it hides least.

    Entries whose text starts with one of ``order`` come first, in that order.
    """
    handles, texts = ax.get_legend_handles_labels()
    if not handles:
        return
    places = [next((i for i, start in enumerate(order) if text.startswith(start)), len(order)) for text in texts]
    ranked = sorted(range(len(texts)), key=lambda i: places[i])
    beside = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0), "borderaxespad": 0.0, "frameon": False}
    place: dict[str, Any] = beside if ax.figure.get_label() == OWN else {"loc": "best"}
    ax.legend([handles[i] for i in ranked], [texts[i] for i in ranked], **place)


def finished(axes: Axes, x: str, y: str | None, title: str, order: tuple[str, ...] = ()) -> Axes:
    """Label the axes, set the title, add the legend and return the axes."""
    axes.set_xlabel(x)
    if y is not None:
        axes.set_ylabel(y)
    axes.set_title(title)
    legend(axes, order)
    return axes


def plain(text: object, longest: int = 48) -> str:
    """A user's text, such as a label, made safe to draw: short, on one line, without formulas and missing glyphs."""
    words = "".join(character if character.isprintable() else " " for character in str(text))
    words = " ".join(words.split())
    if len(words) > longest:
        words = words[: longest - 1] + "\N{HORIZONTAL ELLIPSIS}"
    from matplotlib import font_manager  # only with the extra

    font: Any = font_manager.get_font(font_manager.findfont(font_manager.FontProperties()))
    characters = font.get_charmap()
    drawn = "".join(character if ord(character) in characters else "\N{WHITE SQUARE}" for character in words)
    return drawn.replace("$", r"\$")


def law(letter: str, text: object, *, lines: bool = False) -> str:
    """Return the legend of a law, ``P = normal(0, 1)``; with ``lines`` broken into up to three lines."""
    if str(text) in ("", letter):
        return letter
    whole = f"{letter} = {plain(text, 52)}"
    return "\n".join(textwrap.wrap(whole, 30)[:3]) if lines else whole


def number(value: float, digits: int = 4) -> str:
    """Return a number with a few digits and a true minus sign."""
    return f"{value:.{digits}g}".replace("-", MINUS)


def cost(spent: Any) -> str:
    """The privacy cost of a design, a stream or a release: its epsilon, or the name of the notion that it meets."""
    notion = getattr(spent, "privacy", None)
    notion = as_notion(notion) if isinstance(notion, str) else notion
    if notion is None or isinstance(notion, Pure):
        return f"{EPSILON} = {number(float(spent.epsilon))}"
    return str(notion).replace("-", MINUS)


def chance(value: float, digits: int = 3) -> str:
    """Return a probability with a few digits, never printed as 0."""
    return short(Probability(value), digits).replace("-", MINUS)


def png(draw: Callable[[], Axes], *, dpi: int = 120) -> bytes:
    """Return the picture that ``draw()`` draws on a new figure, as the bytes of a PNG file.

    >>> import privatest as pt
    >>> png(pt.decompose("bernoulli(0.3)", "bernoulli(0.4)", epsilon=1).plot)[1:4]
    b'PNG'
    """
    with apart():
        figure: Any = draw().figure
    target = io.BytesIO()
    figure.savefig(target, format="png", dpi=dpi, metadata={"Software": None})
    return target.getvalue()
