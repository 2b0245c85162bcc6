// Normalisation as layers.
#include "baregrad/nn/norm.h"
#include "nn_bindings.h"
#include "nn_module.h"

namespace baregrad::python {
namespace {

void bind_layer_norm(nb::module_& nn) {
  Layer<nn::LayerNorm>(nn, "LayerNorm",
                       R"(Mean 0 and variance 1 over the last axes, then weight and bias.

>>> bg.nn.LayerNorm(4)(bg.ones((2, 4))).shape
(2, 4)
)")
      .tensor("weight", "Of the normalized shape, or None.")
      .tensor("bias", "Of the normalized shape, or None.")
      .init(
          +[](void* place, Dims shape, double eps, bool affine, bool bias, DTypeOption dtype) {
            auto* layer =
                new (place) nn::LayerNorm(shape, {.eps = eps, .affine = affine, .bias = bias});
            if (dtype) layer->to(*dtype);
          },
          nb::arg("normalized_shape"), nb::arg("eps") = 1e-5, nb::arg("elementwise_affine") = true,
          nb::arg("bias") = true, nb::kw_only(), nb::arg("dtype") = nb::none())
      .forward();
}

void bind_rms_norm(nb::module_& nn) {
  Layer<nn::RMSNorm>(nn, "RMSNorm", R"(x / sqrt(mean(x^2) + eps) * weight over the last axes.

eps is the dtype's epsilon when not given.

>>> bg.nn.RMSNorm(2)(bg.ones((3, 2))).shape
(3, 2)
)")
      .tensor("weight", "Of the normalized shape, or None.")
      .init(
          +[](void* place, Dims shape, std::optional<double> eps, bool affine, DTypeOption dtype) {
            auto* layer = new (place) nn::RMSNorm(shape, eps, affine);
            if (dtype) layer->to(*dtype);
          },
          nb::arg("normalized_shape"), nb::arg("eps") = nb::none(),
          nb::arg("elementwise_affine") = true, nb::kw_only(), nb::arg("dtype") = nb::none())
      .forward();
}

void bind_group_norm(nb::module_& nn) {
  Layer<nn::GroupNorm>(nn, "GroupNorm",
                       R"(Mean 0 and variance 1 over each group of channels of [N, C, ...].

>>> bg.nn.GroupNorm(2, 6)(bg.ones((1, 6, 4, 4))).shape
(1, 6, 4, 4)
)")
      .tensor("weight", "[num_channels], or None.")
      .tensor("bias", "[num_channels], or None.")
      .init(
          +[](void* place, std::int64_t groups, std::int64_t channels, double eps, bool affine,
              DTypeOption dtype) {
            auto* layer =
                new (place) nn::GroupNorm(groups, channels, {.eps = eps, .affine = affine});
            if (dtype) layer->to(*dtype);
          },
          nb::arg("num_groups"), nb::arg("num_channels"), nb::arg("eps") = 1e-5,
          nb::arg("affine") = true, nb::kw_only(), nb::arg("dtype") = nb::none())
      .forward();
}

template <class L>
void bind_batch_norm(nb::module_& nn, const char* name, const char* doc) {
  Layer<L>(nn, name, doc)
      .tensor("weight", "[num_features], or None.")
      .tensor("bias", "[num_features], or None.")
      .tensor("running_mean", "Of the batches seen in training, or None.")
      .tensor("running_var", "Of the batches seen in training, or None.")
      .tensor("num_batches_tracked", "How many batches were seen, or None.")
      .init(
          +[](void* place, std::int64_t features, double eps, std::optional<double> momentum,
              bool affine, bool track, DTypeOption dtype) {
            auto* layer = new (place) L(
                features,
                {.eps = eps, .momentum = momentum, .affine = affine, .track_running_stats = track});
            if (dtype) layer->to(*dtype);
          },
          nb::arg("num_features"), nb::arg("eps") = 1e-5, nb::arg("momentum").none() = 0.1,
          nb::arg("affine") = true, nb::arg("track_running_stats") = true, nb::kw_only(),
          nb::arg("dtype") = nb::none())
      .forward();
}

}  // namespace

void bind_nn_norm(nb::module_& nn) {
  bind_layer_norm(nn);
  bind_rms_norm(nn);
  bind_group_norm(nn);
  bind_batch_norm<nn::BatchNorm1d>(nn, "BatchNorm1d",
                                   R"(Mean 0 and variance 1 over the batch, of [N, C] or [N, C, L].

In eval mode by the running statistics.

>>> bg.nn.BatchNorm1d(3)(bg.ones((4, 3))).shape
(4, 3)
)");
  bind_batch_norm<nn::BatchNorm2d>(nn, "BatchNorm2d",
                                   R"(Mean 0 and variance 1 over the batch, of [N, C, H, W].

In eval mode by the running statistics.

>>> bg.nn.BatchNorm2d(3)(bg.ones((4, 3, 5, 5))).shape
(4, 3, 5, 5)
)");
}

}  // namespace baregrad::python
