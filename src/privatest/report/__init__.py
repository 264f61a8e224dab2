"""One self-contained HTML page to hand over: the question, the guarantee in words, the result, the pictures."""

from privatest.report.html_page import KINDS, render, write

__all__ = ["KINDS", "render", "write"]
