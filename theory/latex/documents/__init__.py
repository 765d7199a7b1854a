"""What a paper takes from the theory: bodies, statements, proofs, tables, a paper that stands alone."""

from __future__ import annotations

from theory.latex.documents.files import Figure, bodies, claim_files, manifest, verdict_files

__all__ = ["Figure", "bodies", "claim_files", "manifest", "verdict_files"]
