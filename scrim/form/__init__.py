"""A file compared with a declaration on the curator's own machine. Nothing is sent anywhere.

The service never says how many cells it mapped, because that count would reveal information about
individuals. Here the private rows do not leave the machine of the person who holds them, so counts and
examples may be shown. Do not publish them.
"""

from scrim.form.report import ColumnFindings, FormReport, TableFindings
from scrim.form.rows import check_form

__all__ = ["ColumnFindings", "FormReport", "TableFindings", "check_form"]
