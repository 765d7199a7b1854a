"""Check a certificate again, without deriving anything.

Hashes are compared, obligations are read back and decided anew, and verdicts follow from the new answers;
formulas of claims of the theory must be those of `theory.claims`. Numerical evidence is not gathered again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, cast

from numerics.certificates import (
    assumption_entries,
    canonical_hash,
    claim_hash,
    content_hash,
    evidence_entry,
    formula_latex,
    obligations_from,
    versions,
)
from numerics.checks.enclosure import is_scalar
from numerics.checks.gather import Evidence, symbolic_evidence
from numerics.evidence import judge
from numerics.obligations import outcome_entry
from numerics.recorded_evidence import evidence_problems, uses_problems
from theory.errors import GradlineError
from theory.reader import read
from theory.registry import Claim, Obligation, Outcome, Verdict, claims, decide, reference_claims
from theory.serialize import write
from theory.words import Words

__all__ = ["ClaimRecheck", "Recheck", "recheck"]

Progress = Callable[[int, int, str], None]
Entry = Mapping[str, Any]
_SHOWN = 160


@dataclass(frozen=True)
class ClaimRecheck:
    """A claim of a certificate: the recorded verdict, the number of its obligations, and what does not match."""

    id: str
    verdict: Verdict
    obligations: int
    problems: tuple[str, ...]
    seconds: float


@dataclass(frozen=True)
class Recheck:
    """What a certificate is worth: the results claim by claim, and what does not match in the file as a whole.

    ``notes`` says which versions differ from those of this run, and what can't be checked without deriving it.
    """

    results: tuple[ClaimRecheck, ...]
    problems: tuple[str, ...]
    notes: tuple[str, ...]
    seed: int

    @property
    def holds(self) -> bool:
        """Whether everything matches."""
        return not self.problems and not any(r.problems for r in self.results)

    @property
    def exit_code(self) -> int:
        """0 all well, 1 something does not match or a claim is refuted, 3 something is undecided."""
        verdicts = {r.verdict for r in self.results}
        return 1 if not self.holds or "refuted" in verdicts else 3 if "undecided" in verdicts else 0


def recheck(document: Entry, progress: Progress | None = None) -> Recheck:
    """Check a certificate again, without deriving anything.

    Parameters: ``document``, from `numerics.certificate_reader.load`; ``progress``, called with the number done, the
    number in all and the id at hand.
    Returns: a `Recheck`.
    Raises: ``ValueError`` for an obligation or a formula whose hash is right and that can't be read.

    >>> from numerics import verify
    >>> from numerics.certificates import certificate
    >>> from theory.registry import find
    >>> found = certificate(verify([find("balancedness")]))
    >>> recheck(found).holds, recheck(found | {"seed": 7}).problems
    (True, ('the file was changed: its sha256 does not match its content',))
    """
    known = {claim.id: claim for claim in (*claims(), *reference_claims())}
    entries = document["claims"]
    results = []
    for done, entry in enumerate(entries):
        if progress is not None:
            progress(done, len(entries), entry["id"])
        results.append(_recheck_claim(entry, known.get(entry["id"]), {*known, *(e["id"] for e in entries)}))
    if progress is not None:
        progress(len(entries), len(entries), "")
    notes = (*_notes(document), *_underived(entries, known))
    return Recheck(tuple(results), tuple(_file_problems(document)), notes, document["seed"])


def _file_problems(document: Entry) -> Iterator[str]:
    if not document["claims"]:
        yield "it holds no claim"
    if document["sha256"] != content_hash(document):
        yield "the file was changed: its sha256 does not match its content"
    stated = {key: value for key, value in document["versions"].items() if key != "sha256"}
    if document["versions"].get("sha256") != canonical_hash(stated):
        yield "the versions were changed: their sha256 does not match"


def _notes(document: Entry) -> Iterator[str]:
    for package, here in versions().items():
        there = document["versions"].get(package, "unknown")
        if there != here:
            yield f"written with {package} {there}, checked with {here}"


def _underived(entries: Sequence[Entry], known: Mapping[str, Claim]) -> Iterator[str]:
    for entry in entries:
        if entry["id"] not in known and entry["obligations_from"] == "derivation":
            yield f"{entry['id']} is no claim of the theory: that its obligations say what it states is not checked"


def _recheck_claim(entry: Entry, known: Claim | None, ids: Collection[str]) -> ClaimRecheck:
    begin = time.perf_counter()
    if entry["sha256"] != claim_hash(entry):
        problems: tuple[str, ...] = ("the claim was changed: its sha256 does not match what it states",)
    else:
        problems = tuple(_problems(entry, known, ids))
    seconds = time.perf_counter() - begin
    return ClaimRecheck(entry["id"], entry["verdict"], len(entry["obligations"]), problems, seconds)


def _problems(entry: Entry, known: Claim | None, ids: Collection[str]) -> Iterator[str]:
    stated = {f["name"]: _read(f["srepr"], f"formula {f['name']!r} of {entry['id']}") for f in entry["statement"]}
    for formula in entry["statement"]:
        if formula["latex"] != formula_latex(stated[formula["name"]]):
            yield f"{formula['name']}: the LaTeX is not that of the formula"
    if known is not None:
        yield from _against_theory(entry, stated, known)
    elif entry["source"] in {claim.source for claim in (*claims(), *reference_claims())}:
        yield f"no claim of the theory is named {entry['id']}; expected another source than {entry['source']}"
    yield from uses_problems(entry, ids)
    given = [a["srepr"] for a in entry["assumptions"] if a["srepr"] is not None]
    for text in given:
        _read(text, f"assumption of {entry['id']}")
    if entry["obligations_from"] == "statement":
        yield from _against_statement(entry, stated, given)
    elif known is None:
        yield from _refuted(entry, stated, given)
    outcomes = tuple(_outcome(o, entry["id"]) for o in entry["obligations"])
    yield from evidence_problems(entry, sum(is_scalar(o.obligation) for o in outcomes))
    yield from _against_decisions(entry, outcomes)


_read_once = lru_cache(maxsize=4096)(read)


def _read(text: str, what: str) -> Any:
    try:
        return _read_once(text)
    except ValueError as error:
        raise ValueError(f"{what}: {error}") from None


def _against_theory(entry: Entry, stated: Mapping[str, Any], known: Claim) -> Iterator[str]:
    """The claim of the theory with this id states and assumes the same, in words and formulas."""
    for key in ("title", "text", "source"):
        if entry[key] != getattr(known, key):
            yield f"the {key} is not that of the claim {known.id} of the theory"
    if list(stated) != list(known.stated):
        yield f"it states {', '.join(stated) or 'nothing'}; the claim of the theory states {', '.join(known.stated)}"
        return
    if entry["obligations_from"] != obligations_from(known):
        yield f"its obligations come from the {obligations_from(known)}, not from the {entry['obligations_from']}"
    dummies = dict[Any, int]()
    if entry["assumptions"] != assumption_entries(known, dict[Any, int]()):
        yield f"the assumptions are not those of the claim {known.id} of the theory"
    for name, formula in known.stated.items():
        if read(write(formula, dummies)) != stated[name]:
            yield f"{name}: the formula is not that of the claim {known.id} of the theory"


def _against_statement(entry: Entry, stated: Mapping[str, Any], given: list[str]) -> Iterator[str]:
    """Obligations that follow from the stated relations alone are these."""
    try:
        owed = [(o.name, o.relation, o.value) for o in Claim(entry["id"], stated).obligations(stated)]
    except (TypeError, AttributeError):
        yield "its formulas are no relations, from which obligations could follow"
        return
    found = [(o["name"], o["relation"], _read(o["srepr"], o["name"])) for o in entry["obligations"]]
    whole = all(o["decisive"] and not o["hypotheses"] and o["assumptions"] == given for o in entry["obligations"])
    if owed != found or not whole:
        yield "the obligations do not follow from the stated relations"


def _refuted(entry: Entry, stated: Mapping[str, Any], given: list[str]) -> Iterator[str]:
    """Stated relations that are false, whatever the obligations are."""
    try:
        owed = tuple(Claim(entry["id"], stated).obligations(stated))
    except (TypeError, AttributeError):
        return
    rules = tuple(_read_once(text) for text in given)
    for obligation in owed:
        try:
            answer = decide(replace(obligation, assumptions=rules)).answer
        except (GradlineError, ValueError, TypeError):
            continue
        if answer == "refuted":
            yield f"{obligation.name}: it is stated, and refuted"


@lru_cache(maxsize=4096)
def _decided(
    value: str, relation: str, assumptions: tuple[str, ...], decisive: bool, hypotheses: tuple[str, ...]
) -> Outcome:
    given, rules = (tuple(_read_once(text) for text in texts) for texts in (assumptions, hypotheses))
    return decide(Obligation("", _read_once(value), cast(Any, relation), given, decisive, rules))


def _outcome(owed: Entry, claim_id: str) -> Outcome:
    """Read an obligation and decide it; what can't be decided is undecided and says why."""
    what = f"obligation {owed['name']!r} of {claim_id}"
    for text in (owed["srepr"], *owed["assumptions"], *owed["hypotheses"]):
        _read(text, what)
    assumptions, hypotheses = tuple(owed["assumptions"]), tuple(owed["hypotheses"])
    try:
        found = _decided(owed["srepr"], owed["relation"], assumptions, owed["decisive"], hypotheses)
    except (GradlineError, ValueError, TypeError, AttributeError, RecursionError) as error:
        return Outcome(Obligation(owed["name"], None), "undecided", f"it can't be decided: {error}")
    return replace(found, obligation=replace(found.obligation, name=owed["name"]))


