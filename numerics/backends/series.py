"""Series that several backends in Python print, as lines of source."""

from __future__ import annotations

__all__ = ["LAMBERT", "UNIT_LOG1P"]

#: Coefficients of W_0 in ``p = sqrt(2 (e x + 1))``, highest power first (Corless et al., 1996).
LAMBERT = """\
series = (
    -0.0015769303446867841,
    0.0024408779911439826,
    -0.0038112980348919993,
    0.006014543252956118,
    -0.009616892024299432,
    0.01563563253233392,
    -0.02598471487360376,
    0.044502314814814814,
    -0.07962962962962963,
    0.1527777777777778,
    -0.3333333333333333,
    1.0,
    -1.0,
)"""

#: ``log(1 + x)`` for ``x`` from 0 to 1, by ``2 atanh(s)``; ``far``, 1 or 0, whether for half of ``1 + x``.
UNIT_LOG1P = """\
s = (x - far) / (x + (2.0 + far))
z = s * s
z2 = z * z
z4 = z2 * z2
a = (1 / 3 + z * (1 / 5)) + z2 * (1 / 7 + z * (1 / 9))
b = (1 / 11 + z * (1 / 13)) + z2 * (1 / 15 + z * (1 / 17))
c = (1 / 19 + z * (1 / 21)) + z2 * (1 / 23)
rest = z * (a + z4 * (b + z4 * c))
return far * 0.6931471805599453 + 2.0 * (s + s * rest)"""
