"""The check of a paper"s equations against the claims they are linked to."""

from __future__ import annotations

from theory.latex.check.checking import Checked, Report, check_paper

__all__ = ["Checked", "Report", "check_paper"]
