"""The equations of a claim as a paper writes them: a left side, a relation, a right side, and when it holds.

The right sides are the stated formulas of the claim; this module names the left sides. Formulas that differ from
setting to setting only by norms and singular values are one equation in `folded`, with the definitions to expand it.

>>> from theory.registry import find
>>> for equation in folded(find("integral-caco")):
...     print(equation.id, equation.left, equation.relation, equation.right)
integral-caco.y y = mu_QK + m*exp(gamma*mu_QK)/(gamma*n)
integral-caco.x x = mu_OV**2/2
integral-caco.slope s = gamma*kappa
integral-caco.conserved -gamma*kappa*mu_OV**2/2 + mu_QK + m*exp(gamma*mu_QK)/(gamma*n) const None
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, Literal

from sympy import Gt, Integer, Lt
from sympy.core.relational import Relational

from theory.latex.claims.folding import Definitions, expand, fold
from theory.latex.names import SCALARS
from theory.latex.notation import Rate
from theory.latex.printer import MatrixForm, MatrixRoot
from theory.paper.settings import SETTINGS
from theory.registry import Claim
from theory.symbols import alpha, mu_OV, mu_QK, t
from theory.words import matrix

__all__ = ["Equation", "equations", "folded"]

Sign = Literal["=", "~", "to", ">", "<", ">=", "<=", "!=", "const"]

_L, _r, _a, _c, _A, _x, _y, _s = (SCALARS[name] for name in ("L", "r", "a", "c", "A", "x", "y", "s"))


@dataclass(frozen=True)
class Equation:
    """One equation of a claim.

    ``id``, the claim with a short name, unique; ``name``, the stated formula; ``left``, a SymPy expression, `Words`, a
    `MatrixForm`, or None where the formula stands alone; ``relation``, one of ``= ~ to > < >= <= !=`` or ``const`` (the
    left side is constant along the flow, and there is no right side); ``right``, an expression, `Words` or a
    `MatrixRoot`; ``setting``, its label or "" for all; ``branch``, the signs that it holds for; ``family``, the id
    without the setting; ``definitions``, the named quantities in it, by setting; ``note``, in words when it holds.
    """

    id: str
    claim: str
    name: str
    left: Any
    relation: Sign
    right: Any
    setting: str = ""
    branch: tuple[Any, ...] = ()
    family: str = ""
    definitions: Definitions = ()
    note: str = ""

    def expanded(self) -> tuple[Equation, ...]:
        """The equation with its named quantities put in, one for each setting that it holds in."""
        if not self.definitions:
            return (self,)
        return tuple(
            replace(
                self,
                left=expand(self.left, images),
                right=expand(self.right, images),
                setting=label,
                id=f"{self.family}.{_slug(label)}",
                definitions=(),
            )
            for label, images in self.definitions
        )


def _slug(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_]+", "-", text.replace("= oo", "oo").replace("<", "neg").replace(">", "pos")).strip("-")


def _one(
    claim: Claim, key: str, left: Any, relation: Sign = "=", *, slug: str = "", setting: str = "", **more: Any
) -> Equation:
    """The equation of one stated formula."""
    family = f"{claim.id}.{slug or _slug(key)}"
    right = claim.stated[key]
    if relation == "const":
        left, right = right, None
    identity = f"{family}.{_slug(setting)}" if setting else family
    return Equation(identity, claim.id, key, left, relation, right, setting, family=family, **more)


def _each(
    claim: Claim, name: str, left: Any, relation: Sign = "=", *, prefix: str = "", **more: Any
) -> Iterator[Equation]:
    """The equations of a formula that is stated by setting."""
    for setting in SETTINGS:
        key = f"{name} [{setting.label}]"
        if key in claim.stated:
            yield _one(claim, key, left, relation, slug=prefix + _slug(name), setting=setting.label, **more)


def _plain(claim: Claim, lefts: Mapping[str, Any], relation: Sign = "=") -> Iterator[Equation]:
    """Formulas of one claim with their left sides, stated once or by setting."""
    for name, left in lefts.items():
        if name in claim.stated:
            yield _one(claim, name, left, relation)
        yield from _each(claim, name, left, relation)


def _signs(claim: Claim, lefts: Mapping[str, Any]) -> Iterator[Equation]:
    """Stated signs are inequalities."""
    for name, left in lefts.items():
        found = _one(claim, name, left, ">" if claim.stated[name] == 1 else "<", slug=name.removeprefix("sign "))
        yield replace(found, right=Integer(0), id=_slug_id(found.id), family=_slug_id(found.family))


def _slug_id(text: str) -> str:
    return text.replace("/", "-")


def _constant(claim: Claim) -> Iterator[Equation]:
    return (_one(claim, name, None, "const") for name in claim.stated)


def _directions(claim: Claim) -> Iterator[Equation]:
    yield _one(claim, "E_OV same", SCALARS["e_same"])
    yield _one(claim, "E_OV other", SCALARS["e_other"])
    for kind in ("shared", "per_class"):
        for name, left in (("a", _a), ("c", _c)):
            yield _one(claim, f"{name} [{kind}]", left, setting=f"{kind}, N", slug=name)


def _roots(claim: Claim) -> Iterator[Equation]:
    W = matrix("W")
    for name, square in (("U U^T", W @ W.T), ("V V^T", W.T @ W)):
        stated = _one(claim, name, None)
        yield replace(stated, left=stated.right, right=MatrixRoot(square))


def _branch(text: str) -> tuple[Any, ...]:
    found = re.findall(r"(mu_\w\w) ([<>]) 0", text)
    return tuple((Gt if side == ">" else Lt)(SCALARS[state], 0, evaluate=False) for state, side in found)


def _integral(claim: Claim) -> Iterator[Equation]:
    """``x``, ``y`` and ``slope`` of every branch."""
    for code in ("", "CAFO: ", "FAFO: "):
        lefts = {"y": _y, "x": _x}
        for key in claim.stated:
            name = key.removeprefix(code)
            if key.startswith(code) and (code or ":" not in key) and name[:1] in lefts and not name.startswith("slope"):
                yield _one(claim, key, lefts[name[0]], branch=_branch(name))
        yield from _each(claim, f"{code}slope", _s)


def _isometry(claim: Claim) -> Iterator[Equation]:
    yield from _plain(claim, {f"sigma2_{c}": SCALARS[f"sigma_{c}"] ** 2 for c in ("OV", "QK")})
    for index, times in ((1, "once"), (2, "M-1 times")):
        left = SCALARS[f"sigma_{index}"] ** 2
        yield _one(claim, f"sigma2_QK [per_class, N] {times}", left, slug=f"sigma2_QK-{index}", setting="per_class, N")


def _order(claim: Claim) -> Iterator[Equation]:
    (name,) = claim.stated
    found = _one(claim, name, None, "<", slug="crossing")
    yield replace(found, left=found.right, right=Integer(1))


def _time(claim: Claim) -> Iterator[Equation]:
    yield from _plain(claim, {"dt/dmu_QK": Rate(t, mu_QK), "mu_OV": mu_OV})
    yield from _plain(claim, {"limit": mu_OV**2 / mu_QK}, "to")


def _steps(claim: Claim) -> Iterator[Equation]:
    for name in claim.stated:
        note = name.removesuffix(" step") if name.endswith(" step") else ""
        yield _one(claim, name, MatrixForm("B_W" if name == "buffer" else "W", "next"), note=note)


def _drift(claim: Claim) -> Iterator[Equation]:
    return (_one(claim, name, SCALARS["mu_next"], note=name) for name in claim.stated)


_SIGNS: Mapping[str, Sign] = {"==": "=", ">": ">", "<": "<", ">=": ">=", "<=": "<=", "!=": "!="}


def _alone(claim: Claim) -> Iterator[Equation]:
    """Relations are equations themselves; other formulas stand alone."""
    for name, value in claim.stated.items():
        if isinstance(value, Relational):
            yield replace(_one(claim, name, None), left=value.lhs, relation=_SIGNS[value.rel_op], right=value.rhs)
        else:
            found = re.fullmatch(r"(.*?) \[(.*)\]", name)
            where = found[2] if found and any(s.label == found[2] for s in SETTINGS) else ""
            yield _one(claim, name, None, setting=where, slug=_slug(found[1]) if found and where else "")


#: Claims that define the named quantities.
_DEFINING = ("gradient-parallel", "isometry-criterion")
_RATES = {"mu_OV": Rate(mu_OV, t), "mu_QK": Rate(mu_QK, t)}

_PRESENTED: Mapping[str, Callable[[Claim], Iterable[Equation]]] = {
    "attention-mass": partial(_plain, lefts={"alpha": alpha}),
    "loss-on-line": partial(_plain, lefts={"L": _L}),
    "shift-conservation": _constant,
    "gradient-parallel": _directions,
    **{f"flow-{kind}": partial(_plain, lefts=_RATES) for kind in ("collapsed", "published", "cafo", "faco", "fafo")},
    "product-flow": partial(_plain, lefts={"dW/dt": MatrixForm("W", "rate")}),
    "balancedness": _constant,
    "balanced-root": _roots,
    "isometry-criterion": _isometry,
    **{f"integral-{kind}": _integral for kind in ("caco", "cafo", "faco", "fafo", "imbalanced-ov")},
    "fixed-attention-collapsed": partial(_plain, lefts={"alpha mu_OV": alpha * mu_OV, "A": _A}),
    "fixed-attention-factorized": _constant,
    "attention-sensitivity": partial(_plain, lefts={"-dL/dalpha": -Rate(_L, alpha)}),
    "stopping-state": partial(_plain, lefts={"alpha mu_OV": alpha * mu_OV}),
    "time-on-curve": _time,
    "sharper-with-ratio": partial(_signs, lefts={f"sign d{s}/dr": Rate(s, _r) for s in (mu_QK, alpha, mu_OV)}),
    "attention-monotone": partial(_signs, lefts={"sign dalpha/dt": Rate(alpha, t), "sign dL/dt": Rate(_L, t)}),
    "early-time": partial(_plain, lefts={"mu_OV": mu_OV, "mu_QK": mu_QK}, relation="~"),
    "loss-rate": partial(_plain, lefts={"L": _L}, relation="~"),
    "attention-limit": partial(_plain, lefts={"1 - alpha": 1 - alpha}, relation="~"),
    "parameterization-order": _order,
    **{f"line-{kind}": _steps for kind in ("gradient-descent", "momentum", "weight-decay")},
    "integral-drift-order": _drift,
}


def equations(claim: Claim) -> tuple[Equation, ...]:
    """The equations of a claim, each in its setting, with every quantity expanded.

    Parameters: ``claim``, of the theory or a user's own. Returns: one `Equation` for each stated formula, in order.

    >>> from theory.registry import find
    >>> [e.id for e in equations(find("noise-correction"))]
    ['noise-correction.shared', 'noise-correction.per_class']
    """
    return _with_conserved(claim, list(_present(claim)))


def _present(claim: Claim) -> Iterable[Equation]:
    return (_PRESENTED.get(claim.id, _alone) if claim.source != "user" else _alone)(claim)


def _with_conserved(claim: Claim, found: list[Equation]) -> tuple[Equation, ...]:
    """First integrals say that ``y - s x`` is constant, in every branch and setting."""
    if _PRESENTED.get(claim.id) is not _integral or claim.source == "user":
        return tuple(found)
    conserved = []
    for y in (e for e in found if e.left == _y):
        code, branch = re.fullmatch(r".*\.((?:[CF]AFO-)?)y(.*)", y.id).groups()  # type: ignore[union-attr]
        x = next(e for e in found if e.left == _x and e.family == f"{claim.id}.{code}x{branch}")
        for slope in (e for e in found if e.left == _s and e.family == f"{claim.id}.{code}slope"):
            family = f"{claim.id}.{code}conserved{branch}"
            identity = f"{family}.{_slug(slope.setting)}" if slope.setting else family
            value = y.right - slope.right * x.right
            more = replace(y, id=identity, left=value, relation="const", right=None, family=family)
            conserved.append(replace(more, setting=slope.setting, definitions=slope.definitions))
    return (*found, *conserved)


@lru_cache(maxsize=256)
def folded(claim: Claim) -> tuple[Equation, ...]:
    """The equations of a claim, those that have one form in all their settings as one."""
    families: dict[str, list[Equation]] = {}
    for equation in _present(claim):
        families.setdefault(equation.family, []).append(equation)
    return _with_conserved(claim, [e for family in families.values() for e in _fold_family(family)])


def _fold_family(family: list[Equation]) -> Iterable[Equation]:
    if len(family) == 1 or not all(e.setting for e in family):
        return family
    if family[0].claim in _DEFINING and any(e.right != family[0].right for e in family):
        return family
    found = fold({e.setting: e.right for e in family})
    if found is None:
        return family
    first = family[0]
    return (replace(first, id=first.family, setting="", right=found.value, definitions=found.definitions),)
