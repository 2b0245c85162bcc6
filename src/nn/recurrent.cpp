// RNN, LSTM, GRU: one product for the inputs of all time steps, and a small one per step.
#include "baregrad/nn/recurrent.h"

#include <cmath>
#include <vector>

#include "baregrad/error.h"
#include "baregrad/nn/init.h"
#include "baregrad/nn/layers.h"
#include "baregrad/ops.h"
#include "core/checked.h"
#include "core/message.h"
#include "core/rename.h"
#include "nn/check.h"
#include "nn/name_scope.h"
#include "nn/parts.h"
#include "nn/text.h"

namespace baregrad::nn {

namespace {

/// x W^T + (b_ih + b_hh), for cells that add both biases.
Tensor project_with_both(const Tensor& x, const Tensor& weight, const Tensor& bias_ih,
                         const Tensor& bias_hh) {
  return linear(x, weight, bias_ih.defined() ? bias_ih + bias_hh : Tensor());
}

}  // namespace

Recurrent::Recurrent(const char* who, int gates, std::int64_t input_size, std::int64_t hidden_size,
                     const RecurrentOptions& options)
    : who_(who),
      gates_(gates),
      input_size_(input_size),
      hidden_size_(hidden_size),
      options_(options) {
  require_positive(input_size, "input_size", who);
  require_positive(hidden_size, "hidden_size", who);
  require_layers(options.num_layers, "num_layers", who);
  require_probability(options.dropout, who);
  const std::int64_t directions = options.bidirectional ? 2 : 1;
  const std::int64_t rows = checked_mul(gates, hidden_size, who);
  for (std::int64_t layer = 0; layer < options.num_layers; ++layer) {
    const std::int64_t in = layer == 0 ? input_size : checked_mul(hidden_size, directions, who);
    for (std::int64_t direction = 0; direction < directions; ++direction) {
      const std::string ending = message("_l", layer, direction == 1 ? "_reverse" : "");
      const auto add_tensor = [&](const char* name, const Dims& shape, bool wanted) {
        tensors_.push_back(wanted ? in_name_of(who, [&] { return empty(shape); }) : Tensor());
        register_parameter(name + ending, tensors_.back());
      };
      add_tensor("weight_ih", {rows, in}, true);
      add_tensor("weight_hh", {rows, hidden_size}, true);
      add_tensor("bias_ih", {rows}, options.bias);
      add_tensor("bias_hh", {rows}, options.bias);
    }
  }
  reset_parameters(options.generator);
}

void Recurrent::reset_parameters(Generator* generator) {
  const double bound = 1.0 / std::sqrt(static_cast<double>(hidden_size_));
  for (const Tensor& t : tensors_) {
    if (t.defined()) init::uniform_(t, -bound, bound, generator);
  }
}

std::string Recurrent::extra_repr() const {
  std::string text = message(input_size_, ", ", hidden_size_);
  if (options_.num_layers != 1) text += message(", num_layers=", options_.num_layers);
  if (!options_.bias) text += ", bias=False";
  if (options_.batch_first) text += ", batch_first=True";
  if (options_.dropout != 0) text += ", dropout=" + text_of(options_.dropout);
  if (options_.bidirectional) text += ", bidirectional=True";
  return text;
}

Recurrent::Weights Recurrent::weights_of(std::size_t which) const {
  const std::size_t at = which * 4;
  return {tensors_[at], tensors_[at + 1], tensors_[at + 2], tensors_[at + 3]};
}

Tensor Recurrent::first_state(const Tensor& given, const char* what, const Tensor& x,
                              bool batched) const {
  const std::int64_t directions = options_.bidirectional ? 2 : 1;
  const Dims shape = {options_.num_layers * directions, x.shape()[1], hidden_size_};
  if (!given.defined()) return zeros(shape, x.dtype(), x.device());
  Tensor state = batched || given.ndim() != 2 ? given : expand_dims(given, {1});
  if (!(state.shape() == shape)) {
    throw ShapeError(message(
        who_, ": the first ", what, " is ", describe(given), ", needed is ",
        batched ? baregrad::to_string(shape) : baregrad::to_string(Dims{shape[0], shape[2]})));
  }
  return state;
}

Recurrent::Result Recurrent::run_layer(const Tensor& x, const Cell& first, const Weights& w,
                                       bool backwards) const {
  const std::vector<Tensor> projected = steps_of(project(x, w));
  const std::size_t count = projected.size();
  std::vector<Tensor> outputs(count);
  Cell cell = first;
  for (std::size_t k = 0; k < count; ++k) {
    const std::size_t t = backwards ? count - 1 - k : k;
    cell = step(projected[t], cell, w);
    outputs[t] = cell.h;
  }
  return {stack(outputs, 0), cell};
}

Recurrent::Result Recurrent::run(const Tensor& x, const Cell& first, bool has_c) {
  require_defined(x, "x", who_);
  const bool batched = x.ndim() != 2;
  if ((x.ndim() != 2 && x.ndim() != 3) || x.shape().back() != input_size_) {
    throw ShapeError(message(who_, ": needs ", options_.batch_first ? "[N, T, " : "[T, N, ",
                             input_size_, "] or [T, ", input_size_, "], not ", describe(x)));
  }
  const bool swapped = batched && options_.batch_first;
  Tensor y = !batched ? expand_dims(x, {1}) : swapped ? swapaxes(x, 0, 1) : x;
  if (y.shape()[0] == 0) {
    throw ShapeError(message(who_, ": ", describe(x), " has no time steps"));
  }
  const Tensor h0 = first_state(first.h, "hidden state", y, batched);
  const Tensor c0 = has_c ? first_state(first.c, "cell state", y, batched) : Tensor();
  const std::size_t directions = options_.bidirectional ? 2 : 1;
  const auto layers = static_cast<std::size_t>(options_.num_layers);
  std::vector<Tensor> last_h;
  std::vector<Tensor> last_c;
  for (std::size_t layer = 0; layer < layers; ++layer) {
    if (layer > 0) y = dropout(y, options_.dropout, is_training(), options_.generator);
    std::vector<Tensor> outputs;
    for (std::size_t direction = 0; direction < directions; ++direction) {
      const std::size_t which = layer * directions + direction;
      const auto row = static_cast<std::int64_t>(which);
      const Cell start = {h0[row], has_c ? c0[row] : Tensor()};
      const Result result = run_layer(y, start, weights_of(which), direction == 1);
      outputs.push_back(result.output);
      last_h.push_back(result.last.h);
      if (has_c) last_c.push_back(result.last.c);
    }
    y = directions == 1 ? outputs[0] : concat(outputs, -1);
  }
  const auto without_batch = [&](const Tensor& t) { return batched ? t : squeeze(t, 1); };
  const Cell last = {without_batch(stack(last_h, 0)),
                     has_c ? without_batch(stack(last_c, 0)) : Tensor()};
  return {swapped ? swapaxes(y, 0, 1) : without_batch(y), last};
}

Tensor Recurrent::forward(const Tensor& x) { return run(x, {}, gates_ == 4).output; }

// ---- RNN ----------------------------------------------------------------------------------------

RNN::RNN(std::int64_t input_size, std::int64_t hidden_size, const RecurrentOptions& options,
         RNNNonlinearity nonlinearity)
    : Recurrent("RNN", 1, input_size, hidden_size, options), nonlinearity_(nonlinearity) {}

RNNOutput RNN::forward(const Tensor& x, const Tensor& h0) {
  const NameScope scope(*this);
  const Result result = run(x, {h0, {}}, false);
  return {result.output, result.last.h};
}

Tensor RNN::project(const Tensor& x, const Weights& w) const {
  return project_with_both(x, w.ih, w.bias_ih, w.bias_hh);
}

RNN::Cell RNN::step(const Tensor& projected, const Cell& before, const Weights& w) const {
  const Tensor sum = addmm(projected, before.h, w.hh.mT());
  return {nonlinearity_ == RNNNonlinearity::Tanh ? tanh(sum) : relu(sum), {}};
}

// ---- LSTM ---------------------------------------------------------------------------------------

LSTM::LSTM(std::int64_t input_size, std::int64_t hidden_size, const RecurrentOptions& options)
    : Recurrent("LSTM", 4, input_size, hidden_size, options) {}

LSTMOutput LSTM::forward(const Tensor& x, const Tensor& h0, const Tensor& c0) {
  const NameScope scope(*this);
  const Result result = run(x, {h0, c0}, true);
  return {result.output, result.last.h, result.last.c};
}

Tensor LSTM::project(const Tensor& x, const Weights& w) const {
  return project_with_both(x, w.ih, w.bias_ih, w.bias_hh);
}

LSTM::Cell LSTM::step(const Tensor& projected, const Cell& before, const Weights& w) const {
  const std::vector<Tensor> gates = parts_of(addmm(projected, before.h, w.hh.mT()), 4);
  const Tensor kept = sigmoid(gates[1]) * before.c;
  const Tensor c = addcmul(kept, sigmoid(gates[0]), tanh(gates[2]));
  return {sigmoid(gates[3]) * tanh(c), c};
}

// ---- GRU ----------------------------------------------------------------------------------------

GRU::GRU(std::int64_t input_size, std::int64_t hidden_size, const RecurrentOptions& options)
    : Recurrent("GRU", 3, input_size, hidden_size, options) {}

RNNOutput GRU::forward(const Tensor& x, const Tensor& h0) {
  const NameScope scope(*this);
  const Result result = run(x, {h0, {}}, false);
  return {result.output, result.last.h};
}

Tensor GRU::project(const Tensor& x, const Weights& w) const { return linear(x, w.ih, w.bias_ih); }

GRU::Cell GRU::step(const Tensor& projected, const Cell& before, const Weights& w) const {
  const std::vector<Tensor> from_x = parts_of(projected, 3);
  const std::vector<Tensor> from_h = parts_of(linear(before.h, w.hh, w.bias_hh), 3);
  const Tensor reset = sigmoid(from_x[0] + from_h[0]);
  const Tensor update = sigmoid(from_x[1] + from_h[1]);
  const Tensor fresh = tanh(addcmul(from_x[2], reset, from_h[2]));
  return {lerp(fresh, before.h, update), {}};
}

}  // namespace baregrad::nn
