"""Helpers that open data: how texts are read, lines as records, one opening for several calls, names and numbers.

>>> import privatest as pt
>>> pt.data.count_records(pt.data.read_lines(["3", "0.5", ""]))
3
"""

from __future__ import annotations

import sys

from privatest.engines import column_names, count_records, open_once, read_as, read_lines
from privatest.parameter_help import explain

__all__ = ["column_names", "count_records", "open_once", "read_as", "read_lines"]

explain(sys.modules[__name__])
