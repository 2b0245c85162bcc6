// Recording the norms of gradients while backward runs.
#include "graph/gradients.h"

#include <algorithm>
#include <cmath>

#include "autograd/record.h"
#include "baregrad/autograd.h"
#include "baregrad/error.h"
#include "baregrad/ops.h"
#include "core/fork.h"
#include "core/host.h"
#include "core/made_once.h"
#include "ops/watch.h"

namespace baregrad::graph {

namespace {

/// All recorders of the process: backward may run in any thread.
struct Registry final : detail::ForkParticipant {
  std::mutex mutex;
  std::vector<GradientNorms*> live;

  void before_fork() noexcept override { mutex.lock(); }
  void after_fork(bool) noexcept override { mutex.unlock(); }
};
constinit Eternal<Registry> g_recorders;
[[maybe_unused]] const bool g_recorders_added =
    (detail::add_fork_participant(g_recorders.value), true);
Registry& registry() noexcept { return g_recorders.value; }

class NormWatcher final : public watch::Watcher {
 public:
  void gradients_arrived(std::uint64_t node, std::span<const Tensor> gradients) override {
    for (std::size_t k = 0; k < gradients.size(); ++k) {
      if (!gradients[k].defined()) continue;
      const double norm = norm_of(gradients[k]);
      const std::lock_guard lock(registry().mutex);
      for (GradientNorms* norms : registry().live) norms->set(node, k, norm);
    }
  }
};
constinit Eternal<NormWatcher> g_norm_watcher;

}  // namespace

double norm_of(const Tensor& t) {
  const no_grad off;
  // In plain loops, not in ops: a search for anomalies that runs too would report an overflow here.
  const Tensor values = contiguous(astype(t, DType::Float64));
  const HostRead here(values);
  const std::span<const double> x(here.as<double>(), static_cast<std::size_t>(values.numel()));
  double greatest = 0;
  for (const double v : x) {
    if (std::isnan(v)) return v;
    greatest = std::max(greatest, std::abs(v));
  }
  if (greatest == 0 || std::isinf(greatest)) return greatest;
  double sum = 0;
  for (const double v : x) sum += (v / greatest) * (v / greatest);
  return greatest * std::sqrt(sum);
}

void GradientNorms::set(std::uint64_t node, std::size_t output, double norm) {
  const std::lock_guard lock(mutex_);
  norms_[key(node, output)] = norm;
}

std::optional<double> GradientNorms::find(std::uint64_t node, std::size_t output) const {
  const std::lock_guard lock(mutex_);
  const auto found = norms_.find(key(node, output));
  if (found == norms_.end()) return {};
  return found->second;
}

std::size_t GradientNorms::size() const {
  const std::lock_guard lock(mutex_);
  return norms_.size();
}

void GradientNorms::clear() {
  const std::lock_guard lock(mutex_);
  norms_.clear();
}

GradientRecorder::GradientRecorder() : norms_(std::make_unique<GradientNorms>()) {
  const std::lock_guard lock(registry().mutex);
  registry().live.push_back(norms_.get());
  watch::set(watch::Slot::Gradients, &g_norm_watcher.value);
}

GradientRecorder::~GradientRecorder() { stop(); }

void GradientRecorder::stop() noexcept {
  const std::lock_guard lock(registry().mutex);
  if (std::erase(registry().live, norms_.get()) != 0 && registry().live.empty()) {
    watch::unset(watch::Slot::Gradients);
  }
}

std::optional<double> GradientRecorder::norm(const Tensor& t) const {
  if (!t.defined()) throw ValueError("GradientRecorder::norm: the tensor is undefined");
  const autograd::Edge edge = autograd::edge_of(t);
  if (!edge) return {};
  return norms_->find(edge->number(), edge.output);
}

std::size_t GradientRecorder::size() const { return norms_->size(); }
void GradientRecorder::clear() { norms_->clear(); }

}  // namespace baregrad::graph
