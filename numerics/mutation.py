"""Does the evidence catch errors? Wrong versions of every claim, and errors put into the derivation.

Each mutant of a claim is refuted, equivalent to the original, proved itself (a true variant), or a survivor. An error
in the derivation must be seen by the full model: automatic differentiation of the enumerated loss, which
knows nothing of orbits and lines.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import lru_cache
from multiprocessing import get_context
from types import SimpleNamespace
from typing import Any, Literal
from zlib import crc32

from sympy import Integer

from theory.errors import GradlineError
from theory.mutation.injections import INJECTIONS, injected
from theory.mutation.judging import Answer, Judgement, judge, judge_derived, named_obligations
from theory.mutation.statements import derivation_mutants, mutants
from theory.registry import Claim, Obligation, claims, find

__all__ = ["ClaimMutants", "InjectedError", "MutantResult", "MutationReport", "try_mutants", "witness_injection"]

Progress = Callable[[int, int, str], None]

#: Mutants of the formulas of a claim in one run; which ones depends on the seed.
COUNT = 40


@dataclass(frozen=True)
class MutantResult:
    """What became of a wrong version of a claim; ``detail`` holds the point of a refutation, or the reason."""

    name: str
    kind: str
    description: str
    answer: Answer
    detail: str


@dataclass(frozen=True)
class ClaimMutants:
    """The mutants of a claim and the time they took in seconds."""

    claim_id: str
    results: tuple[MutantResult, ...]
    seconds: float

    def count(self, answer: Answer) -> int:
        """How many mutants ended so."""
        return sum(r.answer == answer for r in self.results)


@dataclass(frozen=True)
class InjectedError:
    """An error of the derivation: ``caught`` by the full model or not, with what it saw."""

    name: str
    kind: str
    description: str
    caught: bool
    detail: str


@dataclass(frozen=True)
class MutationReport:
    """Mutants by claim, and errors put into the derivation; ``seed`` is that of the choice of mutants."""

    claims: tuple[ClaimMutants, ...]
    injections: tuple[InjectedError, ...]
    seed: int

    @property
    def survivors(self) -> tuple[tuple[str, MutantResult], ...]:
        """The mutants that nothing decided, with the ids of their claims."""
        return tuple((c.claim_id, r) for c in self.claims for r in c.results if r.answer == "survivor")

    @property
    def exit_code(self) -> int:
        """0 if every error was caught, 1 if a mutant survives or the full model misses an error."""
        return int(bool(self.survivors) or not all(i.caught for i in self.injections))

    def to_dict(self) -> dict[str, Any]:
        """The report as plain data for JSON."""
        return {
            "seed": self.seed,
            "claims": [
                {
                    "id": c.claim_id,
                    "counts": dict(Counter(r.answer for r in c.results)),
                    "mutants": [vars(r) for r in c.results],
                    "seconds": round(c.seconds, 3),
                }
                for c in self.claims
            ],
            "injections": [vars(i) for i in self.injections],
        }


def _result(judged: Judgement) -> MutantResult:
    mutant = judged.mutant
    detail = judged.reason
    if judged.outcome is not None and judged.outcome.decision is not None:
        detail = f"{detail}: {judged.outcome.decision.reason}"
    elif judged.outcome is not None:
        detail = f"{detail}: {judged.outcome.how}"
    elif judged.point:
        detail = f"{detail} at {', '.join(f'{s} = {v}' for s, v in judged.point.items())}"
    return MutantResult(mutant.name, mutant.kind, mutant.description, judged.answer, detail)


def statement_results(claim: Claim, seed: int = 0, count: int | None = COUNT) -> ClaimMutants:
    """Judge the wrong versions of a claim's formulas and hypotheses."""
    begin = time.perf_counter()
    original = named_obligations(claim)
    found = tuple(_result(judge(m, original)) for m in mutants(claim, seed, count))
    return ClaimMutants(claim.id, found, time.perf_counter() - begin)


def _derivation_results(claims_: Sequence[Claim], name: str) -> dict[str, tuple[MutantResult, float]]:
    """Confront qualitative claims with one wrong derivation, those that see a difference."""
    right = _right(tuple(claims_))
    found = {}
    with injected(name):
        for claim in claims_:
            begin = time.perf_counter()
            for mutant in derivation_mutants(claim):
                judged = judge_derived(mutant, right[claim.id]) if mutant.injection == name else None
                if judged is not None:
                    found[claim.id] = _result(judged), time.perf_counter() - begin
    return found


@lru_cache(maxsize=2)
def _right(claims_: tuple[Claim, ...]) -> dict[str, dict[str, Obligation]]:
    """The obligations of the right derivation; the cache is not among those that an injection empties."""
    return {claim.id: named_obligations(claim) for claim in claims_}


# ---- the witness -------------------------------------------------------------------------------------------


