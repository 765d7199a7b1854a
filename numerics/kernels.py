"""From a reduced flow or any expression to a callable with readable source.

    flow or expressions --rewrites, each checked--> program --backend--> source --> Kernel

Source: arXiv 2608.06776, reduced dynamics; claims `flow-collapsed`, `flow-cafo`, `flow-faco`, `flow-fafo`.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property, lru_cache
from typing import Any

import mpmath
from sympy import Symbol

from numerics.backends.printer import Dialect, Signature, identifiers
from numerics.functions import sigmoid
from numerics.ir import Program, lower
from numerics.requests import Request, expression_request, flow_request
from numerics.rewrites import REWRITES, Rewrite
from numerics.value_check import reference, require_equal, value_at
from theory.errors import GradlineError
from theory.positivity import sign
from theory.symbols import SYMBOLS

__all__ = ["BACKENDS", "Kernel", "compile_kernel"]

#: Backends by name: the module that holds the `Dialect`.
BACKENDS = {name: f"numerics.backends.{name}" for name in ("numpy", "torch", "numba", "c")}

#: All that a kernel can be written in: the backends, and JavaScript, which computes in a browser or in Node.js.
_LANGUAGES = {**BACKENDS, "javascript": "numerics.backends.javascript"}
#: Those that write into arrays they are given.
_FILLING = ("numpy", "numba", "c")


@dataclass(frozen=True)
class Kernel:
    """A compiled function.

    ``source``, standalone Python, C or JavaScript that needs only the backend's library; ``arguments``, names of the
    symbols; ``parameters``, the names they have in the source, different where Python or the backend needs a name
    itself (either may be used as a keyword); ``outputs``, names of what is returned; ``backend``; ``layout``, "single"
    for one array, the shape of a matrix, or None for a tuple; ``function``, the bare function. It can be pickled.
    """

    name: str
    source: str
    arguments: tuple[str, ...]
    outputs: tuple[str, ...]
    backend: str
    parameters: tuple[str, ...] = field(repr=False)
    layout: tuple[int, ...] | str | None = field(default=None, repr=False)

    @cached_property
    def function(self) -> Any:
        """The plain function of the source, by position; built when first used: reading the source imports nothing."""
        return importlib.import_module(_LANGUAGES[self.backend]).load(self)

    def __call__(self, *args: Any, out: Any = None, **keywords: Any) -> Any:
        """Evaluate at arguments given by position or by name.

        Parameters: the arguments; ``out``, arrays of the right dtype and shape, one for each result, which are filled
        and returned (NumPy, Numba and C; an argument named ``out`` comes first).
        Raises: TypeError naming a missing, repeated or unknown argument; ValueError for an unsuitable ``out``.
        """
        if "out" in self.arguments and out is not None:
            keywords, out = {**keywords, "out": out}, None
        if keywords or len(args) != len(self.arguments):
            args = self._bind(args, keywords)
        if out is None:
            return self.function(*args)
        if self.backend not in _FILLING:
            raise TypeError(f"{self.name}: the backend {self.backend!r} takes no out, only {', '.join(_FILLING)} do")
        return self.function(*args, out=out)

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
        values = (self.name, self.source, self.arguments, self.outputs, self.backend, self.parameters, self.layout)
        return Kernel, values


def compile_kernel(
    target: Any,
    backend: str = "numpy",
    args: Sequence[Symbol] | None = None,
    outputs: Sequence[str] | None = None,
    name: str | None = None,
) -> Kernel:
    """Compile a reduced flow, an expression, a sequence of expressions or a matrix to a function of arrays.

    For a flow: ``(mu_OV, mu_QK, *parameters) -> (d mu_OV/dt, d mu_QK/dt, L, alpha)``; for a `GradientFlow` its states
    in their order, and the loss where it has one.

    Parameters: ``target``; ``backend``, "numpy", "torch", "numba", "c" or "javascript"; ``args``, symbols in call
    order: all that occur and perhaps more, which take part in broadcasting only (of a flow by default its states, then
    its parameters);
    ``outputs``, which outputs of a flow and in what order (default ``d_mu_OV, d_mu_QK, loss, attention``), or names for
    the outputs of expressions; ``name`` of the function in the source.
    Returns: a `Kernel`. Arguments broadcast; an expression gives one array, a flow or a sequence a tuple, a matrix one
    array of shape ``(*batch, rows, columns)``. Those of NumPy, Numba and C fill arrays given as ``out=``.
    Raises: ValueError or TypeError for a symbol missing from ``args``, named twice or with other assumptions, for an
    unknown backend or output; `GradlineError` naming what no backend can print and where it stands.
    Source: arXiv 2608.06776, reduced dynamics; claim `flow-collapsed`.

    >>> from sympy import Symbol, exp, log
    >>> x = Symbol("x", real=True)
    >>> float(compile_kernel(log(1 + exp(x)), args=[x])(800.0))
    800.0
    """
    if backend not in _LANGUAGES:
        raise ValueError(f"backend {backend!r}: expected one of {', '.join(_LANGUAGES)}")
    if name is not None and not (isinstance(name, str) and identifiers([name], frozenset()) == (name,)):
        raise ValueError(f"name {name!r}: expected an identifier such as 'velocity'")
    if all(hasattr(target, a) for a in ("states", "parameters", "velocity", "loss")):
        if not isinstance(target.velocity, Mapping):
            raise TypeError("the flow of a torch model has no expressions to compile; expected a GradientFlow")
        return _compile(flow_request(target, backend, args, outputs, name))
    return _compile(expression_request(target, backend, args, outputs, name))


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
def lowered(request: Request) -> Program:
    """The checked program of a request."""
    lower(request.expressions, request.arguments)  # refuses what no backend prints before it is evaluated
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
def _compile(request: Request) -> Kernel:
    return print_kernel(lowered(request), request)


def print_kernel(program: Program, request: Request) -> Kernel:
    """The kernel of a program, in the language of the request's backend."""
    backend = importlib.import_module(_LANGUAGES[request.backend])
    dialect: Dialect = backend.DIALECT
    symbols = tuple(s.name for s in request.arguments)
    own = {request.name, *(f"{request.name}_{part}" for part in ("block", "one", "many"))}
    parameters = identifiers(symbols, dialect.reserved | own | {n for _, n in request.known})
    signature = Signature(
        name=request.name,
        symbols=symbols,
        parameters=parameters,
        outputs=request.outputs,
        title=request.title,
        notes=tuple(f"{SYMBOLS[s].space}, {SYMBOLS[s].meaning}" if s in SYMBOLS else "" for s in symbols),
        shape=request.shape,
        single=request.single,
        uniform=tuple(s.name for s in request.uniform),
        formulas=request.formulas,
    )
    layout = "single" if request.single else request.shape
    return Kernel(
        request.name, backend.emit(program, signature), symbols, request.outputs, request.backend, parameters, layout
    )
