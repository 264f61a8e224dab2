"""One self-contained HTML page to hand over: the question, the guarantee in words, the result, the pictures."""

from privatest.report.page import KINDS, render, write

__all__ = ["KINDS", "render", "write"]
