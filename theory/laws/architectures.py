"""Gradient fields of architectures by name.

Each builder gives potentials through which every loss and data set acts: near a generic point the gradient fields of
the outputs for all inputs span the same directions as those of the potentials. Where a nonlinearity leaves no
finite set of them, the outputs at enough symbolic inputs stand in: fewer fields can only leave more laws, and each law
is proved for symbolic inputs, so for all.

Sources: arXiv 2307.00144 (linear, ReLU); section 13 of the theory (attention).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from sympy import Add, Expr, Integer, Matrix, Symbol, erf, exp, log, sqrt

from theory.errors import GradlineError
from theory.laws.fields import MOST_UNKNOWNS, GradientFields, gradient_fields

__all__ = ["ARCHITECTURES", "architecture"]

Potentials = tuple[list[Any], list[Any]]


def _matrix(name: str, rows: int, columns: int) -> Any:
    return Matrix(rows, columns, lambda i, j: Symbol(f"{name}_{i + 1}_{j + 1}"))


def _linear(widths: Sequence[int], heads: int) -> Potentials:
    layers = [_matrix(f"W{i + 1}", b, a) for i, (a, b) in enumerate(pairwise(widths))]
    total = layers[0]
    for layer in layers[1:]:
        total = layer * total
    return list(total), layers


def _relu(widths: Sequence[int], heads: int, *, bias: bool = False) -> Potentials:
    inputs, hidden, outputs = widths
    v, u, b = _matrix("V", inputs, hidden), _matrix("U", outputs, hidden), _matrix("b", 1, hidden)
    rows = v.col_join(b) if bias else v
    return [u[k, j] * rows[i, j] for j in range(hidden) for k in range(outputs) for i in range(rows.rows)], [
        v,
        u,
        *([b] if bias else []),
    ]


def _attention(widths: Sequence[int], heads: int, *, rotary: bool = False) -> Potentials:
    inputs, width, values, outputs = widths
    potentials: list[Any] = []
    parameters: list[Any] = []
    for h in range(1, heads + 1):
        q, k = _matrix(f"Q{h}", inputs, width), _matrix(f"K{h}", inputs, width)
        v, o = _matrix(f"V{h}", inputs, values), _matrix(f"O{h}", values, outputs)
        if rotary:
            turn = Matrix([[0, -1], [1, 0]])
            pairs = [(q[:, i : i + 2], k[:, i : i + 2]) for i in range(0, width, 2)]
            potentials += [e for a, b in pairs for e in [*(a * b.T), *(a * turn * b.T)]]
        else:
            potentials += list(q * k.T)
        potentials += list(v * o)
        parameters += [q, k, v, o]
    return potentials, parameters


def _samples(parameters: Sequence[Any], inputs: int, outputs: int) -> list[Any]:
    """Symbolic inputs, two more than it takes to reach every parameter."""
    count = -(-sum(len(m) for m in parameters) // outputs) + 2
    return [_matrix(f"x{s + 1}", 1, inputs) for s in range(count)]


def _sigmoid(z: Expr) -> Expr:
    return 1 / (1 + exp(-z))


def _silu(z: Expr) -> Expr:
    return z * _sigmoid(z)


def _gelu(z: Expr) -> Expr:
    return z * (1 + erf(z / sqrt(2))) / 2


def _feed_forward(activation: Callable[[Expr], Expr]) -> Callable[[Sequence[int], int], Potentials]:
    def build(widths: Sequence[int], heads: int) -> Potentials:
        inputs, hidden, outputs = widths
        v, u = _matrix("V", inputs, hidden), _matrix("U", hidden, outputs)
        return [e for x in _samples([v, u], inputs, outputs) for e in (x * v).applyfunc(activation) * u], [v, u]

    return build


def _swiglu(widths: Sequence[int], heads: int) -> Potentials:
    inputs, hidden, outputs = widths
    a, b, c = _matrix("A", inputs, hidden), _matrix("B", inputs, hidden), _matrix("C", hidden, outputs)
    potentials = []
    for x in _samples([a, b, c], inputs, outputs):
        gated = (x * a).multiply_elementwise((x * b).applyfunc(_silu))
        potentials += list(gated * c)
    return potentials, [a, b, c]


def _softmax(row: Any) -> Any:
    exponentials = row.applyfunc(exp)
    return exponentials / Add(*exponentials)


def _cross_entropy(widths: Sequence[int], heads: int) -> Potentials:
    inputs, classes = widths
    w = _matrix("W", inputs, classes)
    return [log(e) for x in _samples([w], inputs, classes - 1) for e in _softmax(x * w)], [w]


def _value_softmax(widths: Sequence[int], heads: int) -> Potentials:
    outputs, slots = widths
    v, a = _matrix("V", outputs, slots), _matrix("a", slots, 1)
    return list(v * _softmax(a)), [v, a]


def _mixture(gate: Callable[[Any], Any]) -> Callable[[Sequence[int], int], Potentials]:
    def build(widths: Sequence[int], heads: int) -> Potentials:
        inputs, experts, outputs = widths
        router = _matrix("R", inputs, experts)
        weights = [_matrix(f"A{e + 1}", inputs, outputs) for e in range(experts)]
        potentials = []
        for x in _samples([router, *weights], inputs, outputs):
            shares = gate(x * router)
            mixed = [shares[e] * (x * w) for e, w in enumerate(weights)]
            potentials += [Add(*(m[k] for m in mixed)) for k in range(outputs)]
        return potentials, [router, *weights]

    return build


def _normalized_sigmoid(row: Any) -> Any:
    gates = row.applyfunc(_sigmoid)
    return gates / Add(*gates)


def _layers(*widths: int) -> int:
    return sum(a * b for a, b in pairwise(widths))


def _experts(inputs: int, experts: int, outputs: int) -> int:
    return inputs * experts * (1 + outputs)


@dataclass(frozen=True)
class Architecture:
    """What the widths of an architecture mean, how many parameters they make, and how to build its potentials."""

    widths: str
    size: Callable[..., int]
    build: Callable[..., Potentials]
    text: str

    @property
    def length(self) -> int | None:
        """How many widths there are, None for any number from two on."""
        return None if "..." in self.widths else len(self.widths.split())


ARCHITECTURES: dict[str, Architecture] = {
    "linear": Architecture("input hidden ... output", _layers, _linear, "linear net of any depth"),
    "relu": Architecture(
        "input hidden output", _layers, _relu, "two-layer ReLU net; bias for the hidden units if asked"
    ),
    "gelu": Architecture("input hidden output", _layers, _feed_forward(_gelu), "two-layer GELU net"),
    "silu": Architecture("input hidden output", _layers, _feed_forward(_silu), "two-layer SiLU net"),
    "swiglu": Architecture(
        "input hidden output", lambda i, h, o: h * (2 * i + o), _swiglu, "gated layer (x A * silu(x B)) C"
    ),
    "attention": Architecture(
        "input query value output",
        lambda i, q, v, o: 2 * i * q + v * (i + o),
        _attention,
        "softmax attention; heads, rotary if asked",
    ),
    "softmax-cross-entropy": Architecture(
        "input classes", _layers, _cross_entropy, "linear layer under softmax cross-entropy"
    ),
    "value-softmax": Architecture("output slots", lambda o, s: (o + 1) * s, _value_softmax, "V softmax(a)"),
    "moe-softmax": Architecture(
        "input experts output", _experts, _mixture(_softmax), "mixture of linear experts, softmax gate"
    ),
    "moe-sigmoid": Architecture(
        "input experts output", _experts, _mixture(_normalized_sigmoid), "the same, gate of normalized sigmoids"
    ),
}


def architecture(
    name: str, widths: Sequence[int], *, heads: int = 1, bias: bool = False, rotary: bool = False
) -> GradientFields:
    """Return the gradient fields of an architecture.

    Parameters: ``name``, one of ``ARCHITECTURES``; ``widths``, positive integers in the order its entry says;
    ``heads`` and ``rotary`` for attention, ``bias`` for ReLU.

    Raises: ``ValueError`` for an unknown name or widths that don't fit; `GradlineError` for widths that make more
    parameters than the exact engine can do, with their number.

    Source: section 13 of the theory.

    >>> architecture("linear", [4, 3, 4]).dimension
    24
    """
    if name not in ARCHITECTURES:
        raise ValueError(f"model {name!r}: expected one of {', '.join(ARCHITECTURES)}")
    entry = ARCHITECTURES[name]
    if not isinstance(widths, Sequence):
        raise TypeError(f"widths={widths!r}: expected a sequence of integers, {entry.widths}")
    if any(isinstance(w, bool) or not isinstance(w, int | Integer) or w < 1 for w in widths):
        raise ValueError(f"widths {' '.join(map(str, widths))}: expected positive integers")
    if len(widths) != (entry.length or max(2, len(widths))):
        raise ValueError(f"widths {' '.join(map(str, widths))}: {name} expects {entry.widths}")
    if (
        isinstance(heads, bool)
        or not isinstance(heads, int | Integer)
        or heads < 1
        or (heads > 1 and name != "attention")
    ):
        raise ValueError(f"heads={heads}: expected an integer of at least 1, and more than 1 for attention only")
    options: dict[str, bool] = {}
    for option, value, owner in (("bias", bias, "relu"), ("rotary", rotary, "attention")):
        if value and name != owner:
            raise ValueError(f"{option}: known for {owner} only, not for {name}")
        if value:
            options[option] = True
    if rotary and widths[1] % 2:
        raise ValueError(f"query width {widths[1]}: rotary attention expects an even one")
    if name == "softmax-cross-entropy" and widths[1] < 2:
        raise ValueError(f"classes {widths[1]}: expected at least 2")
    plain = [int(w) for w in widths]
    size = entry.size(*plain) * heads
    if size > MOST_UNKNOWNS:
        raise GradlineError(
            f"{name} {' '.join(map(str, widths))}: {size} parameters, the exact engine can do {MOST_UNKNOWNS}; take "
            "smaller widths (laws keep their form)"
        )
    potentials, matrices = entry.build(plain, int(heads), **options)
    return gradient_fields(potentials, [x for m in matrices for x in m])
