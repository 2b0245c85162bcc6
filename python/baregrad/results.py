"""What functions with several results give: tuples whose fields have names."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from baregrad._core import Tensor


class ValuesAndIndices(NamedTuple):
    """Elements, and where they were: of max, min, sort and topk."""

    values: Tensor
    indices: Tensor


class UniqueAllResult(NamedTuple):
    """Of unique_all."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCountsResult(NamedTuple):
    """Of unique_counts."""

    values: Tensor
    counts: Tensor


class UniqueInverseResult(NamedTuple):
    """Of unique_inverse."""

    values: Tensor
    inverse_indices: Tensor


class EighResult(NamedTuple):
    """Of linalg.eigh."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class QRResult(NamedTuple):
    """Of linalg.qr."""

    Q: Tensor
    R: Tensor


class SlogdetResult(NamedTuple):
    """Of linalg.slogdet."""

    sign: Tensor
    logabsdet: Tensor


class SVDResult(NamedTuple):
    """Of linalg.svd."""

    U: Tensor
    S: Tensor
    Vh: Tensor
