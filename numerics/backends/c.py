"""Standalone C source: one function of plain numbers, and a loop over arrays around it."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

from numerics.backends.c_library import load
from numerics.backends.printer import LINE, Dialect, Signature, called, formulas, identifiers, needed, words
from numerics.backends.python_module import indented
from numerics.backends.special_c import HELPERS as SPECIAL
from numerics.backends.table import written
from numerics.ir import Program

__all__ = ["DIALECT", "emit", "load", "number"]

_HELPERS = {
    **SPECIAL,
    "fused": """\
/* a*b + c, with one rounding where the processor has it: these series only gain. */
static inline double fused(double a, double b, double c)
{
#if defined FP_FAST_FMA || defined __FMA__
    return fma(a, b, c);
#else
    return a * b + c;
#endif
}
""",
    "shifted_exp": """\
/*
 * exp(x)*2^power to a unit in the last place, in arithmetic that vectorizes: a polynomial
 * meets (exp(r) - 1 - r)/r^2 at the Chebyshev points of |r| <= log(2)/2.
 */
static inline double shifted_exp(double x, int power)
{
    const double shifted = fused(x, 1.4426950408889634, 6755399441055744.0);
    const double whole = shifted - 6755399441055744.0;
    const double high = fused(whole, -0.6931471803691238, x);
    const double r = fused(whole, -1.9082149292705877e-10, high);
    const double r2 = r * r, r4 = r2 * r2;
    const double a = fused(r, 0.16666666666666669, 0.5000000000000001);
    const double b = fused(r, 0.008333333333330065, 0.041666666666624164);
    const double c = fused(r, 0.00019841269863040545, 0.0013888888917196719);
    const double d = fused(r, 2.7557268480310024e-06, 2.4801521322368692e-05);
    const double e = fused(r, 2.5100375832561234e-08, 2.7620075879983367e-07);
    const double low = fused(r4, fused(r2, d, c), fused(r2, b, a));
    const double more = fused(r2, fused(r4 * r4, e, low), r);
    double scale;
    uint64_t bits;
    memcpy(&bits, &shifted, sizeof bits);
    bits = (bits + (uint64_t)(1023 + power)) << 52;
    memcpy(&scale, &bits, sizeof scale);
    return fused(more, scale, scale);
}
""",
    "unit_exp": """\
/* exp(x) for x <= 0. */
static inline double unit_exp(double x)
{
    return x < -745.2 ? 0.0 : shifted_exp(x, 64) * 5.421010862427522e-20;
}
""",
    "exponential": """\
/* exp(x), by way of a number that is neither subnormal nor too large. */
static inline double exponential(double x)
{
    const double value = shifted_exp(x, x < 0.0 ? 64 : -64);
    const double scaled = value * (x < 0.0 ? 5.421010862427522e-20 : 18446744073709551616.0);
    return x < -745.2 ? 0.0 : x > 709.8 ? INFINITY : scaled;
}
""",
    "unit_log1p": """\
/* log(1 + x) for x from 0 to 1: 2 atanh(s), beyond sqrt(2) - 1 for half of 1 + x. */
static inline double unit_log1p(double x)
{
    const double far = x > 0.41421356237309503 ? 1.0 : 0.0;
    const double s = (x - far) / (x + (2.0 + far));
    const double z = s * s;
    const double z2 = z * z, z4 = z2 * z2;
    const double a1 = fused(z, 1.0 / 5.0, 1.0 / 3.0);
    const double a = fused(z2, fused(z, 1.0 / 9.0, 1.0 / 7.0), a1);
    const double b1 = fused(z, 1.0 / 13.0, 1.0 / 11.0);
    const double b = fused(z2, fused(z, 1.0 / 17.0, 1.0 / 15.0), b1);
    const double c = fused(z2, 1.0 / 23.0, fused(z, 1.0 / 21.0, 1.0 / 19.0));
    const double rest = z * fused(z4, fused(z4, c, b), a);
    return fused(far, 0.6931471805599453, 2.0 * fused(s, rest, s));
}
""",
    "decay": """\
/* exp(-|x|), which cannot overflow. */
static inline double decay(double x)
{
    return unit_exp(-fabs(x));
}
""",
    "sigmoid": """\
