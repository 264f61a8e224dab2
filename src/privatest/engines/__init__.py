"""Engines: sum the integer scores of the records, wherever they lie, to the same integer everywhere."""

from privatest.engines.csv_fields import read_lines
from privatest.engines.records import Need, Promise, Records, Tallied
from privatest.engines.sources import (
    block_totals,
    column_names,
    count_records,
    open_for,
    open_once,
    open_source,
    read_as,
    total,
)

__all__ = [
    "Need",
    "Promise",
    "Records",
    "Tallied",
    "block_totals",
    "column_names",
    "count_records",
    "open_for",
    "open_once",
    "open_source",
    "read_as",
    "read_lines",
    "total",
]
