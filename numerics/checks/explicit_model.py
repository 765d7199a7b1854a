"""The model at concrete sizes, written out: every sequence of the task, every entry of both matrices, in ball
arithmetic.

Nothing of the derivation enters: neither orbits nor the reduced formulas. Source: sections 1, 2 and 5 of the theory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

from numerics.checks.cases import Case, Circuit
from numerics.checks.tape import Node, ball, constant, gradient, total
from theory.symbols import K, M, N, b, eta_OV, eta_QK, gamma, m, mu_OV, mu_QK, n

__all__ = ["ExplicitModel", "Matrix", "direction", "sequences"]

Ball = Any
Matrix = list[list[Any]]


@dataclass(frozen=True)
class Sequence:
    """A query, the label and the tokens of the slots, informative slots first."""

    query: int
    label: int
    tokens: tuple[int, ...]


def _sizes(case: Case) -> tuple[int, int, int, int, int, int]:
    size = {s: int(case.values[s]) for s in (M, b, K, N, m, n)}
    return size[M], size[b], size[K], size[N] if case.finite else 1, size[m], size[n]


def sequences(case: Case) -> Iterator[Sequence]:
    """Every sequence of the task once; all are equally likely. Infinite noise is one token of zero embedding."""
    classes, block, queries, noise, informative, noisy = _sizes(case)
    for label, q in product(range(classes), range(queries)):
        query = q + queries * label if case.query_kind == "per_class" else q
        own = range(label * block, (label + 1) * block)
        rest = range(classes * block, classes * block + noise)
        for tokens in product(*[own] * informative, *[rest] * noisy):
            yield Sequence(query, label, tokens)


def direction(case: Case, circuit: Circuit) -> list[list[Fraction]]:
    """``E_OV`` or ``E_QK`` entry by entry, from its definition."""
    classes, block, queries, noise, _, _ = _sizes(case)
    tokens = classes * block
    if circuit == "OV":
        return [
            [
                Fraction(int(t // block == c)) - Fraction(1, classes) if t < tokens else Fraction(0)
                for t in range(tokens + noise)
            ]
            for c in range(classes)
        ]
    per_class = case.query_kind == "per_class"
    seen = block if per_class else tokens
    a, c = (Fraction(noise, seen + noise), Fraction(seen, seen + noise)) if case.finite else (Fraction(1), Fraction(0))

    def entry(query: int, token: int) -> Fraction:
        if token >= tokens:
            return -c
        return a if not per_class or token // block == query // queries else Fraction(0)

    rows = queries * (classes if per_class else 1)
    return [[entry(q, t) for t in range(tokens + noise)] for q in range(rows)]


def _times(left: Matrix, right: Matrix) -> Matrix:
    columns = list(zip(*right, strict=True))
    return [[sum((x * y for x, y in zip(row, column, strict=True)), ball(0)) for column in columns] for row in left]


def _transposed(matrix: Matrix) -> Matrix:
    return [list(column) for column in zip(*matrix, strict=True)]


def _square(E: list[list[Fraction]]) -> Fraction:
    """``sigma^2`` in ``E E^T E = sigma^2 E``.

    Raises: ``ValueError`` where there is no such number.
    """
    gram = [[sum((x * y for x, y in zip(r, s, strict=True)), Fraction(0)) for s in E] for r in E]
    cube = [[sum((g * E[k][t] for k, g in enumerate(row)), Fraction(0)) for t in range(len(E[0]))] for row in gram]
    found = {c / e for cs, es in zip(cube, E, strict=True) for c, e in zip(cs, es, strict=True) if e}
    zeros = all(c == 0 for cs, es in zip(cube, E, strict=True) for c, e in zip(cs, es, strict=True) if not e)
    if len(found) != 1 or not zeros:
        raise ValueError("E E^T E is no multiple of E: a factorized circuit does not stay on its line")
    return found.pop()


@dataclass(frozen=True)
class ExplicitModel:
    """The model of a case with the trained parameters of each circuit: ``W``, or ``U`` and ``V``, as balls.

    ``parameters`` maps ``W_OV`` or ``U_OV`` and ``V_OV``, and the same for ``QK``, to matrices.
    """

    case: Case
    parameters: Mapping[str, Matrix]

    @classmethod
    def on_line(cls, case: Case, code: str = "CACO", imbalance: Mapping[Circuit, Any] | None = None) -> ExplicitModel:
        """On the line at the coordinates of the case: ``U = u E E^T/sigma^2``, ``V = v E^T/sigma`` if factorized."""
        parameters: dict[str, Matrix] = {}
        circuits: tuple[tuple[Circuit, str, Any], ...] = (("OV", code[2], mu_OV), ("QK", code[0], mu_QK))
        for circuit, form, coordinate in circuits:
            E, mu = direction(case, circuit), ball(case.values[coordinate])
            exact = [[ball(e) for e in row] for row in E]
            if form == "C":
                parameters[f"W_{circuit}"] = [[mu * e for e in row] for row in exact]
                continue
            square = ball(_square(E))
            c, product_ = ball((imbalance or {}).get(circuit, 0)), square.sqrt() * mu
            u = (((c * c + 4 * product_ * product_).sqrt() + c) / 2).sqrt()
            v = product_ / u
            projection = _times(exact, _transposed(exact))
            parameters[f"U_{circuit}"] = [[u * p / square for p in row] for row in projection]
            parameters[f"V_{circuit}"] = [[v * e / square.sqrt() for e in row] for row in _transposed(exact)]
        return cls(case, parameters)

    def _leaves(self) -> dict[str, list[list[Node]]]:
        return {name: [[Node(x) for x in row] for row in matrix] for name, matrix in self.parameters.items()}

    def _effective(self, leaves: Mapping[str, list[list[Node]]], circuit: Circuit) -> list[list[Node]]:
        if f"W_{circuit}" in leaves:
            return leaves[f"W_{circuit}"]
        U, V = leaves[f"U_{circuit}"], leaves[f"V_{circuit}"]
        return [[total(u * v for u, v in zip(row, column, strict=True)) for column in V] for row in U]

    def _evaluate(self, leaves: Mapping[str, list[list[Node]]]) -> tuple[Node, Node]:
        """Mean loss and mean attention on informative slots."""
        values, scale = self.case.values, ball(self.case.values[gamma])
        output, query_key = self._effective(leaves, "OV"), self._effective(leaves, "QK")
        tokens = int(values[M] * values[b])
        losses, masses = [], []
        nothing = constant(0)
        for sequence in sequences(self.case):
            zero = [not self.case.finite and t >= tokens for t in sequence.tokens]
            scores = [
                nothing if z else query_key[sequence.query][t].scaled(scale)
                for t, z in zip(sequence.tokens, zero, strict=True)
            ]
            weights = [score.exp() for score in scores]
            norm = total(weights)
            shares = [w / norm for w in weights]
            logits = [
                total(s * row[t] for s, t, z in zip(shares, sequence.tokens, zero, strict=True) if not z)
                for row in output
            ]
            own = logits[sequence.label]
            losses.append(total((z - own).exp() for z in logits).log())
            masses.append(total(shares[: int(values[m])]))
        share = ball(Fraction(1, len(losses)))
        return total(losses).scaled(share), total(masses).scaled(share)

    def loss(self) -> Ball:
        """The enclosed population loss."""
        return self._evaluate(self._leaves())[0].value

    def attention(self) -> Ball:
        """The enclosed mean attention on informative slots."""
        return self._evaluate(self._leaves())[1].value

    def matrices(self) -> dict[Circuit, Matrix]:
        """The effective ``W`` of both circuits."""
        leaves = self._leaves()
        circuits: tuple[Circuit, ...] = ("OV", "QK")
        return {c: [[x.value for x in row] for row in self._effective(leaves, c)] for c in circuits}

    def attention_velocity(self) -> tuple[Ball, Ball]:
        """``d alpha/dt`` and ``dL/dt`` along the gradient flow of the parameters."""
        leaves = self._leaves()
        rates: dict[str, Ball] = {"OV": ball(self.case.values[eta_OV]), "QK": ball(self.case.values[eta_QK])}
        flat = [(rates[name[-2:]], x) for name, rows in leaves.items() for row in rows for x in row]
        nodes = [x for _, x in flat]
        loss, mass = self._evaluate(leaves)
        falls, rises = gradient(loss, nodes), gradient(mass, nodes)
        pairs = [(rate * g, a) for (rate, _), g, a in zip(flat, falls, rises, strict=True)]
        return -sum((s * a for s, a in pairs), ball(0)), -sum(
            (s * g for (s, _), g in zip(pairs, falls, strict=True)), ball(0)
        )

    def gradients(self) -> dict[str, Matrix]:
        """Derivatives of the loss by every entry of every parameter."""
        leaves = self._leaves()
        flat = [(name, i, x) for name, rows in leaves.items() for i, row in enumerate(rows) for x in row]
        slopes = gradient(self._evaluate(leaves)[0], [x for *_, x in flat])
        found: dict[str, Matrix] = {name: [[] for _ in rows] for name, rows in leaves.items()}
        for (name, i, _), slope in zip(flat, slopes, strict=True):
            found[name][i].append(slope)
        return found

    def velocities(self) -> dict[Circuit, Matrix]:
        """``dW/dt`` of both matrices under gradient flow of the parameters, with the rates of the case."""
        slopes = self.gradients()
        rates = {"OV": ball(self.case.values[eta_OV]), "QK": ball(self.case.values[eta_QK])}
        found: dict[Circuit, Matrix] = {}
        circuits: tuple[Circuit, ...] = ("OV", "QK")
        for circuit in circuits:
            if f"W_{circuit}" in slopes:
                speed = slopes[f"W_{circuit}"]
            else:
                U, V = (self.parameters[f"{side}_{circuit}"] for side in "UV")
                dU, dV = (slopes[f"{side}_{circuit}"] for side in "UV")
                left, right = _times(dU, _transposed(V)), _times(U, _transposed(dV))
                speed = [[x + y for x, y in zip(r, s, strict=True)] for r, s in zip(left, right, strict=True)]
            found[circuit] = [[-rates[circuit] * x for x in row] for row in speed]
        return found
