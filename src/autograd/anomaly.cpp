// Anomaly mode: who made the first NaN or infinity?
#include <atomic>
#include <type_traits>
#include <vector>

#include "autograd/node.h"
#include "baregrad/autograd.h"
#include "baregrad/error.h"
#include "baregrad/ops.h"
#include "core/message.h"
#include "ops/dispatch.h"
#include "ops/infer.h"
#include "ops/label.h"
#include "ops/watch.h"

namespace baregrad::autograd {

namespace {

/// Looking is done with ops, which are not looked at.
constinit thread_local bool looking = false;

bool all_finite(const Tensor& t) {
  if (!t.defined() || !is_floating(t.dtype())) return true;
  looking = true;
  struct Done {
    ~Done() { looking = false; }
  } const done;
  const GradModeScope off(false);
  return all(isfinite(t)).item<bool>();
}

std::string at_label(const char* label) {
  return label != nullptr ? message(" at \"", label, "\"") : std::string();
}

class Finder final : public watch::Watcher {
 public:
  void op_begins(const OpCall& call) override {
    if (looking) return;
    bool finite = true;
    for (const Tensor* t : call.inputs) finite &= all_finite(*t);
    clean().push_back(finite);
  }
  void op_ends(const OpCall& call, std::span<const Tensor> results) override {
    if (looking) return;
    const bool clean_inputs = clean().back();
    clean().pop_back();
    if (!clean_inputs || backwards() > 0) return;
    for (const Tensor& t : results) {
      if (all_finite(t)) continue;
      throw GradError(message("anomaly: ", call.name(), at_label(watch::current_label()),
                              " made a NaN or an infinity in its result ", describe(t), " out of ",
                              describe_inputs(call)));
    }
  }
  void op_failed() noexcept override {
    if (!looking && !clean().empty()) clean().pop_back();
  }
  void backward_begins(const char*, const char*, std::span<const Tensor> gradients) override {
    bool finite = true;
    for (const Tensor& t : gradients) finite &= all_finite(t);
    clean().push_back(finite);
    ++backwards();
  }
  void backward_ends(const char*) override { leave(); }
  void backward_failed() noexcept override { leave(); }
  void gradient_made(const char* op, const char* label, const Tensor& gradient) override {
    if (backwards() == 0 || !clean().back() || all_finite(gradient)) return;
    throw GradError(message("anomaly: the gradient of ", op, at_label(label),
                            " made a NaN or an infinity in ", describe(gradient),
                            " out of finite numbers"));
  }

 private:
  /// Of each op on the way, innermost last: were its inputs finite?
  static std::vector<bool>& clean() {
    static thread_local std::vector<bool> stack;
    return stack;
  }
  static int& backwards() {
    static constinit thread_local int depth = 0;
    return depth;
  }
  static void leave() noexcept {
    --backwards();
    clean().pop_back();
  }
};

std::atomic<int> scopes{0};

}  // namespace

AnomalyScope::AnomalyScope() noexcept {
  // Ops that began in the scope may end after the process has begun to exit.
  static_assert(std::is_trivially_destructible_v<Finder>);
  static constinit Finder finder;
  if (scopes.fetch_add(1) == 0) watch::set(watch::Slot::Anomaly, &finder);
}
AnomalyScope::~AnomalyScope() {
  if (scopes.fetch_sub(1) == 1) watch::unset(watch::Slot::Anomaly);
}

}  // namespace baregrad::autograd
