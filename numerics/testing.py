"""Property tests of a theory in two lines: does the full model stay on the predicted line, does a claim hold?

Failing cases are shrunk by Hypothesis to the smallest sizes and printed with code that repeats them.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

from theory.errors import GradlineError
from theory.flow import ReducedFlow, derive
from theory.model import AttentionModel

if TYPE_CHECKING:
    from theory.registry import Claim

__all__ = ["Checked", "check_on_line", "holds"]


@dataclass(frozen=True)
class Checked:
    """What a property test that passed has looked at: the number of ``examples``."""

    examples: int


def check_on_line(
    model: Any,
    flow: Any = None,
    *,
    line: Any = None,
    sizes: Any = None,
    parameters: Mapping[str, tuple[float, float]] | None = None,
    starts: tuple[float, float] = (-1.5, 1.5),
    examples: int | None = None,
    seed: int = 0,
    at: Mapping[str, Any] | None = None,
) -> Checked:
    """Test that the full model, entry by entry, follows the predicted flow from starts on its line.

        W = sum_s x_s E_s,   dx/dt = velocity(x)

    Parameters: ``model``, an `AttentionModel`, symbols in its task are drawn; or a `theory.models.Model`, or a function
    of sizes to one; ``flow``, what is predicted: a `ReducedFlow` (default: the derived one), a `GradientFlow`, what
    `numerics.reduce_model` returns, or a function of sizes to one; parameters of the flow with the name of a size take
    its value; ``line``, for each state its directions by block (or a function of sizes to them), by default the orbits
    of the flow; ``sizes``, name -> (least, largest), or a strategy such as `numerics.strategies.sizes`;
    ``parameters``, name -> (least, largest) for rates and other
    symbols, by default 1/2 to 3; ``starts``, the range of the states; ``examples``, by default as many as the profile
    of Hypothesis says; ``seed``; ``at``, one case by name, to repeat it.

    Returns: `Checked`; velocities and loss are compared in all examples, whole runs in a quarter of them.
    Raises: ``AssertionError`` with the smallest case found and code that repeats it;
    ``ValueError`` or ``TypeError`` for wrong input.

    >>> from sympy import Symbol
    >>> from theory.models import Block, GradientFlow, Model
    >>> w, x = Block("w", 2), Symbol("x", real=True)
    >>> a, b = w.symbols
    >>> predicted = GradientFlow({x: 1 - 2 * x})
    >>> check_on_line(Model([w], (a + b - 1) ** 2 / 2), predicted, line={x: {"w": [1, 1]}}, examples=3)
    Checked(examples=3)
    """
    cases = _cases(model, flow, line, sizes, dict(parameters or {}), starts)
    given = {"line": line, "sizes": sizes, "parameters": parameters}
    used = "".join(f", {name}={name}" for name, value in given.items() if value is not None)
    if at is not None:
        _fail(cases, dict(at), used)
        return Checked(1)
    count = _profile_examples() if examples is None else examples
    # velocities and loss at the start are cheap and find most errors: runs are for what is left
    for run, tried in ((False, count), (True, max(1, count // 4))):
        case = _smallest(cases, run, tried, seed)
        if case is not None:
            _fail(cases, case, used)
            raise GradlineError(f"check_on_line: the case {case} failed, then passed; the model is not deterministic")
    return Checked(count)


def _smallest(cases: Any, run: bool, count: int, seed: int) -> Any:
    """The smallest failing case, or None."""
    return _find(cases.strategy(), lambda c: bool(cases.differences(c, run)), count, seed)


def _profile_examples() -> int:
    """As many examples as the profile of Hypothesis says."""
    from hypothesis import settings

    return (settings.default or settings()).max_examples


def _find(strategy: Any, fails: Callable[[Any], bool], count: int, seed: int) -> Any:
    """The smallest failing example that Hypothesis finds among ``count``."""
    from hypothesis import HealthCheck, find, settings
    from hypothesis.errors import NoSuchExample

    options = settings(max_examples=count, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    try:
        return find(strategy, fails, settings=options, random=Random(seed))
    except NoSuchExample:
        return None


def _cases(model: Any, flow: Any, line: Any, sizes: Any, parameters: Any, starts: Any) -> Any:
    if isinstance(model, AttentionModel):
        from numerics.testing_attention import AttentionCases

        predicted = derive(model) if flow is None else flow
        if not isinstance(predicted, ReducedFlow):
            raise TypeError(f"flow={flow!r}: expected a ReducedFlow for an AttentionModel, such as derive(model)")
        if line is not None or sizes is not None or parameters:
            raise ValueError("line, sizes, parameters: an AttentionModel has its own; make sizes symbols in its task")
        return AttentionCases(model, predicted)
    from numerics.models.reduction import reduce_model
    from numerics.testing_models import UserCases, drawn_sizes, size_names
    from theory.models import Model

    if not isinstance(model, Model) and not callable(model):
        raise TypeError(f"model={model!r}: expected an AttentionModel, a Model, or a function of sizes to a Model")
    needed = () if isinstance(model, Model) else size_names(model)
    drawn = drawn_sizes(sizes, needed)
    if flow is None:
        flow = reduce_model(model) if isinstance(model, Model) else lambda **s: reduce_model(model(**s))
    return UserCases(model, flow, line, drawn, parameters, starts)


def _fail(cases: Any, case: Mapping[str, Any], used: str) -> None:
    """Raise for the differences of a case, if it has any."""
    found = cases.differences(case)
    if not found:
        return
    shown = {name: (value if isinstance(value, (int, float)) else _plain(value)) for name, value in case.items()}
    first = "\n  ".join(str(d) for d in found[:3])
    raise AssertionError(
        f"the full model leaves the prediction at {', '.join(f'{k}={v}' for k, v in shown.items())}:\n  {first}\n"
        f"to repeat it:\n  at = {shown}\n  numerics.check_on_line(model, flow{used}, at=at)"
    )


def _plain(value: Any) -> int | float:
    return int(value) if value == int(value) else float(value)


def holds(
    claim: Claim | str | Callable[..., Claim], *, sizes: Any = None, seed: int = 0
) -> Callable[[Callable[..., Any]], Any]:
    """Make a test of a claim: it passes if the claim is proved or supported.

    Parameters: ``claim``, its id, or a function of nothing that returns it; with ``sizes``, a function of them, such
    as one that builds and reduces a model; ``sizes``, name -> (least, largest), or a strategy such as
    `numerics.strategies.sizes`, tried for as many examples as the profile of Hypothesis says, each size once;
    ``seed`` of the random cases. The test may take an argument ``result``, the `ClaimResult` (of the sizes tried last).

    Raises, in the test: ``AssertionError`` with the verdict, the evidence and a counterexample as code; with sizes, the
    smallest at which the claim fails.

    >>> from sympy import Symbol
    >>> import theory
    >>> x = Symbol("x", real=True)
    >>> @holds(theory.Claim.equal("square", (x + 1) ** 2, x**2 + 2 * x + 1))
    ... def test_square(result):
    ...     print(result.verdict)
    >>> test_square()
    proved
    """

    def decorate(test: Callable[..., Any]) -> Any:
        signature = inspect.signature(test)
        kept = [p for p in signature.parameters.values() if p.name != "result"]

        @functools.wraps(test)
        def run(*args: Any, **keywords: Any) -> Any:
            found = _verified(claim, seed) if sizes is None else _verified_for(claim, sizes, seed)
            if len(kept) < len(signature.parameters):
                keywords["result"] = found
            return test(*args, **keywords)

        run.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
        return run

    return decorate


def _verified(claim: Any, seed: int, size: Mapping[str, int] | None = None) -> Any:
    """The result of a claim that holds; ``AssertionError`` for another one."""
    from numerics.evidence import verify
    from theory.registry import Claim

    chosen = claim if isinstance(claim, (Claim, str)) else claim(**(size or {}))
    (found,) = verify([chosen], seed=seed).results
    if found.verdict not in ("proved", "supported"):
        shown = f"at {', '.join(f'{k}={v}' for k, v in size.items())}: " if size else ""
        raise AssertionError(f"{shown}{_report(found)}")
    return found


def _verified_for(claim: Any, sizes: Any, seed: int) -> Any:
    """The result at the sizes tried last; ``AssertionError`` at the smallest at which the claim fails."""
    from numerics.testing_models import drawn_sizes, size_names

    if not callable(claim):
        raise TypeError(f"claim={claim!r}: expected a function of sizes to a Claim, as sizes are given")
    tried: dict[tuple[tuple[str, int], ...], Any] = {}

    def fails(size: Mapping[str, int]) -> bool:
        key = tuple(size.items())
        if key not in tried:
            try:
                tried[key] = _verified(claim, seed, size)
            except AssertionError as error:
                tried[key] = error
        return isinstance(tried[key], AssertionError)

    smallest = _find(drawn_sizes(sizes, size_names(claim)), fails, _profile_examples(), seed)
    if smallest is not None:
        raise tried[tuple(smallest.items())]
    return [*tried.values()][-1]


def _report(found: Any) -> str:
    from theory.counterexamples import counterexample
    from theory.registry import prove

    lines = [f"{found.claim.id} is {found.verdict}: {found.how}"]
    for outcome in prove(found.claim):
        example = counterexample(found.claim, outcome) if outcome.answer == "refuted" else None
        if example is not None:
            lines += [str(example), "to repeat it:", *(f"  {line}" for line in example.snippet.splitlines())]
            break
    return "\n".join(lines)
