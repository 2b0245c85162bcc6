// All rows, and random inputs for them.
#include "tests/op_table/op_table.h"

#include <algorithm>
#include <cstring>

namespace baregrad::op_table {

const std::vector<DType>& all_dtypes() {
  static const std::vector<DType> list = {bool_,    int8,    int16,  int32,  int64,
                                          uint8,    uint16,  uint32, uint64, float16,
                                          bfloat16, float32, float64};
  return list;
}
const std::vector<DType>& numeric_dtypes() {
  static const std::vector<DType> list(all_dtypes().begin() + 1, all_dtypes().end());
  return list;
}
const std::vector<DType>& integer_dtypes() {
  static const std::vector<DType> list(all_dtypes().begin() + 1, all_dtypes().begin() + 9);
  return list;
}
const std::vector<DType>& floating_dtypes() {
  static const std::vector<DType> list(all_dtypes().begin() + 9, all_dtypes().end());
  return list;
}

Tensor sample(Rng& rng, DType dtype, const Dims& shape, double low, double high) {
  Tensor t = Tensor::allocate(shape, dtype, "sample");
  auto* at = static_cast<char*>(t.data_ptr());
  std::uniform_real_distribution<double> real(low, high);
  for (std::int64_t i = 0; i < t.numel(); ++i, at += itemsize(dtype)) {
    if (is_floating(dtype)) {
      store_scalar(real(rng), dtype, at, "sample");
    } else if (is_bool(dtype)) {
      *at = static_cast<char>(rng() & 1);
    } else {
      // Mostly small values of both signs; one in eight has random bits, to test wrapping.
      const std::uint64_t bits = rng();
      const bool extreme = (rng() & 7) == 0;
      const auto small = static_cast<std::int64_t>(bits % 19) - (is_signed_int(dtype) ? 9 : 0);
      const std::uint64_t value = extreme ? bits : static_cast<std::uint64_t>(small);
      std::memcpy(at, &value, itemsize(dtype));
    }
  }
  return t.to(default_device());
}

Tensor sample_indices(Rng& rng, const Dims& shape, std::int64_t low, std::int64_t high) {
  Tensor t = Tensor::allocate(shape, int64, "sample_indices");
  std::uniform_int_distribution<std::int64_t> pick(low, high - 1);
  for (std::int64_t i = 0; i < t.numel(); ++i) t.data<std::int64_t>()[i] = pick(rng);
  return t.to(default_device());
}

const std::vector<OpRow>& rows() {
  static const std::vector<OpRow> all = [] {
    std::vector<OpRow> out;
    for (auto part : {unary_rows(), binary_rows(), reduction_rows(), view_rows(), product_rows(),
                      irregular_rows(), fused_rows(), linalg_rows()}) {
      for (OpRow& row : part) out.push_back(std::move(row));
    }
    std::stable_sort(out.begin(), out.end(),
                     [](const OpRow& a, const OpRow& b) { return a.op < b.op; });
    return out;
  }();
  return all;
}

const OpRow* find_row(OpId op) {
  for (const OpRow& row : rows()) {
    if (row.op == op) return &row;
  }
  return nullptr;
}

}  // namespace baregrad::op_table
