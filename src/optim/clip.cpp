// Clipping of gradients: one pass sums their squares, a second one scales them.
#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "baregrad/autograd.h"
#include "baregrad/error.h"
#include "baregrad/ops.h"
#include "baregrad/optim.h"
#include "core/message.h"
#include "core/number_text.h"
#include "core/per_thread.h"
#include "core/place.h"
#include "ops/dispatch.h"
#include "optim/step_calls.h"
#include "optim/views.h"

namespace baregrad::optim {

namespace {

/// The gradients of the parameters, in their order. A gradient that two parameters share is listed
/// once.
class Gradients {
 public:
  /// Replaces expanded gradients by copies: several of their elements share memory, so they cannot
  /// be written in place.
  void gather(const Tensors& params, const char* who) {
    gradients_.clear();
    places_.clear();
    for (std::size_t i = 0; i < params.size(); ++i) {
      if (!params[i].defined()) throw ValueError(message(who, ": parameter ", i, " is undefined"));
      Tensor gradient = params[i].grad();
      if (!gradient.defined() || gradient.numel() == 0) continue;
      if (gradient.layout().may_self_overlap()) {
        gradient = clone(gradient.detach());
        params[i].set_grad(gradient);
      }
      places_.emplace_back(place_of(gradient), gradients_.size());
      gradients_.push_back(std::move(gradient));
    }
    std::sort(places_.begin(), places_.end());
    for (std::size_t i = 1; i < places_.size(); ++i) {
      if (places_[i].first == places_[i - 1].first) gradients_[places_[i].second] = Tensor();
    }
    std::erase_if(gradients_, [](const Tensor& t) { return !t.defined(); });
  }

  double square_sum(const char* who) {
    if (gradients_.empty()) return 0;
    pointers_.clear();
    for (const Tensor& gradient : gradients_) pointers_.push_back(&gradient);
    const no_grad unrecorded;
    return baregrad::run({OpId::square_sum_of_all, pointers_, {}, who}).item<double>();
  }

  void run(StepRule rule, double number, const char* who) {
    StepNumbers numbers;
    numbers.lr = number;
    calls_.clear();
    calls_.set_numbers(numbers);
    for (const Tensor& gradient : gradients_) {
      const Tensor* const tensors[] = {&gradient};
      calls_.add(rule, tensors);
    }
    calls_.run(who);
  }

  /// Releases the tensors and keeps the memory of the lists.
  void clear() noexcept { gradients_.clear(); }

 private:
  StepCalls calls_;
  std::vector<const Tensor*> pointers_;
  Tensors gradients_;
  std::vector<std::pair<const void*, std::size_t>> places_;
};

/// The lists of this thread. Their memory is reused, so clipping in every step does not allocate.
class GradientsScope {
 public:
  GradientsScope(const Tensors& params, const char* who) {
    if (gradients_ == nullptr) gradients_ = &own_.emplace();
    gradients_->gather(params, who);
  }
  ~GradientsScope() { gradients_->clear(); }
  GradientsScope(const GradientsScope&) = delete;
  GradientsScope& operator=(const GradientsScope&) = delete;
  Gradients* operator->() const noexcept { return gradients_; }

 private:
  Gradients* gradients_ = PerThread<Gradients>::get();
  std::optional<Gradients> own_;  // during thread exit, when the thread's lists are gone
};

}  // namespace

double clip_grad_norm_(const Tensors& params, double max_norm, bool error_if_nonfinite) {
  constexpr const char* kWho = "clip_grad_norm_";
  if (!(max_norm >= 0)) {
    throw ValueError(message(kWho, ": max_norm is ", number_text(max_norm), ", not at least 0"));
  }
  const GradientsScope gradients(params, kWho);
  const double norm = std::sqrt(gradients->square_sum(kWho));
  if (error_if_nonfinite && !std::isfinite(norm)) {
    throw ValueError(message(kWho, ": the norm of the gradients of ", params.size(),
                             " parameters is ", number_text(norm), "; nothing was changed"));
  }
  const double factor = max_norm / (norm + 1e-6);
  // Written so that a NaN scales the gradients too.
  if (!(factor >= 1)) gradients->run(StepRule::Scale, factor, kWho);
  return norm;
}

void clip_grad_value_(const Tensors& params, double limit) {
  constexpr const char* kWho = "clip_grad_value_";
  if (!(limit >= 0)) {
    throw ValueError(message(kWho, ": the limit is ", number_text(limit), ", not at least 0"));
  }
  const GradientsScope gradients(params, kWho);
  gradients->run(StepRule::Clamp, limit, kWho);
}

}  // namespace baregrad::optim
