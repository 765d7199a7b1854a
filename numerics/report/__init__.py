"""The report: one HTML file that shows what an evidence file holds, and a phase portrait to play with."""

from __future__ import annotations

from numerics.report.page import report_page

__all__ = ["report_page"]