/* 1/(1 + exp(-x)) from decay = exp(-|x|): both tails keep their digits. */
static inline double sigmoid(double x, double decay)
{
    return (x < 0.0 ? decay : 1.0) / (1.0 + decay);
}
""",
    "sigmoid_minus": """\
/* 1/(1 + exp(x)) from decay = exp(-|x|): both tails keep their digits. */
static inline double sigmoid_minus(double x, double decay)
{
    return (x < 0.0 ? 1.0 : decay) / (1.0 + decay);
}
""",
    "softplus_minus": """\
/* log(1 + exp(-x)) from decay = exp(-|x|). */
static inline double softplus_minus(double x, double decay)
{
    return (x < 0.0 ? -x : 0.0) + unit_log1p(decay);
}
""",
    "softplus": """\
/* log(1 + exp(x)) from decay = exp(-|x|). */
static inline double softplus(double x, double decay)
{
    return (x < 0.0 ? 0.0 : x) + unit_log1p(decay);
}
""",
    "logaddexp": """\
/* log(exp(x) + exp(y)) without overflow. */
static inline double logaddexp(double x, double y)
{
    return max(x, y) + unit_log1p(decay(x - y));
}
""",
    "max": """\
/* The larger number; nan if one is. */
static inline double max(double x, double y)
{
    return x >= y || x != x ? x : y;
}
""",
    "min": """\
/* The smaller number; nan if one is. */
static inline double min(double x, double y)
{
    return x <= y || x != x ? x : y;
}
""",
    "sign": """\
/* -1, 0 or 1. */
static inline double sign(double x)
{
    return x == 0.0 || x != x ? x : copysign(1.0, x);
}
""",
}

_MATH = ("pow", "sqrt", "exp", "expm1", "log", "log1p", "sin", "cos", "tan", "atan", "sinh", "cosh", "tanh", "asinh")
_KEYWORDS = words("""
    auto break case char const continue default do double else enum extern float for goto if inline int long register
    restrict return short signed sizeof static struct switch typedef union unsigned void volatile while asm typeof main
    size_t ptrdiff_t max_align_t wchar_t offsetof count i at
""")
_MATH_H = words("""
    acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp2 exp10 pow10 expm1 fabs fdim
    floor fma fmax fmin fmod frexp hypot ilogb ldexp lgamma lgamma_r gamma llrint llround log log10 log1p log2 logb
    lrint lround modf nan nearbyint nextafter nexttoward pow remainder remquo rint round scalbln scalbn scalb sin sinh
    sincos sqrt tan tanh tgamma trunc drem significand j0 j1 jn y0 y1 yn isnan isinf isfinite isnormal signbit
    fpclassify finite signgam float_t double_t NAN INFINITY HUGE_VAL NULL unix linux
