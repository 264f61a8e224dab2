"""Engines: sum the integer scores of the records, wherever they lie, to the same integer everywhere."""

from privatest.engines.protocol import Records
from privatest.engines.series import block_totals
from privatest.engines.sources import open_source, total

__all__ = ["Records", "block_totals", "open_source", "total"]
