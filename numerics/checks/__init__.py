"""Numerical evidence for claims: the stated formulas against the full matrix model."""
