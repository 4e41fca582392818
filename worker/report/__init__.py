"""The report of a release: one HTML page for people, built only from released information.

It is a function of the release's specification, its journal, its rows and the ledger up to the
reservation, so a resumed job writes the same bytes. It needs no script and no other file.
"""

from worker.report.about import About, ReleasedFile
from worker.report.balance import Balance, balance_before
from worker.report.page import render

__all__ = ["About", "Balance", "ReleasedFile", "balance_before", "render"]
