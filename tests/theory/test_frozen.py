"""Read-only mappings: by symbol or by name, and a missing key is told with the nearest."""

from __future__ import annotations

import pytest

from theory.frozen import FrozenMap
from theory.symbols import M, mu_OV, mu_QK

FOUND = FrozenMap({mu_OV: 1, mu_QK: None})


def test_keys_and_names_alike() -> None:
    assert (FOUND[mu_OV], FOUND["mu_OV"], FOUND.get("mu_QK", 7)) == (1, 1, None)
    assert mu_OV in FOUND
    assert "mu_QK" in FOUND


def test_what_is_missing() -> None:
    assert M not in FOUND
    assert "mu" not in FOUND
    assert FOUND.get("mu", 7) == 7
    with pytest.raises(KeyError, match="mu_0V: expected one of mu_OV, mu_QK; did you mean mu_OV"):
        FOUND["mu_0V"]


def test_nothing_can_be_changed() -> None:
    with pytest.raises(AttributeError, match="read-only"):
        FOUND.other = 1
    assert FOUND.map(str)["mu_OV"] == "1"
    assert hash(FOUND) == hash(FrozenMap({mu_QK: None, mu_OV: 1}))
