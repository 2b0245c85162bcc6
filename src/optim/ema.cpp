// Exponential moving averages of weights: one pass over averages and parameters.
#include "baregrad/autograd.h"
#include "baregrad/error.h"
#include "baregrad/ops.h"
#include "baregrad/optim.h"
#include "core/number_text.h"
#include "optim/step_calls.h"
#include "optim/values.h"
#include "optim/views.h"

namespace baregrad::optim {

struct EMA::Impl {
  Tensors params;
  Tensors averages;
  double decay;
  std::int64_t updates = 0;
  StepCalls calls;  // reused, so that updates do not allocate

  /// Parameters may have been converted or moved.
  void follow_parameters() {
    for (std::size_t i = 0; i < params.size(); ++i) {
      if (!lies_beside(averages[i], params[i])) averages[i] = beside(averages[i], params[i]);
    }
  }
};

namespace {

bool is_decay(double decay) noexcept { return decay >= 0 && decay <= 1; }
std::string key(std::size_t parameter) { return std::to_string(parameter) + ".average"; }

}  // namespace

EMA::EMA(Tensors params, double decay) : impl_(new Impl{std::move(params), {}, decay, 0, {}}) {
  if (!is_decay(decay)) {
    throw ValueError("EMA: decay is " + number_text(decay) + ", not in [0, 1]");
  }
  const no_grad off;
  for (std::size_t i = 0; i < impl_->params.size(); ++i) {
    const Tensor& t = impl_->params[i];
    check_parameter(t, i, "EMA");
    impl_->averages.push_back(astype(t.detach(), state_dtype(t.dtype()), /*copy=*/true));
  }
}
EMA::~EMA() = default;

double EMA::decay() const noexcept { return impl_->decay; }
const Tensors& EMA::averages() const noexcept { return impl_->averages; }
std::int64_t EMA::updates() const noexcept { return impl_->updates; }

void EMA::update() {
  Impl& im = *impl_;
  im.follow_parameters();
  im.calls.clear();
  StepNumbers numbers;
  numbers.rate1 = 1 - im.decay;
  im.calls.set_numbers(numbers);
  for (std::size_t i = 0; i < im.params.size(); ++i) {
    const Tensor* const tensors[] = {&im.averages[i], &im.params[i]};
    im.calls.add(StepRule::Lerp, tensors);
  }
  im.calls.run("EMA");
  ++im.updates;
}

void EMA::copy_to() const {
  for (std::size_t i = 0; i < impl_->params.size(); ++i) {
    const Tensor& t = impl_->params[i];
    t.detach().copy_(astype(impl_->averages[i], t.dtype()));
  }
}

void EMA::swap() {
  impl_->follow_parameters();
  // All copies are made before anything is written: an allocation may fail.
  Tensors values;
  for (const Tensor& t : impl_->params) {
    values.push_back(astype(t.detach(), state_dtype(t.dtype()), /*copy=*/true));
  }
  copy_to();
  for (std::size_t i = 0; i < values.size(); ++i) impl_->averages[i].copy_(values[i]);
}

State EMA::state() const {
  State state;
  state.values["decay"] = number_text(impl_->decay);
  state.values["updates"] = std::to_string(impl_->updates);
  for (std::size_t i = 0; i < impl_->averages.size(); ++i) {
    state.tensors.push_back({key(i), impl_->averages[i]});
  }
  return state;
}

void EMA::load_state(const State& state) {
  StateReader reader(state, "EMA.load_state");
  const double decay = reader.number("decay");
  if (!is_decay(decay)) reader.add_problem("'decay' is not in [0, 1]: " + number_text(decay));
  const std::int64_t updates = reader.count("updates");
  std::vector<const Tensor*> sources;
  for (std::size_t i = 0; i < impl_->params.size(); ++i) {
    sources.push_back(reader.tensor(key(i), impl_->params[i]));
  }
  reader.finish();
  Tensors averages;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    averages.push_back(beside(sources[i]->detach(), impl_->params[i]));
  }
  impl_->averages = std::move(averages);
  impl_->decay = decay;
  impl_->updates = updates;
}

}  // namespace baregrad::optim