def _against_decisions(entry: Entry, outcomes: tuple[Outcome, ...]) -> Iterator[str]:
    """Answers, symbolic evidence and verdict are what the new decisions give."""
    for owed, outcome in zip(entry["obligations"], outcomes, strict=True):
        for key, found in outcome_entry(outcome).items():
            if owed[key] != found:
                yield f"{owed['name']}: {key} recorded {_short(owed[key])}, found {_short(found)}"
    evidence = [_evidence(e) for e in entry["evidence"]]
    symbolic = symbolic_evidence(outcomes)
    if [e for e in entry["evidence"] if e["kind"] == "symbolic"] != [evidence_entry(symbolic)]:
        yield f"symbolic evidence: found {_short(symbolic.detail)}"
    try:
        verdict = judge(_ANY, [symbolic, *(e for e in evidence if e.kind != "symbolic")])
    except GradlineError as error:
        yield str(error)
        return
    if verdict != entry["verdict"]:
        yield f"verdict recorded {entry['verdict']}, found {verdict}"


_ANY = Claim("the recorded evidence", {})


def _evidence(entry: Entry) -> Evidence:
    parts, broken = tuple(entry["parts"]), tuple(entry["broken"])
    return Evidence(entry["kind"], entry["supports"], entry["detail"], entry["numbers"], parts, broken)


def _short(value: Any) -> str:
    text = str(value) if not isinstance(value, Words) else repr(value)
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "...")
