"""Lambert W, Wright omega and the exponential integral of plain numbers, as source for Numba.

Sources: series of W at its branch point, Corless et al., Adv. Comput. Math. 5 (1996); iteration of Iacono and Boyd,
Adv. Comput. Math. 43 (2017); continued fraction and asymptotic series of Ei, DLMF 6.9.1 and 6.12.2.
"""

from __future__ import annotations

__all__ = ["HELPERS"]

HELPERS = {
    "_lambertw": '''\
def _lambertw(x):
    """The real branch W_0, nan left of -1/e: a series there, an iteration elsewhere."""
    if x < -0.36787944117144233:
        return math.nan
    if x == 0.0 or x == math.inf:
        return x
    gap = (x + 0.36787944117144233) - 1.2428753672788363e-17
    p = math.sqrt(5.43656365691809 * gap) if gap > 0.0 else 0.0
    if p < 0.1:
        tail = 0.0024408779911439826 - 0.0015769303446867841 * p
        tail = 0.006014543252956118 + p * (-0.0038112980348919993 + p * tail)
        tail = 0.01563563253233392 + p * (-0.009616892024299432 + p * tail)
        tail = 0.044502314814814814 + p * (-0.02598471487360376 + p * tail)
        tail = 0.1527777777777778 + p * (-0.07962962962962963 + p * tail)
        return -1.0 + p * (1.0 + p * (-0.3333333333333333 + p * tail))
    if x < -0.25:
        w = -1.0 + p * (1.0 + p * (-0.3333333333333333 + p * 0.1527777777777778))
    elif x < 0.0:
        w = x * (1.0 + x * 4.0 / 3.0) / (1.0 + x * (7.0 / 3.0 + x * 5.0 / 6.0))
    else:
        w = math.log1p(x)
        w = w * (1.0 - math.log1p(w) / (2.0 + w))
    for _ in range(5):
        w = w / (1.0 + w) * (1.0 + math.log(x / w))
    return w
''',
    "_wrightomega": '''\
def _wrightomega(x):
    """The solution w > 0 of w + log(w) = x: W_0(exp(x)); Newton's method above 1."""
    if x < 1.0:
        return _lambertw(math.exp(x))
    if x == math.inf:
        return x
    w = x - math.log(x)
    for _ in range(5):
        w = w * (1.0 + (x - w - math.log(w)) / (1.0 + w))
    return w
''',
    "_ei_series": '''\
def _ei_series(x):
    """Ei(x) on [-1, 50]: power series; near its zero the series of the difference."""
    if 0.1 < x < 0.9:
        gap = (x - 0.3725074107813666) - 1.3140183414386028e-17
        total = difference = power = factorial = 1.0
        for k in range(2, 25):
            power = power * 0.3725074107813666
            difference = x * difference + power
            factorial = factorial * k
            total = total + difference / (k * factorial)
        return math.log1p(gap / 0.3725074107813666) + gap * total
    term = total = x
    for k in range(2, 200):
        term = term * x / k
        total = total + term / k
    return total + (math.log(abs(x)) + 0.5772156649015329)
''',
    "_scaled_ei": '''\
def _scaled_ei(x):
    """exp(-x)*Ei(x): asymptotic series beyond 50, continued fraction below -1."""
    if abs(x) > 50.0:
        term = total = 1.0 / x
        for k in range(1, 26):
            term = term * k / x
            total = total + term
        return total
    if x < -1.0:
        count = int(-95.0 / x) + 5
        fraction = 2.0 * count + 1.0 - x
        for k in range(count, 0, -1):
            fraction = 2.0 * k - 1.0 - x - k * k / fraction
        return -1.0 / fraction
    return math.exp(-x) * _ei_series(x)
''',
    "_ei": '''\
def _ei(x):
    """The exponential integral Ei, real."""
    if -1.0 <= x <= 50.0:
        return _ei_series(x)
    if x > 720.0:
        return math.inf
    half = math.exp(x / 2.0)
    return half * _scaled_ei(x) * half
''',
}
