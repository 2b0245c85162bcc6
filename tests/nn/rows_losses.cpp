// Rows of golden.txt: losses, except cross-entropy, which is a fused op.
#include "tests/nn/support.h"

namespace baregrad {

using nn::make;

namespace {

template <class L>
GoldenRow loss(const std::string& name, std::function<std::shared_ptr<L>()> make_loss) {
  return row_of<L>(name, std::move(make_loss),
                   [](L& l, const Tensors& in) { return Tensors{l(in[0], in[1])}; });
}

void add_reductions(std::vector<GoldenRow>& rows) {
  const std::pair<const char*, Reduction> reductions[] = {
      {"_none", Reduction::None}, {"_mean", Reduction::Mean}, {"_sum", Reduction::Sum}};
  for (const auto& [ending, reduction] : reductions) {
    const std::string end = ending;
    const Reduction r = reduction;
    rows.push_back(loss<nn::MSELoss>("mse" + end, [r] { return make<nn::MSELoss>(r); }));
    rows.push_back(loss<nn::L1Loss>("l1" + end, [r] { return make<nn::L1Loss>(r); }));
    rows.push_back(
        loss<nn::SmoothL1Loss>("smooth_l1" + end, [r] { return make<nn::SmoothL1Loss>(r, 0.7); }));
    rows.push_back(loss<nn::HuberLoss>("huber" + end, [r] { return make<nn::HuberLoss>(r, 1.3); }));
    rows.push_back(loss<nn::BCELoss>("bce" + end, [r] { return make<nn::BCELoss>(Tensor(), r); }));
    rows.push_back(loss<nn::BCEWithLogitsLoss>(
        "bce_logits" + end, [r] { return make<nn::BCEWithLogitsLoss>(Tensor(), Tensor(), r); }));
    rows.push_back(loss<nn::NLLLoss>(
        "nll" + end, [r] { return make<nn::NLLLoss>(nn::NLLOptions{.reduction = r}); }));
    rows.push_back(loss<nn::KLDivLoss>("kl_div" + end, [r] { return make<nn::KLDivLoss>(r); }));
    rows.push_back(loss<nn::HingeEmbeddingLoss>(
        "hinge_embedding" + end, [r] { return make<nn::HingeEmbeddingLoss>(0.8, r); }));
    rows.push_back(loss<nn::MultiMarginLoss>("multi_margin" + end, [r] {
      return make<nn::MultiMarginLoss>(nn::MultiMarginOptions{.reduction = r});
    }));
    rows.push_back(row_of<nn::CosineEmbeddingLoss>(
        "cosine_embedding" + end, [r] { return make<nn::CosineEmbeddingLoss>(0.1, r); },
        [](nn::CosineEmbeddingLoss& l, const Tensors& in) {
          return Tensors{l(in[0], in[1], in[2])};
        }));
  }
}

}  // namespace

std::vector<GoldenRow> loss_rows() {
  std::vector<GoldenRow> rows = {
      function_row("bce_weight",
                   [](const Tensors& in) { return nn::binary_cross_entropy(in[0], in[1], in[2]); }),
      function_row("bce_edges",
                   [](const Tensors& in) {
                     return nn::binary_cross_entropy(in[0], in[1], Tensor(), Reduction::None);
                   }),
      loss<nn::BCEWithLogitsLoss>("bce_logits_weights",
                                  [] { return make<nn::BCEWithLogitsLoss>(ones({4}), ones({4})); }),
      function_row("bce_logits_large",
                   [](const Tensors& in) {
                     return nn::binary_cross_entropy_with_logits(in[0], in[1], Tensor(), Tensor(),
                                                                 Reduction::None);
                   }),
      loss<nn::NLLLoss>(
          "nll_weight_ignore",
          [] { return make<nn::NLLLoss>(nn::NLLOptions{.weight = ones({3}), .ignore_index = 1}); }),
      function_row("nll_single", [](const Tensors& in) { return nn::nll_loss(in[0], in[1]); }),
      function_row(
          "kl_div_log_target",
          [](const Tensors& in) { return nn::kl_div(in[0], in[1], Reduction::Sum, true); }),
      function_row("kl_div_zeros",
                   [](const Tensors& in) { return nn::kl_div(in[0], in[1], Reduction::Sum); }),
      loss<nn::MultiMarginLoss>("multi_margin_squares",
                                [] {
                                  return make<nn::MultiMarginLoss>(nn::MultiMarginOptions{
                                      .p = 2, .margin = 0.6, .weight = ones({3})});
                                }),
  };
  add_reductions(rows);
  return rows;
}

}  // namespace baregrad
