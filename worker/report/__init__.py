"""The report of a release: one HTML page for people, made of what is released and nothing else.

It is a function of the release's specification, its journal, its rows and the ledger up to the
reservation, so a job that is resumed writes the same bytes. It needs no script and no other file.
"""

from worker.report.about import About, ReleasedFile
from worker.report.balance import Balance, balance_before
from worker.report.page import render

__all__ = ["About", "Balance", "ReleasedFile", "balance_before", "render"]
