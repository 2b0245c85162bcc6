"""Results of functions with several values: tuples with named fields."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from baregrad._core import Tensor


class ValuesAndIndices(NamedTuple):
    """Elements and their positions: the result of max, min, sort and topk."""

    values: Tensor
    indices: Tensor


class UniqueAllResult(NamedTuple):
    """The result of unique_all."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCountsResult(NamedTuple):
    """The result of unique_counts."""

    values: Tensor
    counts: Tensor


class UniqueInverseResult(NamedTuple):
    """The result of unique_inverse."""

    values: Tensor
    inverse_indices: Tensor


class EighResult(NamedTuple):
    """The result of linalg.eigh."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class QRResult(NamedTuple):
    """The result of linalg.qr."""

    Q: Tensor
    R: Tensor


class SlogdetResult(NamedTuple):
    """The result of linalg.slogdet."""

    sign: Tensor
    logabsdet: Tensor


class SVDResult(NamedTuple):
    """The result of linalg.svd."""

    U: Tensor
    S: Tensor
    Vh: Tensor
