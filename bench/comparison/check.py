"""Checks that all implementations agree before any is timed."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch

import baregrad as bg

from comparison.timing import Work


def array(value: object) -> np.ndarray:
    if isinstance(value, bg.Tensor):
        value = value.detach()
        if value.dtype in (bg.bfloat16, bg.float16):
            value = value.to(bg.float32)
        return np.asarray(value.numpy())
    if isinstance(value, torch.Tensor):
        return value.detach().to(torch.float32 if value.dtype.itemsize == 2 else value.dtype).numpy()
    return np.asarray(value)


def agreeing(works: Mapping[str, Work], rtol: float = 1e-4, atol: float = 1e-5) -> Mapping[str, Work]:
    """Calls each implementation once. This advances a training step by one."""
    results = {name: array(work()) for name, work in works.items()}
    for name, result in results.items():
        np.testing.assert_allclose(result, results["ours"], rtol=rtol, atol=atol, err_msg=name)
    return works
