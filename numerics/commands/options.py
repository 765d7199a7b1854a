"""The options that describe task and model, shared by the commands, and how they become an `AttentionModel`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from numerics.commands.values import choice, integer, rational, root

if TYPE_CHECKING:
    from theory.model import AttentionModel
    from theory.task import TokenTask

__all__ = ["ModelOptions", "option", "option_name", "with_options"]

_TASK, _MODEL = "Task", "Model"


def option(*names: str, panel: str, metavar: str, text: str) -> Any:
    """An option that takes one value, read by hand later."""
    return typer.Option(*names, rich_help_panel=panel, metavar=metavar, help=text, show_default=False)


Classes = Annotated[
    str | None, option("--classes", "-M", panel=_TASK, metavar="M", text="Number of classes, at least 2.")
]
Block = Annotated[str | None, option("--block", "-b", panel=_TASK, metavar="b", text="Informative tokens per class.")]
Queries = Annotated[
    str | None, option("--queries", "-K", panel=_TASK, metavar="K", text="Query tokens (of each class if per_class).")
]
Noise = Annotated[
    str | None, option("--noise", "-N", panel=_TASK, metavar="N|oo", text="Noise tokens; oo: zero embedding.")
]
Informative = Annotated[
    str | None, option("--informative-slots", "-m", panel=_TASK, metavar="m", text="Informative slots of a sequence.")
]
NoiseSlots = Annotated[
    str | None, option("--noise-slots", "-n", panel=_TASK, metavar="n", text="Noise slots of a sequence.")
]
Kind = Annotated[
    str | None,
    option("--query-kind", panel=_TASK, metavar="KIND", text="shared (default) or per_class."),
]
Scale = Annotated[
    str | None,
    option(
        "--score-scale",
        "--gamma",
        panel=_TASK,
        metavar="gamma",
        text="Factor of the scores, a number such as 1/8; 1 by default.",
    ),
]
Model = Annotated[
    str | None,
    option(
        "--model",
        panel=_MODEL,
        metavar="NAME",
        text="CACO (default), CAFO, FACO or FAFO: attention, then output, collapsed or factorized.",
    ),
]
QK = Annotated[
    str | None, option("--qk", panel=_MODEL, metavar="FORM", text="Query-key circuit: collapsed or factorized.")
]
OV = Annotated[
    str | None, option("--ov", panel=_MODEL, metavar="FORM", text="Output-value circuit: collapsed or factorized.")
]
ImbalanceQK = Annotated[
    str | None,
    option("--imbalance-qk", panel=_MODEL, metavar="c_QK", text="c in U^T U - V^T V = c P, query-key; 0 by default."),
]
ImbalanceOV = Annotated[
    str | None,
    option("--imbalance-ov", panel=_MODEL, metavar="c_OV", text="The same, output-value."),
]
WidthQK = Annotated[
    str | None,
    option("--width-qk", panel=_MODEL, metavar="INT", text="Inner width of query-key, at least the rank of its line."),
]
WidthOV = Annotated[
    str | None,
    option("--width-ov", panel=_MODEL, metavar="INT", text="Inner width of output-value, at least M - 1."),
]

#: Field -> (letter, least value, meaning).
_SIZES = {
    "classes": ("M", 2, "number of classes"),
    "block": ("b", 1, "informative tokens per class"),
    "queries": ("K", 1, "query tokens"),
    "noise": ("N", 1, "noise tokens"),
    "informative_slots": ("m", 1, "informative slots of a sequence"),
    "noise_slots": ("n", 1, "noise slots of a sequence"),
}
_INFINITE = ("oo", "inf", "infinity")


def option_name(field: str) -> str:
    """The option of a field, such as ``--noise-slots``."""
    return "--" + field.replace("_", "-")


@dataclass(frozen=True)
class ModelOptions:
    """Task and model as typed, names as in `TokenTask` and `AttentionModel`; ``None`` where nothing was given."""

    classes: Classes = None
    block: Block = None
    queries: Queries = None
    noise: Noise = None
    informative_slots: Informative = None
    noise_slots: NoiseSlots = None
    query_kind: Kind = None
    score_scale: Scale = None
    model: Model = None
    qk: QK = None
    ov: OV = None
    imbalance_qk: ImbalanceQK = None
    imbalance_ov: ImbalanceOV = None
    width_qk: WidthQK = None
    width_ov: WidthOV = None

    def build(self, *, numbers: bool = False) -> AttentionModel:
        """Return the model; with ``numbers`` every size must have a value.

        Raises: ``ValueError`` naming the option and what it expects.
        """
        forms = self._forms()
        sizes = {field: self._size(field, numbers) for field in _SIZES}
        scale = self._symbol_or_number("score_scale", "gamma", numbers)
        imbalances = {f: self._symbol_or_number(f, f"c_{f[-2:].upper()}", numbers) for f in _IMBALANCES}
        for circuit, form in forms.items():
            self._check_collapsed(circuit, form)
        widths = {f: self._width(f) for f in ("width_qk", "width_ov")}
        kind = choice("--query-kind", (self.query_kind or "shared").replace("-", "_"), ("shared", "per_class"))
        return _model(sizes, kind, scale, forms | imbalances | widths)

    def _forms(self) -> dict[str, str]:
        if self.model is not None:
            for circuit in ("qk", "ov"):
                if getattr(self, circuit) is not None:
                    raise ValueError(f"--model and --{circuit} are both given; expected one of them")
            name = choice("--model", self.model.upper(), ("CACO", "CAFO", "FACO", "FAFO"))
            letters = {"C": "collapsed", "F": "factorized"}
            return {"qk": letters[name[0]], "ov": letters[name[2]]}
        forms = ("collapsed", "factorized")
        return {c: choice(f"--{c}", getattr(self, c) or forms[0], forms) for c in ("qk", "ov")}

    def _size(self, field: str, numbers: bool) -> Any:
        letter, least, meaning = _SIZES[field]
        text = getattr(self, field)
        infinite = ", or oo" if field == "noise" else ""
        if text is None or text == letter:
            if numbers:
                wanted = f"give {option_name(field)} an integer of at least {least}{infinite}"
                raise ValueError(f"no value for {letter} ({meaning}): {wanted}")
            return _symbol(letter)
        if field == "noise" and text.lower() in _INFINITE:
            return float("inf")
        symbol = "" if numbers else f", or {letter} for the symbol"
        return integer(option_name(field), text, least, f"an integer of at least {least}{infinite}{symbol}")

    def _symbol_or_number(self, field: str, name: str, numbers: bool) -> Any:
        text, given = getattr(self, field), option_name(field)
        if text is None:
            return 1 if field == "score_scale" else 0
        if text == name:
            if numbers:
                raise ValueError(f"no value for {name}: give {given} a number")
            return _symbol(name)
        symbol = "" if numbers else f", or {name} for the symbol"
        if field == "score_scale" and "sqrt" in text:
            return root(given, text, f"a number such as 1/8 or 1/sqrt(50){symbol}")
        number = rational(given, text, f"a rational number such as 0.125 or 1/8{symbol}")
        if field == "score_scale" and number <= 0:
            raise ValueError(f"{given}={text}: expected a number above 0{symbol}")
        return number

    def _check_collapsed(self, circuit: str, form: str) -> None:
        for field in (f"imbalance_{circuit}", f"width_{circuit}"):
            text = getattr(self, field)
            if form == "collapsed" and text is not None:
                raise ValueError(
                    f"{option_name(field)}={text}: the {circuit} circuit is collapsed and has no factors; "
                    f"add --{circuit} factorized or leave it out"
                )

    def _width(self, field: str) -> int | None:
        text = getattr(self, field)
        return None if text is None else integer(option_name(field), text, 1)


_IMBALANCES = ("imbalance_qk", "imbalance_ov")


def _symbol(name: str) -> Any:
    from theory.symbols import SYMBOLS

    return SYMBOLS[name].symbol


def _model(sizes: dict[str, Any], kind: str, scale: Any, options: dict[str, Any]) -> AttentionModel:
    from theory.model import AttentionModel
    from theory.task import TokenTask

    task: TokenTask = TokenTask(**sizes, query_kind=kind, score_scale=scale)  # type: ignore[arg-type]
    return AttentionModel(task, **options)


def with_options(command: Callable[..., int]) -> Callable[..., int]:
    """Spread each argument of a command that is a dataclass of options into these; the command gets it filled."""
    hints = get_type_hints(command, include_extras=True)
    found = inspect.signature(command).parameters
    groups = {name: hints[name] for name in found if is_dataclass(hints[name])}
    parameters: list[inspect.Parameter] = []
    keyword = inspect.Parameter.KEYWORD_ONLY
    for name, parameter in found.items():
        if name not in groups:
            parameters.append(parameter.replace(kind=keyword, annotation=hints[name]))
            continue
        own = get_type_hints(groups[name], include_extras=True)
        parameters += [
            inspect.Parameter(f.name, keyword, default=f.default, annotation=own[f.name]) for f in fields(groups[name])
        ]

    @functools.wraps(command)
    def wrapper(**given: Any) -> int:
        filled = {name: kind(**{f.name: given.pop(f.name) for f in fields(kind)}) for name, kind in groups.items()}
        return command(**filled, **given)

    wrapper.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    wrapper.__annotations__ = {p.name: p.annotation for p in parameters}
    return wrapper
