// Tensors for the seeds, and a comparison of two lists of them, bit for bit.
#pragma once

#include <string>

#include "baregrad/state.h"
#include "io/output.h"
#include "tests/fuzz_files/format.h"

namespace baregrad::fuzz {

/// Elements in row-major order. Without ops: the fuzzers are built from core/ and io/ only.
inline std::string raw(const Tensor& tensor) {
  std::string out;
  io::write_elements(tensor, [&](std::string_view part) { out += part; });
  return out;
}

inline void require_same(const Tensor& a, const Tensor& b) {
  require(a.dtype() == b.dtype() && a.shape() == b.shape(),
          "dtype or shape changed when written and read again");
  require(raw(a) == raw(b), "elements changed when written and read again");
}

inline void require_same(const NamedTensors& a, const NamedTensors& b) {
  require(a.size() == b.size(), "tensors got lost when written and read again");
  for (std::size_t i = 0; i < a.size(); ++i) {
    require(a[i].name == b[i].name, "a name changed when written and read again");
    require_same(a[i].tensor, b[i].tensor);
  }
}

/// A small tensor of each dtype.
inline NamedTensors one_of_each(bool bfloat) {
  NamedTensors out;
  for (int i = 0; i < kNumDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (dtype == DType::BFloat16 && !bfloat) continue;
    const Tensor tensor = Tensor::allocate({1, i % 3}, dtype, "one_of_each");
    auto* bytes = static_cast<std::uint8_t*>(tensor.data_ptr());
    for (std::size_t k = 0; k < tensor.nbytes(); ++k) bytes[k] = static_cast<std::uint8_t>(k & 1);
    out.push_back({std::string(name(dtype)), tensor});
  }
  return out;
}

}  // namespace baregrad::fuzz
