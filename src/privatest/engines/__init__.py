"""Engines: sum the integer scores of the records, wherever they lie, to the same integer everywhere."""

from privatest.engines.counting import count_records
from privatest.engines.fields import read_lines
from privatest.engines.protocol import Records
from privatest.engines.series import block_totals
from privatest.engines.sources import open_source, total

__all__ = ["Records", "block_totals", "count_records", "open_source", "read_lines", "total"]
