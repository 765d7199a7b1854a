"""Lambert W, Wright omega and the exponential integral in C: the algorithms of `numerics.backends.special_numba`."""

from __future__ import annotations

__all__ = ["HELPERS"]

HELPERS = {
    "lambertw": """\
/* The real branch W_0, nan left of -1/e: a series there, an iteration elsewhere. */
static inline double lambertw(double x)
{
    if (x < -0.36787944117144233)
        return NAN;
    if (x == 0.0 || x == INFINITY)
        return x;
    const double gap = (x + 0.36787944117144233) - 1.2428753672788363e-17;
    const double p = gap > 0.0 ? sqrt(5.43656365691809 * gap) : 0.0;
    if (p < 0.1) {
        double tail = 0.0024408779911439826 - 0.0015769303446867841 * p;
        tail = 0.006014543252956118 + p * (-0.0038112980348919993 + p * tail);
        tail = 0.01563563253233392 + p * (-0.009616892024299432 + p * tail);
        tail = 0.044502314814814814 + p * (-0.02598471487360376 + p * tail);
        tail = 0.1527777777777778 + p * (-0.07962962962962963 + p * tail);
        return -1.0 + p * (1.0 + p * (-0.3333333333333333 + p * tail));
    }
    double w = log1p(x);
    if (x < -0.25)
        w = -1.0 + p * (1.0 + p * (-0.3333333333333333 + p * 0.1527777777777778));
    else if (x < 0.0)
        w = x * (1.0 + x * 4.0 / 3.0) / (1.0 + x * (7.0 / 3.0 + x * 5.0 / 6.0));
    else
        w = w * (1.0 - log1p(w) / (2.0 + w));
    for (int step = 0; step < 5; step++)
        w = w / (1.0 + w) * (1.0 + log(x / w));
    return w;
}
""",
    "wrightomega": """\
/* The solution w > 0 of w + log(w) = x: W_0(exp(x)); Newton's method above 1. */
static inline double wrightomega(double x)
{
    if (x < 1.0)
        return lambertw(exp(x));
    if (x == INFINITY)
        return x;
    double w = x - log(x);
    for (int step = 0; step < 5; step++)
        w = w * (1.0 + (x - w - log(w)) / (1.0 + w));
    return w;
}
""",
    "ei_series": """\
/* Ei(x) on [-1, 50]: power series; near its zero the series of the difference. */
static inline double ei_series(double x)
{
    if (x > 0.1 && x < 0.9) {
        const double gap = (x - 0.3725074107813666) - 1.3140183414386028e-17;
        double total = 1.0, difference = 1.0, power = 1.0, factorial = 1.0;
        for (int k = 2; k < 25; k++) {
            power *= 0.3725074107813666;
            difference = x * difference + power;
            factorial *= k;
            total += difference / (k * factorial);
        }
        return log1p(gap / 0.3725074107813666) + gap * total;
    }
    double term = x, total = x;
    for (int k = 2; k < 200; k++) {
        term = term * x / k;
        total += term / k;
    }
    return total + (log(fabs(x)) + 0.5772156649015329);
}
""",
    "scaled_ei": """\
/* exp(-x)*Ei(x): asymptotic series beyond 50, continued fraction below -1. */
static inline double scaled_ei(double x)
{
    if (fabs(x) > 50.0) {
        double term = 1.0 / x, total = 1.0 / x;
        for (int k = 1; k < 26; k++) {
            term = term * k / x;
            total += term;
        }
        return total;
    }
    if (x < -1.0) {
        const int terms = (int)(-95.0 / x) + 5;
        double fraction = 2.0 * terms + 1.0 - x;
        for (int k = terms; k > 0; k--)
            fraction = 2.0 * k - 1.0 - x - (double)k * k / fraction;
        return -1.0 / fraction;
    }
    return exp(-x) * ei_series(x);
}
""",
    "ei": """\
/* The exponential integral Ei, real. */
static inline double ei(double x)
{
    if (x >= -1.0 && x <= 50.0)
        return ei_series(x);
    if (x > 720.0)
        return INFINITY;
    const double half = exp(x / 2.0);
    return half * scaled_ei(x) * half;
}
""",
}