def _derived_claims(witness: str) -> Iterator[Claim]:
    """What the derivation says now, as claims that the full model can be compared with."""
    from theory import factorization
    from theory.flow import derive
    from theory.paper.factors import c, eta, mu, sigma
    from theory.paper.settings import SETTINGS, has_line, model

    def nothing(_: Mapping[str, Any]) -> tuple[()]:
        return ()

    if witness == "velocity":
        for code in ("CACO", "FAFO"):
            flows = {s.label: derive(model(s, code)) for s in SETTINGS if has_line(s, code)}
            stated = {f"{x.name} [{label}]": v for label, f in flows.items() for x, v in f.velocity.items()}
            yield Claim(f"derived flow, {code}", stated, nothing, text="derived", subject=("velocity", code))
    elif witness == "factor":
        direction: Any = SimpleNamespace(sigma=sigma, singular_values2=())
        for kind, imbalance in (("balanced", Integer(0)), ("imbalanced", c)):
            factor = factorization.rescaling(direction, mu, imbalance).factor
            yield Claim(
                f"derived factor, {kind}", {"factor": factor}, nothing, text="derived", subject=("factor", kind)
            )
    else:
        yield Claim(
            "derived product flow",
            {"dW/dt": factorization.product_flow(eta)},
            nothing,
            text="derived",
            subject=("words", "W"),
        )


def _witness(witness: str, seed: int) -> tuple[bool, str]:
    """Whether the full model contradicts what is derived now, and the first contradiction."""
    import numpy as np

    from numerics.checks.autograd import CHECKS

    compared = 0
    for claim in _derived_claims(witness):
        rng = np.random.default_rng([seed, crc32(claim.id.encode())])
        for finding in CHECKS[claim.subject[0]](claim, rng):
            compared += 1
            if finding.holds is False:
                return True, f"{claim.id}: {finding.says}"
    return False, f"{compared} comparisons agree"


def witness_injection(name: str | None, seed: int = 0) -> InjectedError:
    """Derive with an error and compare with the full model.

    Parameters: ``name`` of one of `theory.mutation.injections.INJECTIONS`, or None for the right derivation,
    which no comparison may contradict; ``seed`` of the random cases.
    Returns: an `InjectedError`.

    >>> witness_injection(None).caught
    False
    """
    if name is None:
        seen = [_witness(kind, seed) for kind in ("velocity", "factor", "words")]
        return InjectedError("none", "none", "the right derivation", any(s for s, _ in seen), seen[0][1])
    with injected(name) as injection:
        try:
            caught, detail = _witness(injection.witness, seed)
        except GradlineError as error:
            caught, detail = True, f"the derivation refuses: {error}"
        except ValueError as error:  # NumPy: factors of different shapes can't be multiplied as derived
            if injection.witness != "words":
                raise
            caught, detail = True, f"the derived products do not fit the factors: {error}"
    return InjectedError(name, injection.kind, injection.description, caught, detail)


# ---- all of it, on several processes -----------------------------------------------------------------------

Task = tuple[Literal["claim", "injection"], str, tuple[str, ...], int, int | None]


def _work(task: Task) -> Any:
    """One task in one process; everything it needs is named, so that it can be sent there."""
    kind, name, ids, seed, count = task
    if kind == "claim":
        return statement_results(find(name), seed, count)
    from numerics.gradient_flow import one_thread

    with one_thread():
        return witness_injection(name, seed), _derivation_results([find(i) for i in ids], name)


def _results(tasks: Sequence[Task], workers: int) -> Iterator[tuple[Task, Any]]:
    if workers == 1:
        yield from ((task, _work(task)) for task in tasks)
        return
    pool: Executor
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        futures: dict[Future[Any], Task] = {pool.submit(_work, task): task for task in tasks}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BrokenExecutor:
            raise GradlineError(
                "mutants: a process ended before its work was done; close other programs, run again"
            ) from None
        finally:
            for future in futures:
                future.cancel()


def try_mutants(
    claims_: Sequence[Claim] | None = None,
    *,
    seed: int = 0,
    count: int | None = COUNT,
    workers: int = 2,
    injections: Sequence[str] | None = None,
    progress: Progress | None = None,
) -> MutationReport:
    """Judge the mutants of claims of the theory, and confront errors of the derivation with the full model.

    Parameters: ``claims_``, claims of the theory, by default all; ``seed`` of the choice of mutants and cases;
    ``count``, how many mutants of the formulas of each claim (None: all that exist); ``workers``, processes;
    ``injections``, names of the errors of the derivation (None: all);
    ``progress``, called with the number of tasks done, in all, and a label.

    Returns: a `MutationReport`, the same for the same seed apart from times.

    >>> report = try_mutants([find("noise-correction")], count=3, workers=1, injections=["rescaling-half"])
    >>> report.claims[0].count("survivor"), report.exit_code
    (0, 0)
    """
    chosen = tuple(claims() if claims_ is None else claims_)
    ids = tuple(c.id for c in chosen if derivation_mutants(c))
    names = [i.name for i in INJECTIONS] if injections is None else list(injections)
    tasks: list[Task] = [("injection", name, ids, seed, None) for name in names]
    tasks += [("claim", c.id, (), seed, count) for c in chosen]
    done: dict[Task, Any] = {}
    for task, result in _results(tasks, workers):
        done[task] = result
        if progress is not None:
            progress(len(done), len(tasks), task[1])
    seen = {task[1]: done[task] for task in tasks}
    found = tuple(_with_derivation(seen[c.id], [seen[name][1].get(c.id) for name in names]) for c in chosen)
    return MutationReport(found, tuple(seen[name][0] for name in names), seed)


def _with_derivation(found: ClaimMutants, more: Sequence[tuple[MutantResult, float] | None]) -> ClaimMutants:
    pairs = [m for m in more if m is not None]
    seconds = found.seconds + sum(s for _, s in pairs)
    return ClaimMutants(found.claim_id, (*found.results, *(r for r, _ in pairs)), seconds)
