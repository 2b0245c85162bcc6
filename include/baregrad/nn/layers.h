// Layers without a window over space or time: Linear, Embedding, Dropout, and what joins layers.
#pragma once

#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "baregrad/activation.h"
#include "baregrad/generator.h"
#include "baregrad/nn/module.h"

namespace baregrad::nn {

// Where a layer draws its first weights, `generator` is where the numbers come from: the process's
// own when null.

/// act(x W^T + b) over the last axis. The activation, which PyTorch's layer does not have, happens
/// inside the product.
class BAREGRAD_API Linear : public Module {
 public:
  Linear(std::int64_t in_features, std::int64_t out_features, bool with_bias = true,
         Activation activation = Activation::None, Generator* generator = nullptr);
  /// A number is no switch: Linear(784, 128, 10).
  template <NoSwitch T>
  Linear(std::int64_t, std::int64_t, T, Activation = Activation::None,
         Generator* = nullptr) = delete;
  Tensor forward(const Tensor& x) override;
  std::string extra_repr() const override;
  void reset_parameters(Generator* generator = nullptr);
  std::int64_t in_features() const noexcept { return in_features_; }
  std::int64_t out_features() const noexcept { return out_features_; }

  Tensor weight;  ///< [out, in]
  Tensor bias;    ///< [out], or undefined

 private:
  std::int64_t in_features_;
  std::int64_t out_features_;
  Activation activation_;
};

/// Rows of a table by integers of any shape.
class BAREGRAD_API Embedding : public Module {
 public:
  /// The row `padding_idx` (negative: from the end) begins as zeros and gets no gradient.
  Embedding(std::int64_t num_embeddings, std::int64_t embedding_dim,
            std::optional<std::int64_t> padding_idx = {}, Generator* generator = nullptr);
  Tensor forward(const Tensor& indices) override;
  std::string extra_repr() const override;
  void reset_parameters(Generator* generator = nullptr);

  Tensor weight;  ///< [num_embeddings, embedding_dim]

 private:
  std::int64_t num_embeddings_;
  std::int64_t embedding_dim_;
  std::optional<std::int64_t> padding_idx_;
};
/// Embedding's forward. Throws IndexError for a negative index too.
BAREGRAD_API Tensor embedding(const Tensor& indices, const Tensor& weight,
                              std::optional<std::int64_t> padding_idx = {});

/// In training: each element is 0 with probability p, else divided by 1 - p.
class BAREGRAD_API Dropout : public Module {
 public:
  explicit Dropout(double p = 0.5, Generator* generator = nullptr);
  template <Switch T>
  explicit Dropout(T, Generator* = nullptr) = delete;
  Tensor forward(const Tensor& x) override;
  std::string extra_repr() const override;
  auto arguments() const { return std::tuple(Argument{"p", p_}); }
  double p() const noexcept { return p_; }

 private:
  double p_;
  Generator* generator_;
};
BAREGRAD_API Tensor dropout(const Tensor& x, double p = 0.5, bool training = true,
                            Generator* generator = nullptr);
/// dropout(x, training) would drop everything.
template <Switch T>
Tensor dropout(const Tensor&, T, bool = true, Generator* = nullptr) = delete;
template <NoSwitch T>
Tensor dropout(const Tensor&, double, T, Generator* = nullptr) = delete;

/// Joins the axes from start to end into one; the batch's axis stays by default.
class BAREGRAD_API Flatten : public Module {
 public:
  explicit Flatten(std::int64_t start_axis = 1, std::int64_t end_axis = -1);
  Tensor forward(const Tensor& x) override;
  std::string extra_repr() const override;
  auto arguments() const {
    return std::tuple(Argument{"start_dim", start_axis_}, Argument{"end_dim", end_axis_});
  }

 private:
  std::int64_t start_axis_;
  std::int64_t end_axis_;
};

class BAREGRAD_API Identity : public Module {
 public:
  Tensor forward(const Tensor& x) override;
};

/// One after the other; named "0", "1", ...
class BAREGRAD_API Sequential : public Module {
 public:
  Sequential() = default;
  Sequential(std::initializer_list<ModulePtr> modules);
  Tensor forward(const Tensor& x) override;
  Sequential& push_back(ModulePtr module);
  Sequential& push_back(const std::string& name, ModulePtr module);
  std::size_t size() const noexcept { return children().size(); }
  /// Throws IndexError.
  Module& at(std::size_t position) const;
};
/// sequential({make<Linear>(784, 128), make<ReLU>(), make<Linear>(128, 10)})
///
/// C++ evaluates what stands in braces from left to right, so that the layers draw their weights in
/// this order, as Python's do. The arguments of a function it evaluates in any order: without the
/// braces the weights would depend on the compiler, and it does not compile.
[[nodiscard]] BAREGRAD_API std::shared_ptr<Sequential> sequential(
    std::initializer_list<ModulePtr> modules = {});
template <class... M>
std::shared_ptr<Sequential> sequential(const std::shared_ptr<M>&... modules) = delete;

struct MLPOptions {
  Activation activation = Activation::Relu;  ///< after every layer but the last
  double dropout = 0.0;                      ///< after every activation
  bool bias = true;
  Generator* generator = nullptr;  ///< of the weights and of dropout
};
/// Linear layers "0", "1", ... with the activation inside each product. Takes [..., sizes[0]].
class BAREGRAD_API MLP : public Module {
 public:
  explicit MLP(const std::vector<std::int64_t>& sizes, const MLPOptions& options = {});
  Tensor forward(const Tensor& x) override;

 private:
  std::vector<std::shared_ptr<Linear>> layers_;
  std::shared_ptr<Dropout> dropout_;
};

}  // namespace baregrad::nn
