"""Standalone PyTorch source: differentiable to every order, derivatives right where a circuit saturates."""

from __future__ import annotations

from numerics.backends.printer import Dialect

__all__ = ["DIALECT"]

_HELPERS = {
    "_inputs": '''\
def _inputs(*values):
    """Tensors of one floating-point dtype (integers become float64; plain numbers adapt), and their common shape."""
    tensors = [torch.as_tensor(v) for v in values if type(v) not in (bool, int, float)]
    dtype = functools.reduce(torch.promote_types, [v.dtype for v in tensors], torch.bool)
    if dtype.is_complex:
        raise TypeError(f"expected real numbers or real tensors, got dtype {dtype}")
    dtype = dtype if dtype.is_floating_point else torch.float64
    device = next((v.device for v in tensors if v.ndim), tensors[0].device if tensors else None)
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
    first = next((e for e in entries if isinstance(e, torch.Tensor)), torch.empty(0))
    stack = [torch.as_tensor(e, dtype=dtype, device=first.device).expand(shape) for e in entries]
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
    "sigmoid": "_sigmoid",
    "softplus": "_softplus",
    "logaddexp": "torch.logaddexp",
    "abs": "torch.abs",
    "sign": "torch.sign",
    "sin": "torch.sin",
    "cos": "torch.cos",
    "tan": "torch.tan",
    "atan": "torch.atan",
    "sinh": "torch.sinh",
    "cosh": "torch.cosh",
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
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * {derivative}

    @staticmethod
    def jvp(ctx, tangent):
        (x,) = ctx.saved_tensors
        return tangent * {derivative}


{name} = _{title}.apply
'''


_HELPERS["_sigmoid"] = _function(
    "_sigmoid",
    "1/(1 + exp(-x)); the derivative keeps its digits where the sigmoid rounds to 1.",
    "        return torch.sigmoid(x)",
    "_sigmoid(x) * _sigmoid(-x)",
)
_HELPERS["_softplus"] = _function(
    "_softplus",
    "log(1 + exp(x)) without overflow.",
    "        return x.clamp(min=0) + torch.log1p(torch.exp(-x.abs()))",
    "_sigmoid(x)",
)

DIALECT = Dialect(
    name="torch",
    imports={"functools.": "import functools\n", "torch.": "import torch"},
    calls=_CALLS,
    helpers=_HELPERS,
    copy="{}.clone()",
    defaults="dtype, shape = torch.float64, ()",
    reserved=frozenset(
        {
            "torch",
            "functools",
            "bool",
            "int",
            "float",
            "type",
            "next",
            "isinstance",
            "dtype",
            "shape",
            "entries",
            *_HELPERS,
        }
    ),
    constant_operand=lambda text, other: f"torch.full_like({other}, {text})",
)
