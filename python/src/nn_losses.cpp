// Losses as modules.
#include "baregrad/nn/losses.h"
#include "baregrad/ops.h"
#include "nn_bindings.h"
#include "nn_choices.h"
#include "nn_module.h"

namespace baregrad::python {
namespace {

using Word = std::string;
using MaybeTensor = std::optional<Tensor>;

/// forward(input, target).
template <class L>
void def_forward(Layer<L>& layer) {
  layer.type().def(
      "forward",
      [](L& self, const Tensor& input, const Tensor& target) {
        return module_unlocked_if(input.numel() > kLongWork,
                                  [&] { return self.L::forward(input, target); });
      },
      nb::arg("input"), nb::arg("target"), "The loss; call the module itself instead.");
}

template <class L>
void bind_plain(nb::module_& nn, const char* name, const char* doc) {
  Layer<L> layer(nn, name, doc);
  layer.init(
      +[](void* place, Word reduction) { new (place) L(reduction_from(reduction, "Loss")); },
      nb::kw_only(), nb::arg("reduction") = "mean");
  def_forward(layer);
}

/// A loss with one number and a reduction, which is the first argument in C++.
template <class L>
void bind_with_number(nb::module_& nn, const char* name, const char* number, const char* doc) {
  Layer<L> layer(nn, name, doc);
  layer.init(
      +[](void* place, Word reduction, double value) {
        new (place) L(reduction_from(reduction, "Loss"), value);
      },
      nb::kw_only(), nb::arg("reduction") = "mean", nb::arg(number) = 1.0);
  def_forward(layer);
}

void bind_regression(nb::module_& nn) {
  bind_plain<nn::MSELoss>(nn, "MSELoss",
                          "(x - t)^2.\n\n"
                          ">>> bg.nn.MSELoss()(bg.ones(2), bg.asarray([1.0, 3.0]))\n"
                          "tensor(2.)\n");
  bind_plain<nn::L1Loss>(nn, "L1Loss",
                         "|x - t|.\n\n"
                         ">>> bg.nn.L1Loss()(bg.ones(2), bg.asarray([1.0, 3.0]))\ntensor(1.)\n");
  bind_with_number<nn::SmoothL1Loss>(
      nn, "SmoothL1Loss", "beta",
      "d^2 / (2 beta) where d = |x - t| is below beta, else d - beta / 2.\n\n"
      ">>> bg.nn.SmoothL1Loss()(bg.ones(1), bg.asarray([3.0]))\ntensor(1.5000)\n");
  bind_with_number<nn::HuberLoss>(
      nn, "HuberLoss", "delta",
      "d^2 / 2 where d = |x - t| is below delta, else delta (d - delta / 2).\n\n"
      ">>> bg.nn.HuberLoss()(bg.ones(1), bg.asarray([3.0]))\ntensor(1.5000)\n");
}

void bind_binary(nb::module_& nn) {
  Layer<nn::BCELoss> bce(nn, "BCELoss", R"(-t log x - (1 - t) log(1 - x), x probabilities.

>>> bg.nn.BCELoss()(bg.asarray([1.0]), bg.asarray([1.0])).item()
0.0
)");
  bce.tensor("weight", "Broadcasts against the input, or None.")
      .init(
          +[](void* place, MaybeTensor weight, Word reduction) {
            new (place) nn::BCELoss(tensor_or_none(weight), reduction_from(reduction, "BCELoss"));
          },
          nb::arg("weight") = nb::none(), nb::kw_only(), nb::arg("reduction") = "mean");
  def_forward(bce);
  Layer<nn::BCEWithLogitsLoss> logits(nn, "BCEWithLogitsLoss",
                                      R"(BCELoss of sigmoid(x), exact for large x.

>>> bg.nn.BCEWithLogitsLoss()(bg.asarray([0.0]), bg.asarray([1.0]))
tensor(0.6931)
)");
  logits.tensor("weight", "Broadcasts against the input, or None.")
      .tensor("pos_weight", "Multiplies what positive targets cost, or None.")
      .init(
          +[](void* place, MaybeTensor weight, Word reduction, MaybeTensor pos_weight) {
            new (place) nn::BCEWithLogitsLoss(tensor_or_none(weight), tensor_or_none(pos_weight),
                                              reduction_from(reduction, "BCEWithLogitsLoss"));
          },
          nb::arg("weight") = nb::none(), nb::kw_only(), nb::arg("reduction") = "mean",
          nb::arg("pos_weight") = nb::none());
  def_forward(logits);
}

void bind_classes(nb::module_& nn) {
  Layer<nn::CrossEntropyLoss> entropy(
      nn, "CrossEntropyLoss",
      R"(-log softmax(x)[target]: of logits [N, C, ...] and classes or probabilities.

>>> loss = bg.nn.CrossEntropyLoss()
>>> loss(bg.asarray([[0.0, 100.0]]), bg.asarray([1])).item()
0.0
)");
  entropy.tensor("weight", "[C], or None.")
      .init(
          +[](void* place, MaybeTensor weight, std::int64_t ignore_index, Word reduction,
              double label_smoothing) {
            new (place)
                nn::CrossEntropyLoss({.weight = tensor_or_none(weight),
                                      .ignore_index = ignore_index,
                                      .label_smoothing = label_smoothing,
                                      .reduction = reduction_from(reduction, "CrossEntropyLoss")});
          },
          nb::arg("weight") = nb::none(), nb::kw_only(), nb::arg("ignore_index") = -100,
          nb::arg("reduction") = "mean", nb::arg("label_smoothing") = 0.0);
  def_forward(entropy);
  Layer<nn::NLLLoss> nll(nn, "NLLLoss", R"(-x[target], x log-probabilities [N, C, ...].

>>> bg.nn.NLLLoss()(bg.asarray([[-1.0, -2.0]]), bg.asarray([1]))
tensor(2.)
)");
  nll.tensor("weight", "[C], or None.")
      .init(
          +[](void* place, MaybeTensor weight, std::int64_t ignore_index, Word reduction) {
            new (place) nn::NLLLoss({.weight = tensor_or_none(weight),
                                     .ignore_index = ignore_index,
                                     .reduction = reduction_from(reduction, "NLLLoss")});
          },
          nb::arg("weight") = nb::none(), nb::kw_only(), nb::arg("ignore_index") = -100,
          nb::arg("reduction") = "mean");
  def_forward(nll);
  Layer<nn::MultiMarginLoss> hinge(
      nn, "MultiMarginLoss",
      R"(The hinge of several classes: sum of max(0, margin - x[t] + x[j])^p / C.

>>> bg.nn.MultiMarginLoss()(bg.asarray([[0.0, 2.0]]), bg.asarray([1]))
tensor(0.)
)");
  hinge.tensor("weight", "[C], or None.")
      .init(
          +[](void* place, int p, double margin, MaybeTensor weight, Word reduction) {
            new (place)
                nn::MultiMarginLoss({.p = p,
                                     .margin = margin,
                                     .weight = tensor_or_none(weight),
                                     .reduction = reduction_from(reduction, "MultiMarginLoss")});
          },
          nb::arg("p") = 1, nb::arg("margin") = 1.0, nb::arg("weight") = nb::none(), nb::kw_only(),
          nb::arg("reduction") = "mean");
  def_forward(hinge);
}

void bind_divergence(nb::module_& nn) {
  Layer<nn::KLDivLoss> layer(nn, "KLDivLoss", R"(t (log t - x), x log-probabilities.

The reduction "batchmean" is the sum divided by the size of the batch.

>>> bg.nn.KLDivLoss(reduction="batchmean")(bg.asarray([[0.0]]), bg.asarray([[1.0]])).item()
0.0
)");
  layer.init(
      +[](void* place, Word reduction, bool log_target) {
        const bool batch = reduction == "batchmean";
        new (place) nn::KLDivLoss(batch ? Reduction::Sum : reduction_from(reduction, "KLDivLoss"),
                                  log_target);
      },
      nb::kw_only(), nb::arg("reduction") = "mean", nb::arg("log_target") = false);
  layer.type().def(
      "forward",
      [](nb::handle self, const Tensor& input, const Tensor& target) {
        auto& loss = static_cast<nn::KLDivLoss&>(module_in(self));
        const bool batch = nb::cast<std::string>(self.attr("reduction")) == "batchmean";
        return module_unlocked_if(input.numel() > kLongWork, [&] {
          const Tensor sum = loss.nn::KLDivLoss::forward(input, target);
          return batch ? sum / input.size(0) : sum;
        });
      },
      nb::arg("input"), nb::arg("target"), "The loss; call the module itself instead.");
}

void bind_embedding_loss_layers(nb::module_& nn) {
  Layer<nn::HingeEmbeddingLoss> hinge(nn, "HingeEmbeddingLoss",
                                      R"(x where the target is 1, max(0, margin - x) where it is -1.

>>> bg.nn.HingeEmbeddingLoss()(bg.asarray([3.0]), bg.asarray([1.0]))
tensor(3.)
)");
  hinge.init(
      +[](void* place, double margin, Word reduction) {
        new (place) nn::HingeEmbeddingLoss(margin, reduction_from(reduction, "HingeEmbeddingLoss"));
      },
      nb::arg("margin") = 1.0, nb::kw_only(), nb::arg("reduction") = "mean");
  def_forward(hinge);
  Layer<nn::CosineEmbeddingLoss> cosine(
      nn, "CosineEmbeddingLoss",
      R"(1 - cos(a, b) where the target is 1, max(0, cos(a, b) - margin) where it is -1.

>>> x = bg.ones((1, 3))
>>> abs(bg.nn.CosineEmbeddingLoss()(x, x, bg.ones(1)).item()) < 1e-6
True
)");
  cosine.init(
      +[](void* place, double margin, Word reduction) {
        new (place)
            nn::CosineEmbeddingLoss(margin, reduction_from(reduction, "CosineEmbeddingLoss"));
      },
      nb::arg("margin") = 0.0, nb::kw_only(), nb::arg("reduction") = "mean");
  cosine.type().def(
      "forward",
      [](nn::CosineEmbeddingLoss& self, const Tensor& a, const Tensor& b, const Tensor& target) {
        return module_unlocked_if(a.numel() > kLongWork,
                                  [&] { return self.forward(a, b, target); });
      },
      nb::arg("input1"), nb::arg("input2"), nb::arg("target"),
      "The loss; call the module itself instead.");
}

}  // namespace

void bind_nn_losses(nb::module_& nn) {
  bind_regression(nn);
  bind_binary(nn);
  bind_classes(nn);
  bind_divergence(nn);
  bind_embedding_loss_layers(nn);
}

}  // namespace baregrad::python
