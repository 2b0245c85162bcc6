// Every layer and loss compared with PyTorch: printed form, names and shapes of the state, results,
// gradients, buffers, in float64 and float32; and its gradients with finite differences.
#include <ostream>
#include <set>

#include "tests/nn/support.h"

namespace baregrad {

void PrintTo(const GoldenRow& row, std::ostream* out) { *out << row.name; }

namespace {

std::vector<GoldenRow> all_rows() {
  std::vector<GoldenRow> all;
  for (const auto& rows :
       {layer_rows(), recurrent_rows(), loss_rows(), conv_rows(), norm_rows(), attention_rows()}) {
    all.insert(all.end(), rows.begin(), rows.end());
  }
  return all;
}

std::string key(const char* what, std::size_t i) { return what + std::to_string(i); }

/// PyTorch's out_proj has a class of its own, which does not matter here.
std::string plain_names(std::string text) {
  const std::string own = "NonDynamicallyQuantizableLinear";
  for (std::size_t at = text.find(own); at != std::string::npos; at = text.find(own)) {
    text.replace(at, own.size(), "Linear");
  }
  return text;
}

class Golden : public ::testing::TestWithParam<GoldenRow> {
 protected:
  const GoldenRow& row() const { return GetParam(); }
  const GoldenCase& golden() const { return golden_cases().at(row().name); }

  nn::ModulePtr loaded(DType dtype) const {
    nn::ModulePtr module = row().make();
    module->train(golden().train).to(dtype);
    NamedTensors state;
    for (const auto& [name, shape] : golden().state) {
      state.push_back({name, golden().at("p." + name)});
    }
    module->load_state_dict(state);
    return module;
  }
  Tensors inputs(DType dtype) const {
    Tensors in;
    for (std::size_t i = 0; golden().has(key("x", i)); ++i) {
      Tensor x = golden().at(key("x", i)).clone();
      if (is_floating(x.dtype())) x = x.to(dtype);
      if (golden().has(key("g.x", i))) x.requires_grad_();
      in.push_back(x);
    }
    return in;
  }
  void check_numbers(DType dtype, double rtol, double atol) const {
    const nn::ModulePtr module = loaded(dtype);
    const Tensors in = inputs(dtype);
    const Tensors out = row().call(*module, in);
    Tensors recorded;
    Tensors back;
    for (std::size_t i = 0; i < out.size(); ++i) {
      EXPECT_EQ(out[i].dtype(), dtype);
      EXPECT_TRUE(near(out[i], golden().at(key("y", i)), rtol, atol)) << "result " << i;
      if (!out[i].requires_grad()) continue;
      recorded.push_back(out[i]);
      back.push_back(golden().at(key("c", i)).to(dtype));
    }
    EXPECT_FALSE(golden().has(key("y", out.size())));
    if (!recorded.empty()) autograd::backward(recorded, back);
    const auto check_gradient = [&](const Tensor& of, const std::string& name) {
      const Tensor gradient = of.grad().defined() ? of.grad() : zeros_like(of);
      EXPECT_TRUE(near(gradient, golden().at("g." + name), rtol, atol)) << "gradient of " << name;
    };
    for (std::size_t i = 0; i < in.size(); ++i) {
      if (in[i].requires_grad()) check_gradient(in[i], key("x", i));
    }
    for (const NamedTensor& p : module->named_parameters()) check_gradient(p.tensor, p.name);
    for (const NamedTensor& b : module->named_buffers()) {
      if (!golden().has("b." + b.name)) continue;
      EXPECT_TRUE(near(b.tensor, golden().at("b." + b.name), rtol, atol)) << b.name;
    }
  }
};

TEST_P(Golden, PrintsAsPyTorch) {
  if (golden().repr.empty()) return;  // a function
  EXPECT_EQ(row().make()->to_string(), plain_names(golden().repr));
}

TEST_P(Golden, StateHasPyTorchsNamesAndShapes) {
  const NamedTensors state = row().make()->state_dict();
  ASSERT_EQ(state.size(), golden().state.size());
  for (std::size_t i = 0; i < state.size(); ++i) {
    EXPECT_EQ(state[i].name, golden().state[i].first);
    EXPECT_EQ(state[i].tensor.shape(), golden().state[i].second) << state[i].name;
  }
}

TEST_P(Golden, Float64) { check_numbers(DType::Float64, 1e-9, 1e-11); }

TEST_P(Golden, Float32) { check_numbers(DType::Float32, 2e-5, 2e-5); }

/// Half precision everywhere: the dtype is kept, and the first two digits are right.
TEST_P(Golden, BFloat16) {
  if (row().name == "bce_edges") return;  // a slope of 1e12
  check_numbers(DType::BFloat16, 0.06, 0.06);
}

TEST_P(Golden, FiniteDifferences) {
  if (row().name.find("_edges") != std::string::npos ||
      row().name.find("_large") != std::string::npos) {
    return;  // at the end of the domain, or too steep for finite differences
  }
  const nn::ModulePtr module = loaded(DType::Float64);
  Tensors all = inputs(DType::Float64);
  const std::size_t count = all.size();
  std::vector<std::string> names;
  for (const NamedTensor& p : module->named_parameters()) {
    names.push_back(p.name);
    all.push_back(p.tensor.detach().requires_grad_());
  }
  bool wanted = false;
  for (const Tensor& t : all) wanted |= t.requires_grad();
  if (!wanted) return;
  // The padding row has a gradient of 0 by definition, whatever finite differences give.
  if (row().name == "embedding_padding") return;
  const auto fn = [&](const Tensors& at) {
    for (std::size_t k = 0; k < names.size(); ++k) module->set_parameter(names[k], at[count + k]);
    return row().call(*module,
                      Tensors(at.begin(), at.begin() + static_cast<std::ptrdiff_t>(count)));
  };
  EXPECT_EQ(autograd::gradcheck(fn, all), "");
}

std::string row_name(const ::testing::TestParamInfo<GoldenRow>& info) { return info.param.name; }
INSTANTIATE_TEST_SUITE_P(All, Golden, ::testing::ValuesIn(all_rows()), row_name);

TEST(GoldenFile, EveryCaseHasExactlyOneRow) {
  std::multiset<std::string> names;
  for (const GoldenRow& row : all_rows()) names.insert(row.name);
  for (const auto& [name, golden] : golden_cases()) EXPECT_EQ(names.count(name), 1U) << name;
  EXPECT_EQ(names.size(), golden_cases().size());
  EXPECT_GT(golden_cases().size(), 100U);
}

}  // namespace
}  // namespace baregrad
