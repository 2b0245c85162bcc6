// Helpers for the runners: layouts, comparison, switching the ISA, case names.
#pragma once

#include <cmath>
#include <cstring>
#include <memory>

#include <gtest/gtest.h>

#include "backends/cpu/table.h"
#include "tests/op_table/op_table.h"

namespace baregrad::op_table {

/// A row and a dtype of its main input: one test case.
struct Case {
  const OpRow* row;
  DType dtype;
};
inline std::string case_name(const ::testing::TestParamInfo<Case>& info) {
  return std::string(op_name(info.param.row->op)) + "_" + std::string(name(info.param.dtype));
}
/// Keeps gtest from printing the bytes of a Case.
inline void PrintTo(const Case& c, std::ostream* out) {
  *out << op_name(c.row->op) << ' ' << name(c.dtype);
}

inline std::vector<Case> cases(bool (*want)(const OpRow&)) {
  std::vector<Case> out;
  for (const OpRow& row : rows()) {
    if (!want(row)) continue;
    for (const DType dtype : row.dtypes) out.push_back({&row, dtype});
  }
  return out;
}

/// Runs the body once per ISA of this machine, and restores the ISA. Once on another device.
template <class F>
void for_each_isa(F body) {
  if (!default_device().is_cpu()) return body();
  const kernels::Isa before = kernels::active_isa();
  for (const kernels::Isa isa : kernels::available_isas()) {
    kernels::set_active_isa(isa);
    SCOPED_TRACE(std::string("ISA ") + std::string(kernels::isa_name(isa)));
    body();
    if (::testing::Test::HasFatalFailure()) break;
  }
  kernels::set_active_isa(before);
}

inline std::vector<char> bytes_of(const Tensor& t) {
  std::vector<char> out(t.nbytes());
  if (!out.empty()) t.copy_to(out.data());
  return out;
}

/// Same shape, dtype and bits; a NaN equals any NaN. With `relative`, floats may differ by that
/// part of their magnitude, or of `least` if it is larger.
inline void expect_same(const Tensor& got, const Tensor& want, const std::string& what,
                        double relative = 0.0, double least = 0.0) {
  ASSERT_EQ(got.dtype(), want.dtype()) << what;
  ASSERT_EQ(got.shape(), want.shape()) << what;
  const std::vector<char> a = bytes_of(got);
  const std::vector<char> b = bytes_of(want);
  if (a == b) return;
  const std::size_t width = itemsize(got.dtype());
  for (std::size_t i = 0; i < a.size(); i += width) {
    if (std::memcmp(&a[i], &b[i], width) == 0) continue;
    const double x = load_scalar(&a[i], got.dtype()).to_double();
    const double y = load_scalar(&b[i], want.dtype()).to_double();
    if (is_floating(got.dtype()) && std::isnan(x) && std::isnan(y)) continue;
    if (is_floating(got.dtype()) && std::fabs(x - y) <= relative * std::fmax(std::fabs(y), least)) {
      continue;
    }
    FAIL() << what << ": element " << i / width << " is " << x << ", not " << y;
  }
}

/// The elements of `t` in borrowed memory that starts `bytes` after a 64-byte boundary; a copy
/// where another device than the CPU is tested.
inline Tensor misaligned(const Tensor& t, std::size_t bytes) {
  auto buffer = std::make_shared<std::vector<char>>(t.nbytes() + 128 + bytes);
  const auto start = reinterpret_cast<std::uintptr_t>(buffer->data());
  char* data = buffer->data() + (64 - start % 64) % 64 + bytes;
  if (t.numel() != 0) t.copy_to(data);
  return Tensor::from_blob(data, t.shape(), t.dtype(), [buffer](void*) {}).to(default_device());
}

enum class LayoutKind { Strided, Transposed, Reversed, Offset };
inline constexpr LayoutKind kLayouts[] = {LayoutKind::Strided, LayoutKind::Transposed,
                                          LayoutKind::Reversed, LayoutKind::Offset};

/// The same elements in other memory order.
inline Tensor relaid(const Tensor& t, LayoutKind kind) {
  if (t.ndim() == 0) return t;
  switch (kind) {
    case LayoutKind::Strided: {
      Dims wide = t.shape();
      for (std::int64_t& size : wide) size = size * 2 + 1;
      Tensor view = zeros(wide, t.dtype());
      for (int i = 0; i < t.ndim(); ++i) view = slice(view, i, {1, {}, 2});
      copy_(view, t);
      return view;
    }
    case LayoutKind::Transposed: {
      Dims order;
      for (int i = t.ndim() - 1; i >= 0; --i) order.push_back(i);
      return permute_dims(clone(permute_dims(t, order)), order);
    }
    case LayoutKind::Reversed:
      return flip(clone(flip(t)));
    case LayoutKind::Offset:
      break;
  }
  Tensor flat = empty({t.numel() + 3}, t.dtype());
  Tensor view = reshape(narrow(flat, 0, 3, t.numel()), t.shape());
  copy_(view, t);
  return view;
}

}  // namespace baregrad::op_table
