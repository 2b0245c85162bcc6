// RNN, LSTM and GRU with PyTorch's results: (output, h) and (output, (h, c)).

#include "baregrad/nn/recurrent.h"
#include "nn_bindings.h"
#include "nn_choices.h"
#include "nn_module.h"

namespace baregrad::python {
namespace {

using MaybeTensor = std::optional<Tensor>;

nn::RecurrentOptions options_of(std::int64_t num_layers, bool bias, bool batch_first,
                                double dropout, bool bidirectional) {
  return {.num_layers = num_layers,
          .bias = bias,
          .batch_first = batch_first,
          .dropout = dropout,
          .bidirectional = bidirectional};
}

/// RNN and GRU: one state.
template <class L>
void def_recurrent_forward(Layer<L>& layer) {
  layer.type().def(
      "forward",
      [](L& self, const Tensor& input, MaybeTensor h0) {
        const nn::RNNOutput out =
            module_unlocked_if(true, [&] { return self.forward(input, tensor_or_none(h0)); });
        return std::pair(out.output, out.h);
      },
      nb::arg("input"), nb::arg("hx") = nb::none(),
      "(output, h) of a sequence, from the state hx or from zeros.");
}

void bind_rnn(nb::module_& nn) {
  Layer<nn::RNN> rnn(nn, "RNN", R"(h = tanh(W_ih x + b_ih + W_hh h + b_hh), step by step.

>>> output, h = bg.nn.RNN(3, 5)(bg.ones((7, 2, 3)))
>>> output.shape, h.shape
((7, 2, 5), (1, 2, 5))
)");
  rnn.init(
      +[](void* place, std::int64_t in, std::int64_t hidden, std::int64_t num_layers,
          std::string nonlinearity, bool bias, bool batch_first, double dropout, bool bidirectional,
          DTypeOption dtype) {
        auto* layer = new (place)
            nn::RNN(in, hidden, options_of(num_layers, bias, batch_first, dropout, bidirectional),
                    rnn_nonlinearity_from(nonlinearity, "RNN"));
        if (dtype) layer->to(*dtype);
      },
      nb::arg("input_size"), nb::arg("hidden_size"), nb::arg("num_layers") = 1,
      nb::arg("nonlinearity") = "tanh", nb::arg("bias") = true, nb::arg("batch_first") = false,
      nb::arg("dropout") = 0.0, nb::arg("bidirectional") = false, nb::kw_only(),
      nb::arg("dtype") = nb::none());
  def_recurrent_forward(rnn);
}

template <class L>
void init_gated(Layer<L>& layer) {
  layer.init(
      +[](void* place, std::int64_t in, std::int64_t hidden, std::int64_t num_layers, bool bias,
          bool batch_first, double dropout, bool bidirectional, DTypeOption dtype) {
        auto* made = new (place)
            L(in, hidden, options_of(num_layers, bias, batch_first, dropout, bidirectional));
        if (dtype) made->to(*dtype);
      },
      nb::arg("input_size"), nb::arg("hidden_size"), nb::arg("num_layers") = 1,
      nb::arg("bias") = true, nb::arg("batch_first") = false, nb::arg("dropout") = 0.0,
      nb::arg("bidirectional") = false, nb::kw_only(), nb::arg("dtype") = nb::none());
}

void bind_lstm(nb::module_& nn) {
  Layer<nn::LSTM> lstm(nn, "LSTM",
                       R"(The long short-term memory; weights weight_ih_l0, weight_hh_l0, ...

>>> output, (h, c) = bg.nn.LSTM(3, 5, num_layers=2)(bg.ones((7, 2, 3)))
>>> output.shape, h.shape, c.shape
((7, 2, 5), (2, 2, 5), (2, 2, 5))
)");
  init_gated(lstm);
  lstm.type().def(
      "forward",
      [](nn::LSTM& self, const Tensor& input, std::optional<std::pair<Tensor, Tensor>> state) {
        const nn::LSTMOutput out = module_unlocked_if(true, [&] {
          return state ? self.forward(input, state->first, state->second)
                       : self.forward(input, Tensor(), Tensor());
        });
        return std::pair(out.output, std::pair(out.h, out.c));
      },
      nb::arg("input"), nb::arg("hx") = nb::none(),
      "(output, (h, c)) of a sequence, from the states (h0, c0) or from zeros.");
}

}  // namespace

void bind_nn_recurrent(nb::module_& nn) {
  bind_rnn(nn);
  bind_lstm(nn);
  Layer<nn::GRU> gru(nn, "GRU", R"(The gated recurrent unit; weights weight_ih_l0, weight_hh_l0, ...

>>> output, h = bg.nn.GRU(3, 5, batch_first=True)(bg.ones((2, 7, 3)))
>>> output.shape, h.shape
((2, 7, 5), (1, 2, 5))
)");
  init_gated(gru);
  def_recurrent_forward(gru);
}

}  // namespace baregrad::python
