// Helpers for tests of optimizers: known parameters and gradients, scopes, ready-made optimizers.
#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "backends/cpu/table.h"
#include "baregrad/ops.h"
#include "baregrad/optim.h"
#include "baregrad/parallel.h"
#include "tests/isas.h"

namespace baregrad::test {

using optim::Optimizer;
using optim::Tensors;
using Made = std::unique_ptr<Optimizer>;

/// Element i of the gradient of step k; k = -1: of the parameter. make_golden.py has the same
/// formula.
inline double value(std::int64_t i, int k) {
  return std::sin(0.7 * static_cast<double>(i) + 1.3 * k + 0.25) *
         (1 + 0.1 * static_cast<double>(i % 50));
}

inline Tensor values(std::int64_t n, int k, DType dtype) {
  std::vector<double> all;
  for (std::int64_t i = 0; i < n; ++i) all.push_back(value(i, k));
  return astype(Tensor::of(all, {n}), dtype);
}

inline std::vector<double> doubles(const Tensor& t) {
  return astype(t.detach(), DType::Float64).to_vector<double>();
}

template <class Kind, class Options>
Made make_with(const Tensors& params, const Options& options) {
  return std::make_unique<Kind>(params, options);
}

/// The same bits, including NaN.
inline bool same_bits(const Tensor& a, const Tensor& b) {
  if (!(a.shape() == b.shape()) || a.dtype() != b.dtype()) return false;
  std::vector<char> x(a.nbytes());
  std::vector<char> y(b.nbytes());
  a.copy_to(x.data());
  b.copy_to(y.data());
  return x == y;
}

/// Restores instruction set and threads.
class OptimTest : public ::testing::Test {
 protected:
  OptimTest() : isa_(kernels::active_isa()), threads_(get_num_threads()) {}
  ~OptimTest() override {
    kernels::set_active_isa(isa_);
    set_num_threads(threads_);
  }

 private:
  kernels::Isa isa_;
  int threads_;
};

/// The message of the E that `f` throws; the test fails when there is none.
template <class E, class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const E& error) {
    return error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "another error: " << error.what();
    return "";
  }
  ADD_FAILURE() << "no error";
  return "";
}

}  // namespace baregrad::test
