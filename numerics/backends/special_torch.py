"""Lambert W, Wright omega and the exponential integral for PyTorch, with exact derivatives of every order.

Sources: those of `numerics.backends.special_numba`.
"""

from __future__ import annotations

from textwrap import indent

from numerics.backends.series import LAMBERT

__all__ = ["HELPERS"]


def _function(name: str, doc: str, forward: str, derivative: str) -> str:
    """Source of a helper with an exact derivative, which may call the helper itself."""
    title = "".join(part.capitalize() for part in name.split("_"))
    return f'''\
class _{title}(torch.autograd.Function):
    """{doc}"""

    generate_vmap_rule = True

    @staticmethod
    def forward(x):
{forward}

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * {derivative}


{name} = _{title}.apply
'''


HELPERS = {
    "_lambertw": _function(
        "_lambertw",
        "The real branch W_0, nan left of -1/e; slope 1 at 0 and inf at -1/e.",
        f"""\
        gap = x + 0.367919921875 - 4.0471553802490234e-05 - 9.149755188170102e-09
        p = (2 * math.e * gap).clamp(min=0).sqrt()
{indent(LAMBERT, "        ")}
        near = p * 0
        for coefficient in series:
            near = near * p + coefficient
        start = -1 + p * (1 + p * (-1 / 3 + p * 11 / 72))
        far = torch.log1p(x.clamp(min=0))
        w = torch.where(x < 0.3, start, far * (1 - torch.log1p(far) / (2 + far)))
        for _ in range(6):
            exponential = torch.exp(w)
            error = w * exponential - x
            slope = exponential * (w + 1)
            step = error / (slope - (w + 2) * error / (2 * w + 2))
            w = torch.where(p > 0.05, w - step, w)
        w = torch.where(p < 0.1, near, torch.where(torch.isinf(x), x, w))
        return torch.where(x < -0.36787944117144233, torch.nan, w)""",
        "torch.exp(-_lambertw(x)) / (1 + _lambertw(x))",
    ),
    "_wrightomega": _function(
        "_wrightomega",
        "The solution w > 0 of w + log(w) = x; its derivative is w/(1 + w).",
        """\
        y = x.clamp(min=1)
        w = y - torch.log(y)
        for _ in range(5):
            w = w * (1 + (y - w - torch.log(w)) / (1 + w))
        w = torch.where(torch.isinf(x), x, w)
        return torch.where(x < 1, _lambertw(torch.exp(x.clamp(max=1))), w)""",
        "_wrightomega(x) / (1 + _wrightomega(x))",
    ),
    "_ei_series": '''\
def _ei_series(x):
    """Ei(x) on [-1, 50]: power series; near its zero the series of the difference."""
    gap = x - 0.37255859375 + 5.117058753967285e-05 + 1.2381093705826629e-08
    gap = gap - 1.3140183414386028e-17
    zero, power, factorial = 0.3725074107813666, 1.0, 1.0
    difference = torch.ones_like(x)
    near = torch.ones_like(x)
    term, total = x, x
    for k in range(2, 160):
        term = term * x / k
        total = total + term / k
        if k < 25:
            power, factorial = power * zero, factorial * k
            difference = x * difference + power
            near = near + difference / (k * factorial)
    near = torch.log1p((gap / zero).clamp(min=-0.9)) + gap * near
    total = total + (torch.log(x.abs()) + 0.5772156649015329)
    return torch.where((x - 0.5).abs() < 0.4, near, total)
''',
    "_scaled_ei": _function(
        "_scaled_ei",
        "exp(-x)*Ei(x): asymptotic series beyond 50, continued fraction below -1.",
        """\
        y = x.clamp(-1, 50)
        series = torch.exp(-y) * _ei_series(y)
        y = (-x).clamp(min=1)
        fraction = y + 201
        for k in range(100, 0, -1):
            fraction = y + (2 * k - 1) - k * k / fraction
        y = torch.where(x.abs() > 50, x, 50)
        term, total = 1 / y, 1 / y
        for k in range(1, 26):
            term = term * k / y
            total = total + term
        near = torch.where(x < -1, -1 / fraction, series)
        return torch.where(x.abs() > 50, total, near)""",
        "(1 / x - _scaled_ei(x))",
    ),
    "_ei": _function(
        "_ei",
        "The exponential integral Ei, real; its derivative is exp(x)/x.",
        """\
        half = torch.exp(x.clamp(max=1400) / 2)
        far = half * _scaled_ei(x) * half
        inside = (x >= -1) & (x <= 50)
        return torch.where(
            inside, _ei_series(x.clamp(-1, 50)), torch.where(x > 720, torch.inf, far)
        )""",
        "torch.exp(x / 2) / x * torch.exp(x / 2)",
    ),
}
