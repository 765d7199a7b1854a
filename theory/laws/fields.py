"""The gradient fields of a model, evaluated exactly modulo a prime together with their iterated brackets.

A model's loss depends on the parameters ``theta`` through potentials ``phi_1, phi_2, ...`` only. Whatever the loss
and the data, gradient flow moves along the fields ``eta_i d(phi_j)/d(theta_i)``, and a law that holds for every loss is
constant along all of them, so along their brackets too.

Exponentials are handled as coordinates of their own: ``E = exp(u)`` moves by ``E du``. Exponents are split
into monomials of the parameters, whose exponentials are algebraically independent over the rational functions
(the theorem of Ax), so that a random value for each is a generic point.

Source: arXiv 2307.00144, section 2; section 13 of the theory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import Any

from sympy import Add, Basic, Dummy, Expr, Integer, Symbol, diff

from theory.inputs import check_names, exact
from theory.laws.coordinates import Coordinates, rational_form
from theory.laws.jets import Jet, add, negative, tangent
from theory.laws.program import Program, compile_program

__all__ = ["MOST_UNKNOWNS", "GradientFields", "Point", "as_fields", "gradient_fields"]

#: Coefficients of laws that the exact engine finds, one for each parameter at least: beyond it, minutes and gigabytes.
MOST_UNKNOWNS = 2500


@dataclass(frozen=True)
class GradientFields:
    """The fields ``eta_i d(phi_j)/d(theta_i)`` of potentials ``phi_j`` of parameters ``theta_i``.

    ``potentials`` and ``parameters`` as given; ``rates``, one for each parameter. Make it by `gradient_fields`.
    """

    potentials: tuple[Expr, ...]
    parameters: tuple[Symbol, ...]
    rates: tuple[Expr, ...]

    @cached_property
    def weights(self) -> tuple[Symbol, ...]:
        """A symbol for each potential: a general field is that of ``sum_j w_j phi_j``."""
        return tuple(Dummy(f"w{j}") for j in range(len(self.potentials)))

    @cached_property
    def gradients(self) -> tuple[dict[Symbol, Expr], ...]:
        """The velocity of each parameter along the field of each potential, zeros left out."""
        rate = dict(zip(self.parameters, self.rates, strict=True))
        return tuple({x: eta * diff(phi, x) for x, eta in rate.items() if phi.has(x)} for phi in self.potentials)

    @cached_property
    def _form(self) -> Coordinates:
        pairs = list(zip(self.weights, self.gradients, strict=True))
        velocity = [Add(*(w * g[x] for w, g in pairs if x in g)) for x in self.parameters]
        return rational_form(velocity, self.parameters)

    @property
    def dimension(self) -> int:
        """Number of parameters."""
        return len(self.parameters)

    @cached_property
    def coordinates(self) -> tuple[Symbol, ...]:
        """The parameters, then exponentials and the like as coordinates of their own."""
        return (*self.parameters, *self._form.adjoined)

    @cached_property
    def constants(self) -> tuple[Symbol, ...]:
        """Symbols that do not move; any value is a general one."""
        return tuple(s for s in self._form.constants if s not in self.weights)

    @cached_property
    def _program(self) -> Program:
        velocity = dict(zip(self.parameters, self._form.expressions, strict=True))
        motions = [Add(*(slope * velocity[x] for x, slope in slopes.items())) for slopes in self._form.slopes]
        return compile_program([*velocity.values(), *motions], [*self.coordinates, *self.weights, *self.constants])

    def check_names(self, laws: Sequence[Expr]) -> None:
        """Refuse laws in which a symbol has the name of another one here: they would be constants."""
        check_names([*laws, *self.potentials, *self.parameters, *self.rates])

    def point(self, random: Random, p: int) -> Point:
        """Draw a point: values of all coordinates and constants modulo ``p``."""
        coordinates = tuple(random.randrange(1, p) for _ in self.coordinates)
        return Point(self, coordinates, tuple(random.randrange(1, p) for _ in self.constants), p)


@dataclass(frozen=True)
class Point:
    """A generic point, where fields and brackets are evaluated modulo ``p``."""

    fields: GradientFields
    coordinates: tuple[int, ...]
    constants: tuple[int, ...]
    p: int

    def field(self, weights: Sequence[int]) -> list[int]:
        """Components along the parameters of the field with these weights."""
        return [int(v) for v in self._run(self.coordinates, weights)[: self.fields.dimension]]  # type: ignore[arg-type]

    def bracket(self, words: Sequence[Sequence[int]]) -> list[int]:
        """Components of ``[X_1, [X_2, ... [X_(k-1), X_k]]]``, each field given by its weights."""
        return [int(v) for v in self._bracket(self.coordinates, words)[: self.fields.dimension]]  # type: ignore[arg-type]

    def _run(self, at: Sequence[Jet], weights: Sequence[int]) -> list[Jet]:
        return self.fields._program.run([*at, *weights, *self.constants], self.p)

    def _bracket(self, at: Sequence[Jet], words: Sequence[Sequence[int]]) -> list[Jet]:
        if len(words) == 1:
            return self._run(at, words[0])
        outer = self._run(at, words[0])
        inner = self._bracket(at, words[1:])
        along_outer = self._bracket(list(zip(at, outer, strict=True)), words[1:])
        along_inner = self._run(list(zip(at, inner, strict=True)), words[0])
        return [
            add(tangent(a), negative(tangent(b), self.p), self.p) for a, b in zip(along_outer, along_inner, strict=True)
        ]


def as_fields(fields: Any) -> GradientFields:
    """Return the fields; ``TypeError`` for anything else."""
    if not isinstance(fields, GradientFields):
        raise TypeError(f"fields={fields!r}: expected GradientFields, such as architecture or gradient_fields return")
    return fields


def gradient_fields(
    potentials: Sequence[Any], parameters: Sequence[Symbol], rates: Mapping[Symbol, Any] | None = None
) -> GradientFields:
    """Return the gradient fields of potentials, checked.

    Parameters: ``potentials``, expressions rational in the parameters and in exponentials (also ``tanh``, ``erf`` and
    the like) of polynomials of them; ``log`` where differentiation removes it. ``parameters``, the symbols that
    are trained; every other symbol is a constant drawn at random, so a general value. ``rates``, learning rates, 1
    where not named.

    Raises: ``TypeError`` or ``ValueError`` for wrong input; `GradlineError` for functions outside the class.

    >>> from sympy.abc import u, v
    >>> gradient_fields([u * v], [u, v]).dimension
    2
    """
    for what, given in (("potentials", potentials), ("parameters", parameters)):
        if isinstance(given, Basic | str):
            raise TypeError(f"{what}: {given}: expected a sequence, such as [{given}]")
    chosen = tuple(parameters)
    if not chosen:
        raise ValueError("parameters: expected at least one symbol")
    for symbol in chosen:
        if not isinstance(symbol, Symbol):
            raise TypeError(f"parameters: {symbol!r}: expected a SymPy symbol")
    if len(set(chosen)) < len(chosen):
        raise ValueError("parameters: each symbol once")
    speed = dict(rates or {})
    unknown = sorted(str(s) for s in set(speed) - set(chosen))
    if unknown:
        raise ValueError(f"rates: {unknown[0]} is no parameter; expected some of {', '.join(s.name for s in chosen)}")
    phis = tuple(exact(phi) for phi in potentials)
    check_names([*phis, *chosen])
    trained = set(chosen)
    moving = tuple(phi for phi in phis if phi.free_symbols & trained)
    return GradientFields(moving, chosen, tuple(exact(speed.get(s, Integer(1))) for s in chosen))
