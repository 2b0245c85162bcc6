// The GEMM kernels of one instruction set, put together per dtype.
#pragma once

#include "backends/cpu/gemm/isa/finish.h"
#include "backends/cpu/gemm/isa/tile.h"
#include "backends/cpu/simd/families.h"

namespace baregrad::kernels::HWY_NAMESPACE {

/// Tiles of T; packing and finishing for dtype S.
template <class S, class T>
BG_INLINE GemmKernels gemm_kernels(const GemmKernels& tiles) {
  GemmKernels kernels = tiles;
  kernels.direct = std::is_same_v<S, T>;
  kernels.masked = Ring<T>::kMasked;
  kernels.pack = &pack<S, T>;
  kernels.finish = &finish<S, T>;
  return kernels;
}

template <class T>
BG_INLINE GemmKernels gemm_tiles() {
  GemmKernels kernels;
  kernels.mr = kTileRows<T>;
  kernels.lanes = Ring<T>::kLanes;
  kernels.nr = kTileVecs * Ring<T>::kLanes;
  kernels.item = sizeof(T);
  set_tiles<T, kTileRows<T>>(kernels);
  return kernels;
}

template <class S>
BG_INLINE GemmKernels& gemm_entry(KernelTable& table) {
  return table.gemm[static_cast<int>(DTypeOf<S>::value)];
}

}  // namespace baregrad::kernels::HWY_NAMESPACE
