// Helpers for tests of the fused ops.
#pragma once

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "backends/cpu/table.h"
#include "baregrad/baregrad.h"
#include "baregrad/ops_fused.h"
#include "tests/isas.h"
#include "tests/ops/support.h"

namespace baregrad {

using autograd::Tensors;

/// Element i is ((i * step) mod count - count / 2) / 4: the golden numbers below were computed by
/// torch in float64 from the same formula.
inline Tensor pattern(const Dims& shape, int step, int count) {
  Tensor t = empty(shape, DType::Float64);
  for (std::int64_t i = 0; i < t.numel(); ++i) {
    t.data<double>()[i] = static_cast<double>(i * step % count - count / 2) / 4;
  }
  return t;
}
inline Tensor leaf(const Tensor& t) { return t.detach().requires_grad_(); }

inline void expect_near(const Tensor& got, const std::vector<double>& want, const char* what,
                        double tolerance = 1e-10) {
  const std::vector<double> values = astype(got, DType::Float64).to_vector<double>();
  ASSERT_EQ(values.size(), want.size()) << what;
  for (std::size_t i = 0; i < want.size(); ++i) {
    if (std::isnan(want[i])) {
      EXPECT_TRUE(std::isnan(values[i])) << what << ", element " << i;
    } else if (std::isinf(want[i])) {
      EXPECT_EQ(values[i], want[i]) << what << ", element " << i;
    } else {
      EXPECT_NEAR(values[i], want[i], tolerance * std::fmax(1, std::fabs(want[i])))
          << what << ", element " << i;
    }
  }
}

/// The call throws an Error whose message contains every part.
template <class Error>
void expect_error_naming(const std::function<void()>& call, const std::vector<std::string>& parts) {
  try {
    call();
    FAIL() << "no error";
  } catch (const Error& error) {
    for (const std::string& part : parts) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  }
}

/// On every ISA of this machine, including the reference.
inline void on_every_isa(const std::function<void()>& body) {
  const kernels::Isa before = kernels::active_isa();
  for (const kernels::Isa isa : test::all_isas()) {
    kernels::set_active_isa(isa);
    SCOPED_TRACE(std::string(kernels::isa_name(isa)));
    body();
  }
  kernels::set_active_isa(before);
}

}  // namespace baregrad
