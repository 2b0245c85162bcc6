// Linear, Embedding, Dropout, Flatten, Identity, and the containers Sequential and MLP.
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

// `generator` is the source of random numbers for initial weights; null: the process's generator.

/// act(x W^T + b) over the last axis. The activation is fused into the product; PyTorch's layer has
/// none.
class BAREGRAD_API Linear : public Module {
 public:
  Linear(std::int64_t in_features, std::int64_t out_features, bool with_bias = true,
         Activation activation = Activation::None, Generator* generator = nullptr);
  /// Linear(784, 128, 10) does not compile: the third argument is a bool.
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

/// Looks up rows of a table by integer indices of any shape.
class BAREGRAD_API Embedding : public Module {
 public:
  /// The row `padding_idx` (negative: from the end) is zero at first and gets no gradient.
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
/// The forward of Embedding. A negative index throws IndexError too.
BAREGRAD_API Tensor embedding(const Tensor& indices, const Tensor& weight,
                              std::optional<std::int64_t> padding_idx = {});

/// In training, each element is set to 0 with probability p and otherwise divided by 1 - p.
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
/// A bool as p does not compile: dropout(x, training) would drop everything.
template <Switch T>
Tensor dropout(const Tensor&, T, bool = true, Generator* = nullptr) = delete;
template <NoSwitch T>
Tensor dropout(const Tensor&, double, T, Generator* = nullptr) = delete;

/// Joins the axes from start to end into one. By default the batch axis is kept.
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

/// Calls modules one after the other. They are named "0", "1", ...
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
/// The elements of a braced list are evaluated from left to right, so the layers draw their weights
/// in this order, as in Python. Function arguments are evaluated in any order: a call without the
/// braces would give weights that depend on the compiler, so it does not compile.
[[nodiscard]] BAREGRAD_API std::shared_ptr<Sequential> sequential(
    std::initializer_list<ModulePtr> modules = {});
template <class... M>
std::shared_ptr<Sequential> sequential(const std::shared_ptr<M>&... modules) = delete;

struct MLPOptions {
  Activation activation = Activation::Relu;  ///< after every layer but the last
  double dropout = 0.0;                      ///< after every activation
  bool bias = true;
  Generator* generator = nullptr;  ///< for initial weights and dropout
};
/// Linear layers "0", "1", ..., the activations fused into the products. Takes [..., sizes[0]].
class BAREGRAD_API MLP : public Module {
 public:
  explicit MLP(const std::vector<std::int64_t>& sizes, const MLPOptions& options = {});
  Tensor forward(const Tensor& x) override;

 private:
  std::vector<std::shared_ptr<Linear>> layers_;
  std::shared_ptr<Dropout> dropout_;
};

}  // namespace baregrad::nn
