// MultiheadAttention and TransformerEncoderLayer.

#include "baregrad/nn/attention.h"
#include "nn_bindings.h"
#include "nn_choices.h"
#include "nn_module.h"

namespace baregrad::python {
namespace {

using MaybeTensor = std::optional<Tensor>;
using MaybeSize = std::optional<std::int64_t>;

nn::AttentionMasks masks_of(const MaybeTensor& key_padding, const MaybeTensor& attention,
                            bool causal) {
  // In PyTorch, is_causal states that the given mask is causal. Here the kernel makes the mask.
  const bool given = attention.has_value();
  return {.key_padding = tensor_or_none(key_padding),
          .attention = tensor_or_none(attention),
          .causal = causal && !given};
}

std::pair<Tensor, MaybeTensor> attend(nn::MultiheadAttention& self, const Tensor& query,
                                      const Tensor& key, const Tensor& value,
                                      MaybeTensor key_padding_mask, bool need_weights,
                                      MaybeTensor attn_mask, bool average_attn_weights,
                                      bool is_causal) {
  const nn::AttentionMasks masks = masks_of(key_padding_mask, attn_mask, is_causal);
  const nn::MultiheadAttention::Output out =
      module_unlocked_if(true, [&]() -> nn::MultiheadAttention::Output {
        if (!need_weights) return {self.forward(query, key, value, masks), Tensor()};
        return self.forward_with_weights(query, key, value, masks, average_attn_weights);
      });
  return {out.output, optional_of(out.weights)};
}

/// Records the arguments of a Linear that its C++ parent made.
void linear_inside(nb::handle parent, const char* name, std::int64_t in, std::int64_t out,
                   bool bias) {
  made_inside(parent, name,
              {{"in_features", nb::cast(in)},
               {"out_features", nb::cast(out)},
               {"bias", nb::cast(bias)},
               {"activation", nb::none()}});
}

void init_attention(nb::pointer_and_handle<nn::MultiheadAttention> self, std::int64_t embed_dim,
                    std::int64_t num_heads, double dropout, bool bias, MaybeSize kdim,
                    MaybeSize vdim, bool batch_first, DTypeOption dtype) {
  auto* layer = new (static_cast<void*>(self.p)) nn::MultiheadAttention(
      embed_dim, num_heads,
      {.dropout = dropout, .bias = bias, .batch_first = batch_first, .kdim = kdim, .vdim = vdim});
  if (dtype) layer->to(*dtype);
  nb::dict arguments;
  arguments["embed_dim"] = embed_dim;
  arguments["num_heads"] = num_heads;
  arguments["dropout"] = dropout;
  arguments["bias"] = bias;
  arguments["kdim"] = nb::cast(kdim);
  arguments["vdim"] = nb::cast(vdim);
  arguments["batch_first"] = batch_first;
  layer_made(self.h, *layer, arguments);
  linear_inside(self.h, "out_proj", embed_dim, embed_dim, bias);
}

void bind_attention(nb::module_& nn) {
  Layer<nn::MultiheadAttention> layer(nn, "MultiheadAttention",
                                      R"(Attention of several heads: (output, weights).

query [T, N, E], key and value [S, N, E], or [N, T, E] with batch_first. In masks, True means "do
not look". Without need_weights the T x S weights are never stored.

>>> attention = bg.nn.MultiheadAttention(8, 2, batch_first=True)
>>> x = bg.ones((2, 5, 8))
>>> output, weights = attention(x, x, x)
>>> output.shape, weights.shape
((2, 5, 8), (2, 5, 5))
)");
  layer.tensor("in_proj_weight", "[3 embed_dim, embed_dim], or None where kdim or vdim differ.")
      .tensor("q_proj_weight", "[embed_dim, embed_dim], or None.")
      .tensor("k_proj_weight", "[embed_dim, kdim], or None.")
      .tensor("v_proj_weight", "[embed_dim, vdim], or None.")
      .tensor("in_proj_bias", "[3 embed_dim], or None.");
  layer.type().def("__init__", &init_attention, nb::arg("embed_dim"), nb::arg("num_heads"),
                   nb::arg("dropout") = 0.0, nb::arg("bias") = true, nb::kw_only(),
                   nb::arg("kdim") = nb::none(), nb::arg("vdim") = nb::none(),
                   nb::arg("batch_first") = false, nb::arg("dtype") = nb::none());
  for (const char* name : {"embed_dim", "num_heads", "dropout", "kdim", "vdim", "batch_first"}) {
    layer.argument(name);
  }
  layer.type().def("forward", &attend, nb::arg("query"), nb::arg("key"), nb::arg("value"),
                   nb::arg("key_padding_mask") = nb::none(), nb::arg("need_weights") = true,
                   nb::arg("attn_mask") = nb::none(), nb::arg("average_attn_weights") = true,
                   nb::arg("is_causal") = false,
                   "(output, weights); weights is None without need_weights.");
}

struct Encoder {
  std::int64_t d_model;
  std::int64_t nhead;
  nn::TransformerEncoderLayerOptions options;
};

/// Records the arguments of the layers inside, which are attributes of them.
void remember_parts(nb::handle self, const Encoder& e) {
  const auto& o = e.options;
  const nb::object dropout = nb::cast(o.dropout);
  made_inside(self, "self_attn",
              {{"embed_dim", nb::cast(e.d_model)},
               {"num_heads", nb::cast(e.nhead)},
               {"dropout", dropout},
               {"bias", nb::cast(o.bias)},
               {"kdim", nb::none()},
               {"vdim", nb::none()},
               {"batch_first", nb::cast(o.batch_first)}});
  const nb::object attention = attributes_of(self)["self_attn"];
  linear_inside(attention, "out_proj", e.d_model, e.d_model, o.bias);
  linear_inside(self, "linear1", e.d_model, o.dim_feedforward, o.bias);
  linear_inside(self, "linear2", o.dim_feedforward, e.d_model, o.bias);
  for (const char* name : {"norm1", "norm2"}) {
    made_inside(self, name,
                {{"normalized_shape", nb::make_tuple(e.d_model)},
                 {"eps", nb::cast(o.layer_norm_eps)},
                 {"elementwise_affine", nb::cast(true)},
                 {"bias", nb::cast(o.bias)}});
  }
  for (const char* name : {"dropout", "dropout1", "dropout2"}) {
    made_inside(self, name, {{"p", dropout}});
  }
}

void init_encoder(nb::pointer_and_handle<nn::TransformerEncoderLayer> self, std::int64_t d_model,
                  std::int64_t nhead, std::int64_t dim_feedforward, double dropout,
                  const std::string& activation, double layer_norm_eps, bool batch_first,
                  bool norm_first, bool bias, DTypeOption dtype) {
  const Encoder encoder = {d_model,
                           nhead,
                           {.dim_feedforward = dim_feedforward,
                            .dropout = dropout,
                            .activation = activation_from(activation, "TransformerEncoderLayer"),
                            .layer_norm_eps = layer_norm_eps,
                            .batch_first = batch_first,
                            .norm_first = norm_first,
                            .bias = bias}};
  auto* layer =
      new (static_cast<void*>(self.p)) nn::TransformerEncoderLayer(d_model, nhead, encoder.options);
  if (dtype) layer->to(*dtype);
  nb::dict arguments;
  arguments["d_model"] = d_model;
  arguments["nhead"] = nhead;
  arguments["dim_feedforward"] = dim_feedforward;
  arguments["dropout"] = dropout;
  arguments["activation"] = activation;
  arguments["layer_norm_eps"] = layer_norm_eps;
  arguments["batch_first"] = batch_first;
  arguments["norm_first"] = norm_first;
  arguments["bias"] = bias;
  layer_made(self.h, *layer, arguments);
  remember_parts(self.h, encoder);
}

void bind_encoder(nb::module_& nn) {
  Layer<nn::TransformerEncoderLayer> layer(
      nn, "TransformerEncoderLayer",
      R"(Self-attention and two linear layers, each with a residual and a LayerNorm.

>>> layer = bg.nn.TransformerEncoderLayer(8, 2, dim_feedforward=16, batch_first=True)
>>> layer(bg.ones((2, 5, 8))).shape
(2, 5, 8)
)");
  layer.type()
      .def("__init__", &init_encoder, nb::arg("d_model"), nb::arg("nhead"),
           nb::arg("dim_feedforward") = 2048, nb::arg("dropout") = 0.1,
           nb::arg("activation") = "relu", nb::arg("layer_norm_eps") = 1e-5,
           nb::arg("batch_first") = false, nb::arg("norm_first") = false, nb::arg("bias") = true,
           nb::kw_only(), nb::arg("dtype") = nb::none())
      .def(
          "forward",
          [](nn::TransformerEncoderLayer& self, const Tensor& src, MaybeTensor src_mask,
             MaybeTensor src_key_padding_mask, bool is_causal) {
            const nn::AttentionMasks masks = masks_of(src_key_padding_mask, src_mask, is_causal);
            return module_unlocked_if(true, [&] { return self.forward(src, masks); });
          },
          nb::arg("src"), nb::arg("src_mask") = nb::none(),
          nb::arg("src_key_padding_mask") = nb::none(), nb::arg("is_causal") = false,
          "What the layer computes; in masks, True means \"do not look\".");
}

}  // namespace

void bind_nn_attention(nb::module_& nn) {
  bind_attention(nn);
  bind_encoder(nn);
}

}  // namespace baregrad::python
