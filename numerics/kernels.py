"""From a reduced flow or any expression to a callable with readable source.

    flow or expressions --rewrites, each checked--> program --backend--> source --> Kernel

Source: arXiv 2608.06776, reduced dynamics; claims `flow-collapsed`, `flow-cafo`, `flow-faco`, `flow-fafo`.
"""

from __future__ import annotations

import importlib
import linecache
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import lru_cache
from typing import Any
from zlib import crc32

import mpmath
from sympy import Expr, Integer, MatrixBase, Symbol, exp

from numerics.backends.printer import Dialect, Signature, identifiers, module
from numerics.value_check import reference, require_equal, value_at
from numerics.functions import sigmoid
from numerics.ir import Program, lower
from numerics.rewrites import REWRITES, Rewrite
from theory.errors import GradlineError
from theory.positivity import sign
from theory.symbols import SYMBOLS

__all__ = ["BACKENDS", "Kernel", "compile_kernel"]

#: Backends by name: the module that holds the `Dialect`.
BACKENDS = {"numpy": "numerics.backends.numpy", "torch": "numerics.backends.torch"}

_CLAIMS = {"CACO": "flow-collapsed", "CAFO": "flow-cafo", "FACO": "flow-faco", "FAFO": "flow-fafo"}


@dataclass(frozen=True)
class Kernel:
    """A compiled function.

    ``source``, standalone Python that needs only the backend's library; ``arguments``, names in call order (also the keywords; a
    name that Python or the backend needs for itself has another parameter name in the source, either may be used); ``outputs``,
    names of what is returned; ``backend``. A kernel is picklable.
    """

    name: str
    source: str
    arguments: tuple[str, ...]
    outputs: tuple[str, ...]
    backend: str
    parameters: tuple[str, ...] = field(repr=False)
    function: Any = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        file = f"<gradline {self.backend} kernel {self.name} {crc32(self.source.encode()):08x}>"
        space: dict[str, Any] = {"__name__": f"gradline_kernel_{self.name}"}
        exec(compile(self.source, file, "exec"), space)
        linecache.cache[file] = (len(self.source), None, self.source.splitlines(True), file)
        object.__setattr__(self, "function", space[self.name])

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Evaluate at arguments given by position or by name.

        Raises: TypeError naming a missing, repeated or unknown argument.
        """
        if keywords or len(args) != len(self.arguments):
            args = self._bind(args, keywords)
        return self.function(*args)

    def _bind(self, args: tuple[Any, ...], keywords: Mapping[str, Any]) -> tuple[Any, ...]:
        if len(args) > len(self.arguments):
            expected = ", ".join(self.arguments)
            raise TypeError(f"{self.name}: {len(args)} arguments given, expected {len(self.arguments)}: {expected}")
        bound = dict(zip(self.arguments, args, strict=False))
        safe = dict(zip(self.parameters, self.arguments, strict=True))
        for key, value in keywords.items():
            name = key if key in self.arguments else safe.get(key)
            if name is None:
                near = get_close_matches(key, self.arguments, 1, 0.0)
                hint = f"; did you mean {near[0]}?" if near else ""
                raise TypeError(f"{self.name}: no argument {key}, expected {', '.join(self.arguments)}{hint}")
            if name in bound:
                raise TypeError(f"{self.name}: argument {name} is given twice")
            bound[name] = value
        missing = [a for a in self.arguments if a not in bound]
        if missing:
            raise TypeError(f"{self.name}: missing {', '.join(missing)}; expected {', '.join(self.arguments)}")
        return tuple(bound[a] for a in self.arguments)

    def __reduce__(self) -> tuple[Any, ...]:
        values = (self.name, self.source, self.arguments, self.outputs, self.backend, self.parameters)
        return Kernel, values


@dataclass(frozen=True)
class _Request:
    """Everything a kernel depends on: hashable, the key of the cache."""

    expressions: tuple[Any, ...]
    arguments: tuple[Symbol, ...]
    outputs: tuple[str, ...]
    backend: str
    name: str
    title: str
    shape: tuple[int, ...] | None = None
    single: bool = False
    uniform: tuple[Symbol, ...] = ()
    known: tuple[tuple[Any, str], ...] = ()
    assumptions: tuple[Any, ...] = ()


def compile_kernel(
    target: Any,
    backend: str = "numpy",
    args: Sequence[Symbol] | None = None,
    outputs: Sequence[str] | None = None,
    name: str | None = None,
) -> Kernel:
    """Compile a reduced flow, an expression, a sequence of expressions or a matrix to a function of arrays.

    For a flow: ``(mu_OV, mu_QK, *parameters) -> (d mu_OV/dt, d mu_QK/dt, L, alpha)``.

    Parameters: ``target``; ``backend``, "numpy" or "torch"; ``args``, symbols in call order (of a flow: its states, then its
    parameters); ``outputs``, which outputs of a flow and in what order (default ``d_mu_OV, d_mu_QK, loss, attention``), or names for
    the outputs of expressions; ``name`` of the function in the source.
    Returns: a `Kernel`. Its arguments broadcast; a flow or a sequence gives a tuple, a matrix an array of shape ``(*batch, rows, columns)``.
    Raises: ValueError or TypeError for a symbol missing from ``args`` or too many, an unknown backend or output; `GradlineError`
    naming what no backend can print and where it stands.
    Source: THEORY section 4, claim `flow-collapsed`.

    >>> from sympy import Symbol, exp, log
    >>> x = Symbol("x", real=True)
    >>> float(compile_kernel(log(1 + exp(x)), args=[x])(800.0))
    800.0
    """
    if backend not in BACKENDS:
        raise ValueError(f"backend {backend!r}: expected one of {', '.join(BACKENDS)}")
    if name is not None and not (isinstance(name, str) and identifiers([name], frozenset()) == (name,)):
        raise ValueError(f"name {name!r}: expected an identifier such as 'velocity'")
    if all(hasattr(target, a) for a in ("states", "parameters", "velocity", "loss", "attention")):
        return _compile(_flow_request(target, backend, args, outputs, name))
    return _compile(_expression_request(target, backend, args, outputs, name))


def _flow_request(
    flow: Any, backend: str, args: Sequence[Symbol] | None, outputs: Sequence[str] | None, name: str | None
) -> _Request:
    available = {f"d_{s.name}": flow.velocity[s] for s in flow.states}
    available |= {"loss": flow.loss, "attention": flow.attention}
    chosen = tuple(available) if outputs is None else _names(outputs)
    for output in chosen:
        if output not in available:
            near = get_close_matches(output, available, 1, 0.0)[0]
            raise ValueError(f"output {output!r}: expected some of {', '.join(available)}; did you mean {near}?")
    symbols = (*flow.states, *flow.parameters)
    kind = getattr(getattr(flow, "model", None), "parameterization", None)
    claim = _CLAIMS.get(str(kind))
    about = (
        f"Reduced gradient flow{f' of {kind}' if claim else ''}, arXiv 2608.06776{f', claim {claim}' if claim else ''}."
    )
    share, z = flow.attention, flow.attention * flow.states[0]
    classes = getattr(getattr(flow, "task", None), "classes", SYMBOLS["M"].symbol)
    known = (
        (share, "attention"),
        (1 - share, "noise_attention"),
        (z, "margin"),
        (classes - 1, "others"),
        ((classes - 1) / (exp(z) + classes - 1), "error"),
        (flow.loss, "loss"),
        *((flow.velocity[s], f"d_{s.name}") for s in flow.states),
    )
    return _Request(
        expressions=tuple(available[o] for o in chosen),
        arguments=_arguments(args, symbols) if args is not None else symbols,
        outputs=chosen,
        backend=backend,
        name=name or "gradient_flow",
        title=about,
        uniform=tuple(flow.parameters),
        known=known,
        assumptions=_usable(flow),
    )


def _usable(flow: Any) -> tuple[Any, ...]:
    relations = [getattr(a, "relation", None) for a in getattr(flow, "assumptions", ())]
    return tuple(r for r in relations if r is not None)


def _names(outputs: Sequence[str]) -> tuple[str, ...]:
    if isinstance(outputs, str):
        raise TypeError(f"outputs {outputs!r}: expected a sequence of names such as [{outputs!r}]")
    chosen = tuple(outputs)
    if not chosen or len(set(chosen)) != len(chosen):
        raise ValueError(f"outputs {chosen}: expected distinct names, at least one")
    return chosen


def _expression_request(
    target: Any, backend: str, args: Sequence[Symbol] | None, outputs: Sequence[str] | None, name: str | None
) -> _Request:
    shape, single = None, False
    if isinstance(target, MatrixBase):
        expressions, shape = tuple(target), tuple(int(n) for n in target.shape)
    elif isinstance(target, (list, tuple)):
        expressions = tuple(target)
    else:
        expressions, single = (target,), True
    if not expressions:
        raise ValueError("nothing to compile: expected at least one expression")
    expressions = tuple(Integer(e) if isinstance(e, int) else e for e in expressions)
    for e in expressions:
        if not isinstance(e, Expr):
            raise TypeError(f"{e!r} of type {type(e).__name__}: expected a ReducedFlow, SymPy expressions or a matrix")
    symbols = sorted(set().union(*(e.free_symbols for e in expressions)), key=lambda s: s.name)
    if args is None:
        raise ValueError(
            f"args: expected the symbols in call order, some order of {', '.join(s.name for s in symbols)}"
        )
    named = tuple(f"y_{i}" for i in range(len(expressions))) if outputs is None else _names(outputs)
    if len(named) != len(expressions):
        raise ValueError(f"outputs: {len(named)} names for {len(expressions)} expressions")
    return _Request(
        expressions=expressions,
        arguments=_arguments(args, symbols),
        outputs=named if outputs is not None or not single else ("value",),
        backend=backend,
        name=name or "kernel",
        title="Generated from a symbolic expression.",
        shape=shape,
        single=single,
    )


def _arguments(args: Sequence[Symbol], symbols: Sequence[Symbol]) -> tuple[Symbol, ...]:
    found = tuple(args)
    for a in found:
        if not isinstance(a, Symbol):
            raise TypeError(f"args: {a!r} is no symbol")
    names = [a.name for a in found]
    for n in names:
        if names.count(n) > 1:
            raise ValueError(f"args: {n} is named twice")
    missing = [s.name for s in symbols if s not in found]
    if missing:
        twin = " (a symbol of that name with other assumptions is)" if missing[0] in names else ""
        raise ValueError(f"args: {', '.join(missing)} is not among {', '.join(names) or 'them'}{twin}")
    if extra := [a.name for a in found if a not in symbols]:
        expected = ", ".join(s.name for s in symbols) or "no symbol"
        raise ValueError(f"args: {', '.join(extra)} does not occur; expected {expected}")
    return found


def _positive(assumptions: tuple[Any, ...]) -> Any:
    @lru_cache(maxsize=512)
    def positive(expr: Any) -> bool:
        if expr.is_positive is not None:
            return bool(expr.is_positive)
        try:
            return sign(expr, assumptions) == 1
        except (GradlineError, ValueError, TypeError):
            return False

    return positive


def rewrite(
    expressions: Sequence[Any],
    symbols: Sequence[Symbol],
    rewrites: Sequence[Rewrite],
    assumptions: tuple[Any, ...] = (),
) -> tuple[list[Any], list[Any]]:
    """Apply rewrites in order and check the value after each.

    Returns: the rewritten expressions, and the points with reference values.
    Raises: `RewriteError` naming the rewrite that changed a value.
    """
    positive = _positive(assumptions)
    known = reference(expressions, symbols)
    current = list(expressions)
    for step in rewrites:
        new = [step(e, positive) for e in current]
        if new != current:
            for point, values in known:
                require_equal(f"rewrite {step.__name__}", values, [value_at(e, point) for e in new], point)
        current = new
    return current, known


@lru_cache(maxsize=256)
def _program(request: _Request) -> Program:
    known = [e for e, _ in request.known]
    everything, points = rewrite((*request.expressions, *known), request.arguments, REWRITES, request.assumptions)
    count = len(request.expressions)
    names = dict(zip(everything[count:], [n for _, n in request.known], strict=True))
    names |= {
        e.args[0]: f"{n}_logit" for e, n in names.items() if isinstance(e, sigmoid) and n in ("attention", "error")
    }
    program = lower(everything[:count], request.arguments, names, request.uniform)
    for point, values in points:
        with mpmath.workdps(60):
            at = {s.name: mpmath.mpf(int(v.p)) / int(v.q) for s, v in point.items()}
            got = program.evaluate(at)
        require_equal("lowering", values[:count], got, point)
    return program


@lru_cache(maxsize=256)
def _compile(request: _Request) -> Kernel:
    dialect: Dialect = importlib.import_module(BACKENDS[request.backend]).DIALECT
    symbols = tuple(s.name for s in request.arguments)
    parameters = identifiers(symbols, dialect.reserved | {request.name} | {n for _, n in request.known})
    notes = tuple(f"{SYMBOLS[s].space}, {SYMBOLS[s].meaning}" if s in SYMBOLS else "" for s in symbols)
    signature = Signature(
        name=request.name,
        symbols=symbols,
        parameters=parameters,
        outputs=request.outputs,
        title=request.title,
        notes=notes,
        shape=request.shape,
        single=request.single,
    )
    source = module(_program(request), dialect, signature)
    return Kernel(request.name, source, symbols, request.outputs, request.backend, parameters)
