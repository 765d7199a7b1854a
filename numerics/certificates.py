"""Certificates: a report as a file that can be checked again without deriving anything.

A certificate holds for each claim its formulas, assumptions and obligations as text that
`theory.reader.read` reads back, how each obligation was decided, the evidence, the versions and hashes. Times
are kept apart: two runs with the same seed differ in ``times`` and ``versions`` only. See ``docs/evidence.md``.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import sympy

from numerics.commands.console import plain_data
from numerics.dependencies import uses
from numerics.derivations import derivations
from numerics.evidence import ClaimResult, Evidence, Report
from numerics.obligations import obligation_entry
from numerics.output import write_files
from theory.errors import GradlineError
from theory.reader import read
from theory.registry import Claim, Outcome, claims, reference_claims
from theory.serialize import write
from theory.symbols import SYMBOLS
from theory.words import Words

__all__ = [
    "FORMAT",
    "VERSION",
    "assumption_entries",
    "canonical_hash",
    "certificate",
    "claim_hash",
    "content_hash",
    "dump",
    "evidence_entry",
    "formula_latex",
    "obligations_from",
    "save",
    "versions",
]

FORMAT = "gradline evidence"
VERSION = 1

#: What the hash of a claim covers: everything that is stated and must be proved, not how it was proved.
_HASHED = ("id", "source", "statement", "assumptions", "obligations", "obligations_from")
_HASHED_OBLIGATION = ("name", "relation", "srepr", "assumptions", "decisive", "hypotheses")
_APART = ("times", "versions", "sha256")
_PACKAGES = ("gradline", "numpy", "python-flint", "sympy", "torch")
_LATEX_NAMES = {info.symbol: info.latex for info in SYMBOLS.values()}


def canonical_hash(data: Any) -> str:
    """The SHA-256 of data as JSON with sorted keys, no white space and ASCII only.

    >>> canonical_hash({"b": 1, "a": [0.1]}) == canonical_hash({"a": [0.1], "b": 1})
    True
    """
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def claim_hash(entry: Mapping[str, Any]) -> str:
    """The hash of a claim: of its formulas, assumptions and obligations, not of its title.

    >>> entry = dict.fromkeys(_HASHED) | {"statement": [{"name": "x", "srepr": "Integer(1)"}], "obligations": []}
    >>> claim_hash(entry) == claim_hash({**entry, "title": "another"}), len(claim_hash(entry))
    (True, 64)
    """
    stated = [{key: formula[key] for key in ("name", "srepr")} for formula in entry["statement"]]
    owed = [{key: o[key] for key in _HASHED_OBLIGATION} for o in entry["obligations"]]
    return canonical_hash({key: entry[key] for key in _HASHED} | {"statement": stated, "obligations": owed})


def content_hash(document: Mapping[str, Any]) -> str:
    """The hash of a whole certificate, apart from times and versions.

    >>> content_hash({"claims": [], "versions": {"python": "3.11"}}) == content_hash({"claims": []})
    True
    """
    return canonical_hash({key: value for key, value in document.items() if key not in _APART})


def versions() -> dict[str, str]:
    """The versions of Python and of the packages that evidence depends on.

    >>> sorted(versions())[:3]
    ['gradline', 'numpy', 'python']
    """
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


def formula_latex(formula: Any) -> str:
    """LaTeX of a stated formula: an expression, a relation or `Words`.

    >>> from theory.symbols import mu_OV
    >>> print(formula_latex(mu_OV**2 / 2))
    \\frac{\\mu_{\\mathrm{OV}}^{2}}{2}
    """
    if not isinstance(formula, Words):
        return str(sympy.latex(formula, **_latex_options()))
    terms = []
    for word, coefficient in formula.terms.items():
        letters = " ".join(sympy.latex(sympy.Symbol(name)) + r"^{\top}" * t for name, t in word) or "I"
        scalar = sympy.latex(coefficient, **_latex_options())
        terms.append(letters if coefficient == 1 else rf"\left({scalar}\right) {letters}")
    return " + ".join(terms) or "0"


def _latex_options() -> dict[str, Any]:
    return {"symbol_names": _LATEX_NAMES}


def evidence_entry(evidence: Evidence) -> dict[str, Any]:
    """One kind of evidence, as plain data.

    >>> from numerics.evidence import Evidence
    >>> evidence_entry(Evidence("instance", True, "8 comparisons"))["supports"]
    True
    """
    return {
        "kind": evidence.kind,
        "supports": evidence.supports,
        "detail": evidence.detail,
        "numbers": plain_data(evidence.numbers),
        "parts": list(evidence.parts),
        "broken": list(evidence.broken),
    }


def _statement(claim: Claim) -> dict[str, Any]:
    """The formulas and the assumptions of a claim."""
    dummies = dict[Any, int]()
    texts = {name: write(formula, dummies) for name, formula in claim.stated.items()}
    return {
        "statement": [
            {"name": name, "srepr": text, "latex": formula_latex(read(text))} for name, text in texts.items()
        ],
        "assumptions": assumption_entries(claim, dummies),
    }


def assumption_entries(claim: Claim, dummies: dict[Any, int]) -> list[dict[str, Any]]:
    """The assumptions of a claim, as plain data; ``dummies`` numbers the dummy symbols.

    >>> from theory.registry import find
    >>> [entry["text"] for entry in assumption_entries(find("product-flow"), {})]
    ['W = U V^T, matrices of any shapes; gradient flow with one rate eta for both factors']
    """
    return [
        {"text": a.text, "srepr": None if a.relation is None else write(a.relation, dummies)}
        for a in claim.assumptions()
    ]


def obligations_from(claim: Claim) -> str:
    """Whether the obligations follow from the stated relations alone or take a derivation.

    >>> from theory.registry import Claim, find
    >>> obligations_from(find("loss-on-line")), obligations_from(Claim.equal("same", 1, 1))
    ('derivation', 'statement')
    """
    return "statement" if claim.obligations is Claim.obligations else "derivation"


def _claim_entry(result: ClaimResult, derivation: Sequence[int], used: Sequence[str]) -> dict[str, Any]:
    claim = result.claim
    try:
        entry = {
            "id": claim.id,
            "title": claim.title,
            "text": claim.text,
            "source": claim.source,
            **_statement(claim),
            "obligations": [obligation_entry(o) if isinstance(o, Outcome) else dict(o) for o in result.obligations],
            "obligations_from": obligations_from(claim),
            "derivation": list(derivation),
            "uses": list(used),
            "evidence": [evidence_entry(e) for e in result.evidence],
            "verdict": result.verdict,
        }
    except GradlineError as error:
        raise GradlineError(f"certificate of {claim.id}: {error}") from None
    return entry | {"sha256": claim_hash(entry)}


def certificate(report: Report) -> dict[str, Any]:
    """The certificate of a report, as plain data for JSON.

    Parameters: ``report``, from `numerics.verify`.
    Returns: a dictionary with the keys of ``docs/evidence.md``.
    Raises: `GradlineError` for a formula that can't be written.

    >>> from numerics import verify
    >>> from theory.registry import find
    >>> found = certificate(verify([find("balancedness")]))
    >>> found["claims"][0]["verdict"], found["sha256"] == content_hash(found)
    ('proved', True)
    """
    chosen = [result.claim for result in report.results]
    steps, derivation = derivations(chosen)
    used = uses(chosen, (*claims(), *reference_claims()))
    document = {
        "format": FORMAT,
        "version": VERSION,
        "seed": report.seed,
        "steps": steps,
        "claims": [_claim_entry(r, derivation[r.claim.id], used[r.claim.id]) for r in report.results],
    }
    found = versions()
    return document | {
        "sha256": content_hash(document),
        "versions": found | {"sha256": canonical_hash(found)},
        "times": {
            "written": datetime.now(UTC).isoformat(timespec="seconds"),
            "seconds": [round(result.seconds, 3) for result in report.results],
        },
    }


def dump(document: Mapping[str, Any]) -> str:
    """The text of a certificate: strict JSON with sorted keys and a final newline.

    >>> dump({"b": 1, "a": None})
    '{\\n "a": null,\\n "b": 1\\n}\\n'
    """
    return json.dumps(plain_data(document), indent=1, sort_keys=True, allow_nan=False) + "\n"


def save(report: Report, path: str | Path) -> None:
    """Write the certificate of a report, whole or not at all.

    Raises: ``OSError`` where the file can't be written; otherwise as `certificate`.

    >>> import pathlib, tempfile
    >>> from numerics import verify
    >>> from numerics.certificate_reader import load
    >>> from theory import Claim
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "evidence.json"
    >>> save(verify([Claim.equal("same", 1, 1)]), path)
    >>> load(path)["claims"][0]["verdict"]
    'proved'
    """
    write_files({Path(path): dump(certificate(report)).encode()})
