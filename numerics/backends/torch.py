"""Standalone PyTorch source: differentiable to every order, derivatives right where a circuit saturates."""

from __future__ import annotations

from numerics.backends import python_module
from numerics.backends.printer import Dialect, Signature
from numerics.ir import Program

__all__ = ["DIALECT", "emit", "load"]

_HELPERS = {
    "_inputs": '''\
def _inputs(*values):
    """Tensors of one floating-point dtype, that dtype, and their common shape.

    Integers become float64; numbers and 0-d tensors adapt to the other tensors.
    """
    plain = (bool, int, float)
    tensors = [torch.as_tensor(v) for v in values if type(v) not in plain]
    tensors = [v for v in tensors if v.dim() > 0] + [v for v in tensors if v.dim() == 0]
    floating = [v for v in tensors if v.is_floating_point()]
    dtype = floating[0].dtype if floating else torch.float64
    for v in tensors:
        if v.is_complex():
            raise TypeError(f"expected real numbers or real tensors, got {v.dtype}")
        if v.dim() > 0 and v.is_floating_point():
            dtype = torch.promote_types(dtype, v.dtype)
    device = tensors[0].device if tensors else None
    values = [torch.as_tensor(v, dtype=dtype, device=device) for v in values]
    return values, dtype, torch.broadcast_shapes(*[v.shape for v in values])
''',
    "_shaped": '''\
def _shaped(value, dtype, shape):
    """A tensor of the full shape."""
    value = torch.as_tensor(value, dtype=dtype)
    return value if value.shape == shape else value.expand(shape).clone()
''',
    "_stacked": '''\
def _stacked(entries, dtype, shape, matrix):
    """A tensor of shape (*shape, *matrix)."""
    device = next((e.device for e in entries if isinstance(e, torch.Tensor)), None)
    tensors = [torch.as_tensor(e, dtype=dtype, device=device) for e in entries]
    stack = [t.expand(shape) for t in tensors]
    return torch.stack(stack, dim=-1).reshape(*shape, *matrix)
''',
}

_CALLS = {
    "pow": "torch.pow",
    "sqrt": "torch.sqrt",
    "exp": "torch.exp",
    "expm1": "torch.expm1",
    "log": "torch.log",
    "log1p": "torch.log1p",
    "decay": "_decay",
    "sigmoid": "_sigmoid",
    "softplus": "_softplus",
    "sigmoid_minus": "_sigmoid_minus",
    "softplus_minus": "_softplus_minus",
    "logaddexp": "_logaddexp",
    "ei": "_ei",
    "scaled_ei": "_scaled_ei",
    "lambertw": "_lambertw",
    "wrightomega": "_wrightomega",
    "abs": "torch.abs",
    "sign": "torch.sign",
    "sin": "torch.sin",
    "cos": "torch.cos",
    "tan": "torch.tan",
    "atan": "torch.atan",
    "sinh": "_sinh",
    "cosh": "_cosh",
    "tanh": "torch.tanh",
    "asinh": "torch.asinh",
    "max": "torch.maximum",
    "min": "torch.minimum",
}


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


_HELPERS["_decay"] = '''\
def _decay(x):
    """exp(-|x|), which cannot overflow; its derivative at 0 is the right one."""
    return torch.exp(torch.where(x < 0, x, -x))
'''
_HELPERS["_sigmoid"] = '''\
def _sigmoid(x, decay):
    """1/(1 + exp(-x)) from decay = exp(-|x|): all derivatives keep their digits."""
    return torch.where(x < 0, decay, 1.0) / (1.0 + decay)
'''
_HELPERS["_softplus"] = '''\
def _softplus(x, decay):
    """log(1 + exp(x)) from decay = exp(-|x|)."""
    return torch.where(x < 0, 0.0, x) + torch.log1p(decay)
'''
_HELPERS["_sigmoid_minus"] = '''\
def _sigmoid_minus(x, decay):
    """1/(1 + exp(x)) from decay = exp(-|x|): all derivatives keep their digits."""
    return torch.where(x < 0, 1.0, decay) / (1.0 + decay)
'''
_HELPERS["_softplus_minus"] = '''\
def _softplus_minus(x, decay):
    """log(1 + exp(-x)) from decay = exp(-|x|)."""
    return torch.where(x < 0, -x, 0.0) + torch.log1p(decay)
'''
_HELPERS["_logaddexp"] = '''\
def _logaddexp(x, y):
    """log(exp(x) + exp(y)) without overflow; every derivative is finite."""
    difference = x - y
    return y + _softplus(difference, _decay(difference))
'''
_HELPERS["_sinh"] = '''\
def _sinh(x):
    """sinh(x), finite as far as its value is: torch.sinh overflows with exp(|x|)."""
    half = torch.exp(0.5 * torch.abs(x).clamp(min=40))
    far = torch.sign(x) * (0.5 * half) * half
    return torch.where(torch.abs(x) > 40, far, torch.sinh(x.clamp(-40, 40)))
'''
_HELPERS["_cosh"] = '''\
def _cosh(x):
    """cosh(x), finite as far as its value is: torch.cosh overflows with exp(|x|)."""
    half = torch.exp(0.5 * torch.abs(x).clamp(min=40))
    return torch.where(torch.abs(x) > 40, (0.5 * half) * half, torch.cosh(x.clamp(-40, 40)))
'''
_HELPERS["_lambertw"] = _function(
    "_lambertw",
    "The real branch W_0, nan left of -1/e; slope 1 at 0 and inf at -1/e.",
    """\
        gap = x + 0.367919921875 - 4.0471553802490234e-05 - 9.149755188170102e-09
        p = (2 * math.e * gap).clamp(min=0).sqrt()
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
        )
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
)
_HELPERS["_wrightomega"] = _function(
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
)
_HELPERS["_ei_series"] = '''\
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
'''
_HELPERS["_scaled_ei"] = _function(
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
)
_HELPERS["_ei"] = _function(
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
)

DIALECT = Dialect(
    name="torch",
    imports={"math.": "import math", "torch.": "\nimport torch"},
    calls=_CALLS,
    helpers=_HELPERS,
    copy="{}.clone()",
    defaults="dtype, shape = torch.float64, ()",
    reserved=frozenset(
        {
            "torch",
            "math",
            "range",
            "bool",
            "int",
            "float",
            "type",
            "next",
            "isinstance",
            "dtype",
            "shape",
            "entries",
            "values",
            *_HELPERS,
        }
    ),
    constant_operand=lambda text, other: f"torch.full_like({other}, {text})",
)


def emit(program: Program, signature: Signature) -> str:
    """Standalone source of a program."""
    return python_module.module(program, DIALECT, signature)


load = python_module.load
