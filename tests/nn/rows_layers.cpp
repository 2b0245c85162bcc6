// Rows of golden.txt: layers without windows, activations, recurrent layers.
#include "tests/nn/support.h"

namespace baregrad {

using nn::make;

std::vector<GoldenRow> layer_rows() {
  return {
      one_input<nn::Linear>("linear", 4, 3),
      one_input<nn::Linear>("linear_no_bias", 4, 3, false),
      function_row("linear_relu",
                   [](const Tensors& in) {
                     nn::Linear layer(4, 5, true, Activation::Relu);
                     layer.set_parameter("weight", in[1]);
                     layer.set_parameter("bias", in[2]);
                     return layer(in[0]);
                   }),
      one_input<nn::Embedding>("embedding", 5, 3),
      one_input<nn::Embedding>("embedding_padding", 5, 3, -4),
      one_input<nn::Flatten>("flatten"),
      one_input<nn::Identity>("identity"),
      one_input<nn::Dropout>("dropout_eval", 0.25),
      {"sequential",
       [] {
         return nn::sequential({make<nn::Linear>(3, 4), make<nn::Tanh>(),
                                nn::sequential({make<nn::Linear>(4, 2), make<nn::Identity>()})});
       },
       [](nn::Module& m, const Tensors& in) { return Tensors{m(in[0])}; }},
      one_input<nn::ReLU>("relu"),
      one_input<nn::LeakyReLU>("leaky_relu", 0.2),
      one_input<nn::ELU>("elu", 1.5),
      one_input<nn::GELU>("gelu"),
      one_input<nn::GELU>("gelu_tanh", true),
      one_input<nn::SiLU>("silu"),
      one_input<nn::Mish>("mish"),
      one_input<nn::Softplus>("softplus", 2.0, 10.0),
      one_input<nn::Hardswish>("hardswish"),
      one_input<nn::Sigmoid>("sigmoid"),
      one_input<nn::Tanh>("tanh"),
      one_input<nn::Softmax>("softmax", 1),
      one_input<nn::LogSoftmax>("log_softmax", -1),
  };
}

namespace {

template <class M>
GoldenRow from_state(std::string name, std::function<std::shared_ptr<M>()> make_module) {
  return row_of<M>(std::move(name), make_module, [](M& m, const Tensors& in) {
    if constexpr (std::is_same_v<M, nn::LSTM>) {
      const nn::LSTMOutput out = m.forward(in[0], in[1], in[2]);
      return Tensors{out.output, out.h, out.c};
    } else {
      const nn::RNNOutput out = m.forward(in[0], in[1]);
      return Tensors{out.output, out.h};
    }
  });
}

}  // namespace

std::vector<GoldenRow> recurrent_rows() {
  using Options = nn::RecurrentOptions;
  return {
      one_input<nn::RNN>("rnn", 3, 2),
      from_state<nn::RNN>("rnn_relu",
                          [] { return make<nn::RNN>(3, 2, Options{}, nn::RNNNonlinearity::Relu); }),
      from_state<nn::RNN>(
          "rnn_stack",
          [] {
            return make<nn::RNN>(
                2, 3, Options{.num_layers = 2, .batch_first = true, .bidirectional = true});
          }),
      one_input<nn::LSTM>("lstm", 3, 2),
      from_state<nn::LSTM>("lstm_no_bias",
                           [] { return make<nn::LSTM>(2, 2, Options{.bias = false}); }),
      from_state<nn::LSTM>("lstm_stack",
                           [] {
                             return make<nn::LSTM>(2, 3,
                                                   Options{.num_layers = 2,
                                                           .batch_first = true,
                                                           .dropout = 0.5,
                                                           .bidirectional = true});
                           }),
      from_state<nn::LSTM>("lstm_unbatched", [] { return make<nn::LSTM>(2, 3); }),
      one_input<nn::GRU>("gru", 3, 2),
      from_state<nn::GRU>(
          "gru_stack",
          [] { return make<nn::GRU>(2, 3, Options{.num_layers = 2, .bidirectional = true}); }),
  };
}

}  // namespace baregrad
