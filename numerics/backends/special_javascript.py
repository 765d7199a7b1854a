"""Lambert W, Wright omega and the integral Ei in JavaScript, by the algorithms of `numerics.backends.special_c`."""

from __future__ import annotations

__all__ = ["HELPERS"]

HELPERS = {
    "lambertw": """\
/** The real branch W_0, nan left of -1/e: a series there, an iteration elsewhere. */
function lambertw(x) {
  if (x < -0.36787944117144233)
    return NaN;
  if (x == 0 || x == Infinity)
    return x;
  const gap = (x + 0.36787944117144233) - 1.2428753672788363e-17;
  const p = gap > 0 ? Math.sqrt(5.43656365691809 * gap) : 0;
  if (p < 0.1) {
    let tail = 0.0024408779911439826 - 0.0015769303446867841 * p;
    tail = 0.006014543252956118 + p * (-0.0038112980348919993 + p * tail);
    tail = 0.01563563253233392 + p * (-0.009616892024299432 + p * tail);
    tail = 0.044502314814814814 + p * (-0.02598471487360376 + p * tail);
    tail = 0.1527777777777778 + p * (-0.07962962962962963 + p * tail);
    return -1 + p * (1 + p * (-0.3333333333333333 + p * tail));
  }
  let w = Math.log1p(x);
  if (x < -0.25)
    w = -1 + p * (1 + p * (-0.3333333333333333 + p * 0.1527777777777778));
  else if (x < 0)
    w = x * (1 + x * 4 / 3) / (1 + x * (7 / 3 + x * 5 / 6));
  else
    w = w * (1 - Math.log1p(w) / (2 + w));
  for (let step = 0; step < 5; step++)
    w = w / (1 + w) * (1 + Math.log(x / w));
  return w;
}
""",
    "wrightomega": """\
/** The solution w > 0 of w + log(w) = x: W_0(exp(x)); Newton's method above 1. */
function wrightomega(x) {
  if (x < 1)
    return lambertw(Math.exp(x));
  if (x == Infinity)
    return x;
  let w = x - Math.log(x);
  for (let step = 0; step < 5; step++)
    w = w * (1 + (x - w - Math.log(w)) / (1 + w));
  return w;
}
""",
    "ei_series": """\
/** Ei(x) on [-1, 50]: power series; near its zero the series of the difference. */
function ei_series(x) {
  if (x > 0.1 && x < 0.9) {
    const gap = (x - 0.3725074107813666) - 1.3140183414386028e-17;
    let total = 1, difference = 1, power = 1, factorial = 1;
    for (let k = 2; k < 25; k++) {
      power *= 0.3725074107813666;
      difference = x * difference + power;
      factorial *= k;
      total += difference / (k * factorial);
    }
    return Math.log1p(gap / 0.3725074107813666) + gap * total;
  }
  let term = x, total = x;
  for (let k = 2; k < 200; k++) {
    term = term * x / k;
    total += term / k;
  }
  return total + (Math.log(Math.abs(x)) + 0.5772156649015329);
}
""",
    "scaled_ei": """\
/** exp(-x)*Ei(x): asymptotic series beyond 50, continued fraction below -1. */
function scaled_ei(x) {
  if (Math.abs(x) > 50) {
    let term = 1 / x, total = 1 / x;
    for (let k = 1; k < 26; k++) {
      term = term * k / x;
      total += term;
    }
    return total;
  }
  if (x < -1) {
    const terms = Math.trunc(-95 / x) + 5;
    let fraction = 2 * terms + 1 - x;
    for (let k = terms; k > 0; k--)
      fraction = 2 * k - 1 - x - k * k / fraction;
    return -1 / fraction;
  }
  return Math.exp(-x) * ei_series(x);
}
""",
    "ei": """\
/** The exponential integral Ei, real. */
function ei(x) {
  if (x >= -1 && x <= 50)
    return ei_series(x);
  if (x > 720)
    return Infinity;
  const half = Math.exp(x / 2);
  return half * scaled_ei(x) * half;
}
""",
}