""")


def number(value: Fraction | Decimal | None) -> tuple[str, int]:
    """Text and binding strength of a constant: never an integer, whose division would be another."""
    if isinstance(value, Fraction):
        top = repr(float(value.numerator))
        text = top if value.denominator == 1 else f"{top} / {float(value.denominator)!r}"
        return text, 0 if value < 0 else (4 if value.denominator == 1 else 2)
    number = float(value or 0)
    return repr(number), 0 if number < 0 else 4


DIALECT = Dialect(
    name="c",
    calls={"abs": "fabs", **{n: n for n in _MATH}, **written(_HELPERS), "exp": "exponential"},
    helpers=_HELPERS,
    reserved=frozenset({*_KEYWORDS, *_MATH_H, *_HELPERS}),
    number=number,
    assignment="const double {} = {};",
)


def _comment(signature: Signature) -> list[str]:
    lines = signature.described(LINE - 3)
    return ["/*", *[f" * {line}".rstrip().replace("*/", "* /") for line in lines], " */"]


def _listing(before: str, items: Sequence[str], after: str, indent: int = 0) -> list[str]:
    """Items in parentheses: on one line if it fits, otherwise below; an item is never broken."""
    line = f"{before}{', '.join(items)}{after}"
    if len(line) + indent <= LINE:
        return [line]
    whole = ", ".join(i.replace(" ", "\0") for i in items)
    rows = [r.replace("\0", " ") for r in textwrap.wrap(whole, LINE - 4 - indent, break_long_words=False)]
    return [before, *[f"    {row}" for row in rows[:-1]], f"    {rows[-1]}{after}"]


def _struct(signature: Signature, results: Sequence[str]) -> list[str]:
    """The type of several results."""
    if signature.single:
        return []
    return [f"struct {signature.name} {{", *[f"    double {r};" for r in results], "};", ""]


def _one(program: Program, signature: Signature, results: Sequence[str]) -> list[str]:
    """The function of plain numbers."""
    name = signature.name
    lines, texts = formulas(program, DIALECT, signature, [f"{name}_many"])
    inputs = [f"double {p}" for p in signature.parameters] or ["void"]
    unused = [f"(void){p};" for p in signature.parameters if p not in _read(program, signature)]
    if signature.single:
        kind, last = "double", [f"return {texts[0]};"]
    else:
        kind = f"struct {name}"
        last = _listing(f"return (struct {name}){{", texts, "};", 4)
    head = _listing(f"static inline {kind} {name}(", inputs, ")")
    return [*_struct(signature, results), *_comment(signature), *head, "{", *indented([*unused, *lines, *last]), "}"]


def _read(program: Program, signature: Signature) -> set[str]:
    used = {v.argument for v in program.values}
    return {p for s, p in zip(signature.symbols, signature.parameters, strict=True) if s in used}


def _loop(signature: Signature, results: Sequence[str], entries: Sequence[str]) -> list[str]:
    name = signature.name
    if signature.single:
        body = _listing(f"{results[0]}[i] = {name}(", entries, ");", 12)
    else:
        body = _listing(f"const struct {name} at = {name}(", entries, ");", 12)
        body += [f"{r}[i] = at.{r};" for r in results]
    return ["for (size_t i = 0; i < count; i++) {", *indented(body), "}"]


def _joined(conditions: Sequence[str]) -> list[str]:
    return [f"{c} &" for c in conditions[:-1]] + list(conditions[-1:])


def _many(signature: Signature, results: Sequence[str]) -> list[str]:
    """The loop over arrays: at once for arrays of states with common parameters, otherwise by steps."""
    pairs = list(zip(signature.symbols, signature.parameters, strict=True))
    steps = {p: f"{p}_step == {int(s not in signature.uniform)}" for s, p in pairs}
    inputs = [f"const double *restrict {p}, size_t {p}_step" for _, p in pairs]
    outputs = [f"double *restrict {r}" for r in results]
    head = _listing(f"void {signature.name}_many(", ["size_t count", *inputs, *outputs], ")")
    fast = _loop(signature, results, [f"*{p}" if s in signature.uniform else f"{p}[i]" for s, p in pairs])
    body = _loop(signature, results, [f"{p}[i * {p}_step]" for _, p in pairs])
    if steps:
        condition = _listing("if (", _joined([*steps.values()]), ") {", 4)
        condition = [line.replace("&,", "&&") for line in condition]
        body = [*condition, *indented(fast), "} else {", *indented(body), "}"]
    note = "/* All states: an argument is an array (step 1) or a number for all (step 0). */"
    return [note, *head, "{", *indented(body), "}"]


def emit(program: Program, signature: Signature) -> str:
    """Print a program as a translation unit: a function of plain numbers, and one of arrays."""
    name = signature.name
    steps = {f"{p}_step" for p in signature.parameters}
    taken = DIALECT.reserved | {*signature.parameters, *steps, name, f"{name}_many"}
    results = identifiers(signature.outputs, taken)
    helpers = [h.rstrip() for h in needed(called(program, DIALECT), DIALECT.helpers)]
    functions = ["\n".join(f) for f in (_one(program, signature, results), _many(signature, results))]
    code = "\n\n".join([*helpers, *functions])
    headers = ["math.h", "stddef.h", *(["stdint.h", "string.h"] if "memcpy" in code else [])]
    includes = "\n".join(f"#include <{h}>" for h in headers)
    return f"/* {signature.title} */\n\n{includes}\n\n{code}\n"
