// Recurrent layers with PyTorch's gate order and weight names.
#pragma once

#include <deque>
#include <string>

#include "baregrad/generator.h"
#include "baregrad/nn/module.h"

namespace baregrad::nn {

struct RecurrentOptions {
  std::int64_t num_layers = 1;
  bool bias = true;
  bool batch_first = false;  ///< [N, T, ...] instead of [T, N, ...]
  double dropout = 0.0;      ///< between layers, in training
  bool bidirectional = false;
  Generator* generator = nullptr;  ///< of the first weights and of dropout
};

/// The base class of RNN, LSTM and GRU. Parameters: weight_ih_l0 [gates * hidden, in],
/// weight_hh_l0, bias_ih_l0, bias_hh_l0, those of the backward direction with "_reverse", then
/// those of the next layer. An input without batch axis, [T, in], is accepted too.
class BAREGRAD_API Recurrent : public Module {
 public:
  using Module::operator();
  /// The output for a zero initial state: [T, N, hidden], or [T, N, 2 * hidden] if bidirectional.
  Tensor forward(const Tensor& x) override;
  std::string extra_repr() const override;
  /// Draws all parameters uniformly within 1 / sqrt(hidden).
  void reset_parameters(Generator* generator = nullptr);

 protected:
  Recurrent(const char* who, int gates, std::int64_t input_size, std::int64_t hidden_size,
            const RecurrentOptions& options);

  /// The state h, and c of an LSTM, of one step or of all layers.
  struct Cell {
    Tensor h;
    Tensor c;
  };
  struct Weights {
    Tensor ih;
    Tensor hh;
    Tensor bias_ih;
    Tensor bias_hh;
  };
  struct Result {
    Tensor output;
    Cell last;
  };
  /// States [layers * directions, N, hidden]. Undefined states are zeros.
  Result run(const Tensor& x, const Cell& first, bool has_c);
  /// The part of the gates that depends on the input, for all steps at once.
  virtual Tensor project(const Tensor& x, const Weights& w) const = 0;
  virtual Cell step(const Tensor& projected, const Cell& before, const Weights& w) const = 0;

 private:
  Weights weights_of(std::size_t which) const;
  Result run_layer(const Tensor& x, const Cell& first, const Weights& w, bool backwards) const;
  Tensor first_state(const Tensor& given, const char* what, const Tensor& x, bool batched) const;

  const char* who_;
  int gates_;
  std::int64_t input_size_;
  std::int64_t hidden_size_;
  RecurrentOptions options_;
  std::deque<Tensor> tensors_;  // a deque does not move its elements
};

/// Hidden states [layers * directions, N, hidden].
struct RNNOutput {
  Tensor output;
  Tensor h;
};
struct LSTMOutput {
  Tensor output;
  Tensor h;
  Tensor c;
};

enum class RNNNonlinearity { Tanh, Relu };

/// h = tanh(W_ih x + b_ih + W_hh h + b_hh)
class BAREGRAD_API RNN : public Recurrent {
 public:
  RNN(std::int64_t input_size, std::int64_t hidden_size, const RecurrentOptions& options = {},
      RNNNonlinearity nonlinearity = RNNNonlinearity::Tanh);
  using Recurrent::forward;
  /// From an initial state; an undefined one is zeros.
  RNNOutput forward(const Tensor& x, const Tensor& h0);

 protected:
  Tensor project(const Tensor& x, const Weights& w) const override;
  Cell step(const Tensor& projected, const Cell& before, const Weights& w) const override;

 private:
  RNNNonlinearity nonlinearity_;
};

/// Gates in the order input, forget, cell, output.
class BAREGRAD_API LSTM : public Recurrent {
 public:
  LSTM(std::int64_t input_size, std::int64_t hidden_size, const RecurrentOptions& options = {});
  using Recurrent::forward;
  LSTMOutput forward(const Tensor& x, const Tensor& h0, const Tensor& c0);

 protected:
  Tensor project(const Tensor& x, const Weights& w) const override;
  Cell step(const Tensor& projected, const Cell& before, const Weights& w) const override;
};

/// Gates in the order reset, update, new. The reset gate is applied after the product, as in
/// PyTorch.
class BAREGRAD_API GRU : public Recurrent {
 public:
  GRU(std::int64_t input_size, std::int64_t hidden_size, const RecurrentOptions& options = {});
  using Recurrent::forward;
  RNNOutput forward(const Tensor& x, const Tensor& h0);

 protected:
  Tensor project(const Tensor& x, const Weights& w) const override;
  Cell step(const Tensor& projected, const Cell& before, const Weights& w) const override;
};

}  // namespace baregrad::nn
