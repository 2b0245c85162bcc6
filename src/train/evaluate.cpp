// Loss, accuracy and confusion matrix of a network over a dataset.
#include "baregrad/autograd.h"
#include "baregrad/data_loader.h"
#include "baregrad/error.h"
#include "baregrad/ops.h"
#include "baregrad/ops_fused.h"
#include "baregrad/train.h"
#include "core/message.h"

namespace baregrad::train {

namespace {

/// Puts a module in eval mode until the end of the scope.
class EvalScope {
 public:
  explicit EvalScope(nn::Module& model) : model_(model), before_(model.is_training()) {
    model_.eval();
  }
  ~EvalScope() { model_.train(before_); }
  EvalScope(const EvalScope&) = delete;
  EvalScope& operator=(const EvalScope&) = delete;

 private:
  nn::Module& model_;
  bool before_;
};

}  // namespace

Evaluation evaluate(nn::Module& model, const data::DatasetPtr& dataset, int classes,
                    std::int64_t batch) {
  if (classes < 1) throw ValueError(message("evaluate: takes 1 class or more, not ", classes));
  const EvalScope eval(model);
  const no_grad off;
  const auto count = static_cast<std::size_t>(classes);
  Evaluation result;
  result.confusion.assign(count, std::vector<std::int64_t>(count, 0));
  data::DataLoader loader(dataset, {.batch_size = batch});
  for (const data::Batch& items : loader) {
    const Tensor logits = model(items.input);
    result.loss +=
        cross_entropy(logits, items.target, {.reduction = Reduction::Sum}).item<double>();
    const auto answers = argmax(logits, 1).to_vector<std::int64_t>();
    const auto truths = items.target.to(DType::Int64).to_vector<std::int64_t>();
    for (std::size_t i = 0; i < answers.size(); ++i) {
      if (truths[i] < 0 || truths[i] >= classes || answers[i] >= classes) {
        throw ValueError(message("evaluate: there are ", classes, " classes; the target is ",
                                 truths[i], ", the network's answer ", answers[i]));
      }
      ++result.confusion.at(static_cast<std::size_t>(truths[i]))
            .at(static_cast<std::size_t>(answers[i]));
    }
    result.items += items.size();
  }
  std::int64_t right = 0;
  for (std::size_t k = 0; k < count; ++k) right += result.confusion[k][k];
  const auto items = static_cast<double>(result.items);
  result.loss /= items;
  result.accuracy = static_cast<double>(right) / items;
  return result;
}

}  // namespace baregrad::train
