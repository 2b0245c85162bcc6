"""The products that NumPy and PyTorch compute for the lab."""

from __future__ import annotations

import numpy as np
import pytest

from baregrad.lab import peer


@pytest.fixture(autouse=True)
def libraries() -> None:
    peer.hello({"threads": 1})


# The same values stand in tests/lab/test_products.cpp.
def test_operands_are_those_of_the_engine() -> None:
    assert peer.operand(1, 1, 2, "float32").tolist() == [[np.float32(-0.543509126), np.float32(-0.885713935)]]
    assert peer.operand(2, 1, 1, "float32")[0, 0] == np.float32(0.692508698)
    assert peer.operand(7, 2048, 2048, "float32")[-1, -1] == np.float32(0.568490863)
    assert peer.operand(1, 1, 1, "float64")[0, 0] == -0.54350908424423494
    assert peer.operand(7, 2048, 2048, "float64")[-1, -1] == 0.56849087428366119


def question(library: str, dtype: str, allocate: bool) -> peer.Question:
    return {"library": library, "m": 3, "n": 50, "k": 70, "dtype": dtype, "seed": 5, "allocate": allocate}


@pytest.mark.parametrize("allocate", [False, True])
@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-6), ("float64", 1e-15)])
@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_results_are_compared_with_a_wider_sum(library: str, dtype: str, tolerance: float, allocate: bool) -> None:
    pytest.importorskip(library)
    asked = question(library, dtype, allocate)
    assert 0 < peer.product(asked)["max_error"] < tolerance
    assert peer.time_product(asked)["ns"] > 0


def test_a_wrong_result_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    right = np.matmul
    monkeypatch.setattr(peer, "_product_call", lambda asked: lambda: 1.01 * right(*peer._product_operands(asked)))
    assert peer.product(question("numpy", "float32", True))["max_error"] > 1e-4
