"""Wrong versions of an expression in matrices: coefficients, signs, words and letters changed one at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from theory.mutation.formulas import Change, formula_changes
from theory.word_instances import letters
from theory.words import Words

__all__ = ["word_changes"]

Word = tuple[tuple[str, bool], ...]


def _text(word: Word) -> str:
    return " ".join(name + "^T" if transposed else name for name, transposed in word) or "I"


def _letters(word: Word, names: tuple[str, ...]) -> Iterator[tuple[str, str, Word]]:
    for i, (name, transposed) in enumerate(word):
        before, after = word[:i], word[i + 1 :]
        shown = _text((word[i],))
        yield "letter transposed", f"{shown} transposed", (*before, (name, not transposed), *after)
        yield "factor dropped", f"{shown} dropped", before + after
        for other in names:
            yield "factor added", f"{other} after {shown}", (*before, word[i], (other, False), *after)
            if other != name:
                yield "letter exchanged", f"{shown} -> {other}", (*before, (other, transposed), *after)
        if after:
            swapped = (*before, after[0], word[i], *after[1:])
            yield "order of letters", f"{shown} and {_text(after[:1])} in the other order", swapped


def _all(words: Words) -> Iterator[tuple[str, str, Words]]:
    names = tuple(sorted(letters(words)))
    yield "sign", "the sign of the expression", (-1) * words
    yield "coefficient", "the expression times 2", 2 * words
    yield "letter transposed", "the expression transposed", words.T
    for word, coefficient in words.terms.items():
        term = Words.of({word: coefficient})
        rest, shown = words - term, f"in the term {_text(word)}"
        yield "term dropped", f"dropped {shown}".replace("in the term", "the term"), rest
        for change in formula_changes(coefficient):
            yield change.kind, f"{change.description}, {shown}", rest + Words.of({word: change.formula})
        yield "coefficient", f"doubled {shown}", rest + 2 * term
        for kind, text, other in _letters(word, names):
            yield kind, f"{text} {shown}", rest + Words.of({other: coefficient})
        yield "term transposed", f"transposed {shown}", rest + term.T
    if len(names) == 2:
        exchanged = {names[0]: names[1], names[1]: names[0]}
        turned = {tuple((exchanged[a], t) for a, t in w): c for w, c in words.terms.items()}
        yield "letters exchanged", f"{names[0]} and {names[1]} exchanged", Words.of(turned)


def _fits(words: Words) -> bool:
    """Whether the column of ones stands only where a column fits: ``1^T`` first, ``1`` last."""
    return all(
        name != "1" or i == (0 if transposed else len(word) - 1)
        for word in words.terms
        for i, (name, transposed) in enumerate(word)
    )


def word_changes(words: Words) -> Iterator[Change]:
    """The wrong versions of an expression in matrices, each once.

    Parameters: ``words``, an expression. Yields: `Change`.

    >>> from theory.words import matrix
    >>> U, V = matrix("U"), matrix("V")
    >>> [c.description for c in word_changes(U @ V.T)][:3]
    ['the sign of the expression', 'the expression times 2', 'the expression transposed']
    """
    seen: set[Any] = {words}
    for kind, text, changed in _all(words):
        if changed not in seen and changed.terms and _fits(changed):
            seen.add(changed)
            yield Change(kind, text, changed)
