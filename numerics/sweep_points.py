"""Functions to sweep: a point of plain numbers and names becomes a stopping state or a training run.

Source: arXiv 2608.06776, stopping curves and Fig. 2.
"""

from __future__ import annotations

from typing import Any

__all__ = ["model_of", "stopping_point", "training_point"]


def model_of(
    *,
    model: str = "CACO",
    classes: int,
    block: int,
    queries: int,
    noise: int | str,
    informative_slots: int,
    noise_slots: int,
    query_kind: str = "shared",
    score_scale: str | int = 1,
) -> Any:
    """The `AttentionModel` of plain values: ``noise`` may be ``"oo"``, ``score_scale`` an exact number such as
    ``"1/8"``.

    >>> model_of(model="FACO", classes=2, block=1, queries=1, noise="oo", informative_slots=1, noise_slots=1).qk
    'factorized'
    """
    from sympy import Rational, oo

    from numerics.sizes import check_choice
    from theory.model import PARAMETERIZATIONS, AttentionModel
    from theory.task import TokenTask

    qk, ov = PARAMETERIZATIONS[check_choice("model", model, PARAMETERIZATIONS)]
    check_choice("query_kind", query_kind, ("shared", "per_class"))
    task = TokenTask(
        classes,
        block,
        queries,
        oo if noise == "oo" else noise,
        informative_slots,
        noise_slots,
        query_kind=query_kind,  # type: ignore[arg-type]
        score_scale=Rational(score_scale),
    )
    return AttentionModel(task, qk=qk, ov=ov)


def stopping_point(
    *, loss: float, eta_OV: float = 1.0, eta_QK: float, mu_OV: float = 0.0, mu_QK: float = 0.0, **sizes: Any
) -> dict[str, float]:
    """The state at a loss, and the time it takes (`numerics.stopping_state`).

    Parameters: ``loss``; rates and start; ``sizes`` as for `model_of`. Returns: coordinates, attention and time by
    name.

    >>> sizes = dict(classes=3, block=2, queries=2, noise="oo", informative_slots=2, noise_slots=1)
    >>> round(stopping_point(loss=0.01, eta_QK=5, **sizes)["attention"], 4)
    0.9612
    """
    from numerics.stopping import stopping_state

    rates, start = {"eta_OV": eta_OV, "eta_QK": eta_QK}, {"mu_OV": mu_OV, "mu_QK": mu_QK}
    found = stopping_state(model_of(**sizes), rates, start, loss=loss, time=True)
    return {name: float(getattr(found, name)) for name in ("mu_OV", "mu_QK", "attention", "t")}


def training_point(
    *,
    model: str = "CACO",
    eta_OV: float = 0.01,
    eta_QK: float = 0.01,
    optimizer: str = "sgd",
    momentum: float = 0.0,
    weight_decay: float = 0.0,
    seed: int = 0,
    epochs: int,
    steps: int,
    batch: int = 32,
    length: int = 64,
    start_qk: float | None = None,
    start_ov: float | None = None,
) -> dict[str, list[float]]:
    """Train the paper's attention model on sampled sequences and record loss and attention after each epoch.

    Parameters: ``model``, one of the four parameterizations; rates; ``optimizer`` (``"sgd"`` or ``"adam"``) with its
    options; ``seed``; ``epochs`` of ``steps`` batches of ``batch`` sequences of a ``length``; ``start_qk`` and
    ``start_ov`` as for `numerics.training.TrainedAttention`.

    Returns: ``loss``, the mean of each epoch, ``attention``, the mean mass on informative tokens of 1000 fresh
    sequences after it, and ``share``, the share of them above one half: a record for
    `numerics.measures.at_equal_loss`.

    Source: arXiv 2608.06776, Fig. 2.

    >>> run = training_point(epochs=2, steps=2, batch=4)
    >>> len(run["loss"]), all(0 < x < 1 for x in run["attention"])
    (2, True)
    """
    import dataclasses

    from numerics import training
    from numerics.measures import share_above
    from numerics.sizes import check_choice
    from theory.model import PARAMETERIZATIONS

    qk, ov = PARAMETERIZATIONS[check_choice("model", model, PARAMETERIZATIONS)]
    kind: Any = check_choice("optimizer", optimizer, ("sgd", "adam"))
    data = training.SequenceData(length=length)
    net = training.TrainedAttention(data, qk=qk, ov=ov, start_qk=start_qk, start_ov=start_ov)
    rates = {"OV": training.Schedule(eta_OV), "QK": training.Schedule(eta_QK)}
    rule = training.Optimizer(kind, momentum=momentum, weight_decay=weight_decay)
    plan = training.Plan(epochs, steps, batch, rates, rule)
    fresh = next(iter(training.fresh_batches(net, dataclasses.replace(plan, batch=1000), [seed], 1).steps()))
    attention: list[float] = []
    share: list[float] = []

    def watch(_epoch: int, parameters: Any) -> None:
        mass = net.measure(parameters, fresh).attention[0].astype(float)
        attention.append(float(mass.mean()))
        share.append(float(share_above(mass, 0.5)))

    run = training.train(net, plan, [seed], watch=watch)
    return {"loss": run.loss[:, 0].tolist(), "attention": attention, "share": share}
