"""One self-contained HTML page to hand over: the question, the guarantee in words, the result, the pictures."""

from privatest.report.page import KINDS, render
from privatest.report.writing import write

__all__ = ["KINDS", "render", "write"]
