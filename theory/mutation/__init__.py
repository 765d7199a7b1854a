"""Wrong versions of claims and of their derivation, and what becomes of them: does the evidence catch every error?"""

from __future__ import annotations
