// Helpers for tests of layers: PyTorch's numbers, and the rows compared with them.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "baregrad/baregrad.h"
#include "baregrad/nn.h"
#include "tests/message_of.h"

namespace baregrad {

using autograd::Tensors;

/// One case of golden.txt; make_golden.py documents the keys.
struct GoldenCase {
  bool train = true;
  std::string repr;
  std::vector<std::pair<std::string, Dims>> state;
  std::map<std::string, Tensor> tensors;

  bool has(const std::string& key) const { return tensors.contains(key); }
  const Tensor& at(const std::string& key) const { return tensors.at(key); }
};
const std::map<std::string, GoldenCase>& golden_cases();

/// A case of golden.txt and the code that computes it: `make` may return null for a function.
struct GoldenRow {
  std::string name;
  std::function<nn::ModulePtr()> make;
  std::function<Tensors(nn::Module&, const Tensors&)> call;
};

std::vector<GoldenRow> layer_rows();
std::vector<GoldenRow> recurrent_rows();
std::vector<GoldenRow> loss_rows();
std::vector<GoldenRow> conv_rows();
std::vector<GoldenRow> norm_rows();
std::vector<GoldenRow> attention_rows();

/// A row of a module that takes one tensor.
template <class M, class... Args>
GoldenRow one_input(std::string name, Args... args) {
  return {std::move(name), [=] { return std::make_shared<M>(args...); },
          [](nn::Module& m, const Tensors& in) { return Tensors{m(in[0])}; }};
}
/// A module of type M, called through `call`.
template <class M>
GoldenRow row_of(std::string name, std::function<std::shared_ptr<M>()> make,
                 std::function<Tensors(M&, const Tensors&)> call) {
  return {std::move(name), [make] { return make(); },
          [call](nn::Module& m, const Tensors& in) { return call(dynamic_cast<M&>(m), in); }};
}
/// A function.
inline GoldenRow function_row(std::string name, std::function<Tensor(const Tensors&)> fn) {
  return {std::move(name), [] { return std::make_shared<nn::Identity>(); },
          [fn](nn::Module&, const Tensors& in) { return Tensors{fn(in)}; }};
}

/// Every element is within atol + rtol |wanted|; NaN never is.
::testing::AssertionResult near(const Tensor& got, const Tensor& wanted, double rtol, double atol);

#define EXPECT_CONTAINS(text, part) \
  EXPECT_NE((text).find(part), std::string::npos) << "in: " << (text)

}  // namespace baregrad
