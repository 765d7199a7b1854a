"""Standalone PyTorch source: differentiable to every order, derivatives right where a circuit saturates."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import indent

from numerics.backends.printer import Dialect, Signature, formulas, words
from numerics.backends.python_module import call, display, docstring, header, indented, load, module
from numerics.backends.series import UNIT_LOG1P
from numerics.backends.special_torch import HELPERS as SPECIAL
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
    "_decay": '''\
def _decay(x):
    """exp(-|x|), which cannot overflow; its derivative at 0 is the right one."""
    return torch.exp(torch.where(x < 0, x, -x))
''',
    "_sigmoid": '''\
def _sigmoid(x, decay):
    """1/(1 + exp(-x)) from decay = exp(-|x|): all derivatives keep their digits."""
    return torch.where(x < 0, decay, 1.0) / (1.0 + decay)
''',
    "_softplus": '''\
def _softplus(x, decay):
    """log(1 + exp(x)) from decay = exp(-|x|)."""
    return torch.where(x < 0, 0.0, x) + _unit_log1p(decay)
''',
    "_unit_log1p": f'''\
def _unit_log1p(x):
    """log(1 + x) for x from 0 to 1; compiled code adds up its series, which is faster.

    The series of 2 atanh(s), beyond sqrt(2) - 1 for half of 1 + x.
    """
    if not torch.compiler.is_compiling():
        return torch.log1p(x)
    far = (x > 0.41421356237309503).to(x.dtype)
{indent(UNIT_LOG1P, "    ")}
''',
    "_sigmoid_minus": '''\
def _sigmoid_minus(x, decay):
    """1/(1 + exp(x)) from decay = exp(-|x|): all derivatives keep their digits."""
    return torch.where(x < 0, 1.0, decay) / (1.0 + decay)
''',
    "_softplus_minus": '''\
def _softplus_minus(x, decay):
    """log(1 + exp(-x)) from decay = exp(-|x|)."""
    return torch.where(x < 0, -x, 0.0) + _unit_log1p(decay)
''',
    "_logaddexp": '''\
def _logaddexp(x, y):
    """log(exp(x) + exp(y)) without overflow; every derivative is finite."""
    return torch.where(x < y, y, x) + _unit_log1p(_decay(x - y))
''',
    "_sinh": '''\
def _sinh(x):
    """sinh(x), finite as far as its value is: torch.sinh overflows with exp(|x|)."""
    half = torch.exp(0.5 * torch.abs(x).clamp(min=40))
    far = torch.sign(x) * (0.5 * half) * half
    return torch.where(torch.abs(x) > 40, far, torch.sinh(x.clamp(-40, 40)))
''',
    "_cosh": '''\
def _cosh(x):
    """cosh(x), finite as far as its value is: torch.cosh overflows with exp(|x|)."""
    half = torch.exp(0.5 * torch.abs(x).clamp(min=40))
    return torch.where(torch.abs(x) > 40, (0.5 * half) * half, torch.cosh(x.clamp(-40, 40)))
''',
    **SPECIAL,
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


_TAKEN = words("torch math range bool int float type next isinstance dtype shape entries values")

DIALECT = Dialect(
    name="torch",
    imports={"math.": "import math", "torch.": "\nimport torch"},
    calls=_CALLS,
    helpers=_HELPERS,
    reserved=frozenset({*_TAKEN, *_HELPERS}),
    constant_operand=lambda text, other: f"torch.full_like({other}, {text})",
)


def _returned(texts: Sequence[str], signature: Signature) -> list[str]:
    """Results of the full shape."""
    if signature.shape is not None:
        rows = ", ".join(str(n) for n in signature.shape)
        return [*display("entries = ", texts, brackets="[]"), f"return _stacked(entries, dtype, shape, ({rows}))"]
    shaped = [f"_shaped({t}, dtype, shape)" for t in texts]
    return [f"return {shaped[0]}"] if signature.single else display("return ", shaped)


def _distinct(texts: Sequence[str], program: Program) -> list[str]:
    """The texts of outputs: none is an argument, or the same tensor as another."""
    found = []
    for position, (text, index) in enumerate(zip(texts, program.outputs, strict=True)):
        value = program.values[index]
        repeated = value.op == "arg" or index in program.outputs[:position]
        found.append(f"{text}.clone()" if repeated and value.op != "const" else text)
    return found


def emit(program: Program, signature: Signature) -> str:
    """Print a program as a module with one function."""
    lines, texts = formulas(program, DIALECT, signature)
    given = ["_, dtype, shape = _inputs()"]
    if signature.parameters:
        given = call("values, dtype, shape = _inputs", "(", signature.parameters, ")", 4)
        given += display("", signature.parameters, " = values")
    inner = [*docstring(signature, fills=False), *given, *lines, *_returned(_distinct(texts, program), signature)]
    function = [*header(signature.name, signature.parameters), *indented(inner)]
    last = "_shaped" if signature.shape is None else "_stacked"
    return module(program, DIALECT, signature.title, ["_inputs", last], [function])
