// Linear, Embedding, Dropout, Flatten, Identity, Sequential, MLP.
#include "baregrad/nn/layers.h"

#include "baregrad/autograd.h"
#include "baregrad/error.h"
#include "baregrad/nn/init.h"
#include "baregrad/ops.h"
#include "core/message.h"
#include "core/rename.h"
#include "nn/check.h"
#include "nn/text.h"
#include "ops/activation_name.h"

namespace baregrad::nn {

// ---- Linear -------------------------------------------------------------------------------------

Linear::Linear(std::int64_t in_features, std::int64_t out_features, bool with_bias,
               Activation activation, Generator* generator)
    : in_features_(in_features), out_features_(out_features), activation_(activation) {
  require_size(in_features, "in_features", "Linear");
  require_size(out_features, "out_features", "Linear");
  weight = in_name_of("Linear", [&] { return empty({out_features, in_features}); });
  if (with_bias) bias = in_name_of("Linear", [&] { return empty({out_features}); });
  register_parameter("weight", weight);
  register_parameter("bias", bias);
  reset_parameters(generator);
}

void Linear::reset_parameters(Generator* generator) {
  init::default_weight_and_bias_(weight, bias, generator);
}

Tensor Linear::forward(const Tensor& x) { return linear(x, weight, bias, activation_); }

std::string Linear::extra_repr() const {
  std::string text = message("in_features=", in_features_, ", out_features=", out_features_,
                             ", bias=", text_of(bias.defined()));
  if (activation_ != Activation::None) text += message(", activation=", name_of(activation_));
  return text;
}

// ---- Embedding ----------------------------------------------------------------------------------

Embedding::Embedding(std::int64_t num_embeddings, std::int64_t embedding_dim,
                     std::optional<std::int64_t> padding_idx, Generator* generator)
    : num_embeddings_(num_embeddings), embedding_dim_(embedding_dim), padding_idx_(padding_idx) {
  require_size(num_embeddings, "num_embeddings", "Embedding");
  require_size(embedding_dim, "embedding_dim", "Embedding");
  if (padding_idx) {
    if (*padding_idx < -num_embeddings || *padding_idx >= num_embeddings) {
      throw IndexError(message("Embedding: padding_idx ", *padding_idx, " is out of range for ",
                               num_embeddings, " embeddings"));
    }
    if (*padding_idx < 0) padding_idx_ = *padding_idx + num_embeddings;
  }
  weight = in_name_of("Embedding", [&] { return empty({num_embeddings, embedding_dim}); });
  register_parameter("weight", weight);
  reset_parameters(generator);
}

void Embedding::reset_parameters(Generator* generator) {
  init::normal_(weight, 0.0, 1.0, generator);
  if (padding_idx_) {
    const no_grad off;
    weight[*padding_idx_].fill_(0.0);
  }
}

Tensor Embedding::forward(const Tensor& indices) {
  return embedding(indices, weight, padding_idx_);
}

std::string Embedding::extra_repr() const {
  std::string text = message(num_embeddings_, ", ", embedding_dim_);
  if (padding_idx_) text += message(", padding_idx=", *padding_idx_);
  return text;
}

Tensor embedding(const Tensor& indices, const Tensor& weight,
                 std::optional<std::int64_t> padding_idx) {
  constexpr const char* kWho = "embedding";
  require_defined(indices, "indices", kWho);
  require_defined(weight, "weight", kWho);
  if (!is_integer(indices.dtype())) {
    throw DTypeError(message(kWho, ": indices must be integers, not ", describe(indices)));
  }
  if (weight.ndim() != 2) {
    throw ShapeError(message(kWho, ": weight must be [rows, size], not ", describe(weight)));
  }
  if (is_signed_int(indices.dtype()) && indices.numel() > 0) {
    // take() counts negative indices from the end; here they are errors.
    const auto least = amin(indices).item<std::int64_t>();
    if (least < 0) {
      throw IndexError(message(kWho, ": index ", least, " in ", describe(indices),
                               " is negative; rows of ", describe(weight), " count from 0"));
    }
  }
  const std::int64_t count = weight.shape()[0];
  if (padding_idx && (*padding_idx < -count || *padding_idx >= count)) {
    throw IndexError(message(kWho, ": padding_idx ", *padding_idx, " is out of range for ", count,
                             " rows of ", describe(weight)));
  }
  Tensor rows = in_name_of(kWho, [&] { return take(weight, indices, 0); });
  if (!padding_idx || !rows.requires_grad()) return rows;
  const std::int64_t padded = *padding_idx < 0 ? *padding_idx + count : *padding_idx;
  const Tensor padding = expand_dims(equal(indices, padded), {-1});
  return where(padding, rows.detach(), rows);
}

// ---- Dropout, Flatten, Identity -----------------------------------------------------------------

Dropout::Dropout(double p, Generator* generator) : p_(p), generator_(generator) {
  require_probability(p, "Dropout");
}

Tensor Dropout::forward(const Tensor& x) { return dropout(x, p_, is_training(), generator_); }

std::string Dropout::extra_repr() const { return text_of(arguments()) + ", inplace=False"; }

Tensor dropout(const Tensor& x, double p, bool training, Generator* generator) {
  constexpr const char* kWho = "dropout";
  require_defined(x, "x", kWho);
  require_probability(p, kWho);
  if (!is_floating(x.dtype())) {
    throw DTypeError(message(kWho, ": takes floats, not ", describe(x)));
  }
  if (!training || p == 0.0) return x;
  if (p == 1.0) return x * 0.0;
  const Tensor kept = bernoulli(x.shape(), 1.0 - p, x.dtype(), generator, x.device());
  return x * multiply_(kept, 1.0 / (1.0 - p));
}

Flatten::Flatten(std::int64_t start_axis, std::int64_t end_axis)
    : start_axis_(start_axis), end_axis_(end_axis) {}

Tensor Flatten::forward(const Tensor& x) { return flatten(x, start_axis_, end_axis_); }

std::string Flatten::extra_repr() const { return text_of(arguments()); }

Tensor Identity::forward(const Tensor& x) { return x; }

// ---- Sequential, MLP ----------------------------------------------------------------------------

Tensor Sequential::forward(const Tensor& x) {
  Tensor y = x;
  // A module may change the list while it runs: it is kept alive, and the list is read again.
  for (std::size_t i = 0; i < size(); ++i) {
    const ModulePtr module = children()[i].second;  // NOLINT(performance-unnecessary-copy*)
    y = (*module)(y);
  }
  return y;
}

Sequential::Sequential(std::initializer_list<ModulePtr> modules) {
  for (const ModulePtr& module : modules) push_back(module);
}

std::shared_ptr<Sequential> sequential(std::initializer_list<ModulePtr> modules) {
  return std::make_shared<Sequential>(modules);
}

Sequential& Sequential::push_back(ModulePtr module) {
  return push_back(std::to_string(size()), std::move(module));
}

Sequential& Sequential::push_back(const std::string& name, ModulePtr module) {
  attach(name, std::move(module));
  return *this;
}

Module& Sequential::at(std::size_t position) const {
  if (position >= size()) {
    throw IndexError(message("Sequential: position ", position, " of ", size(), " modules"));
  }
  return *children()[position].second;
}

MLP::MLP(const std::vector<std::int64_t>& sizes, const MLPOptions& options) {
  if (sizes.size() < 2) {
    throw ValueError(message("MLP: needs the sizes of its input and of each layer, got ",
                             sizes.size(), " of them"));
  }
  for (std::size_t i = 0; i + 1 < sizes.size(); ++i) {
    const bool last = i + 2 == sizes.size();
    layers_.push_back(register_module(
        std::to_string(i),
        make<Linear>(sizes[i], sizes[i + 1], options.bias,
                     last ? Activation::None : options.activation, options.generator)));
  }
  if (options.dropout != 0.0) {
    dropout_ = register_module("dropout", make<Dropout>(options.dropout, options.generator));
  }
}

Tensor MLP::forward(const Tensor& x) {
  Tensor y = x;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    y = (*layers_[i])(y);
    if (dropout_ && i + 1 < layers_.size()) y = (*dropout_)(y);
  }
  return y;
}

}  // namespace baregrad::nn
