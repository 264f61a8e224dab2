"""Ledger: who has spent how much epsilon on which data set; charged before anything is released.

Importing this folder does not import SQLAlchemy: that happens when a :class:`Ledger` is made.
"""

from privatest.ledger.hash_chain import Entry
from privatest.ledger.ledger import Ledger

__all__ = ["Entry", "Ledger"]
