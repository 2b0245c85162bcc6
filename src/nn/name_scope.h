// The name of a module on the ops recorded inside it.
#pragma once

#include <optional>

#include "baregrad/autograd.h"
#include "baregrad/nn/module.h"
#include "core/stack.h"

namespace baregrad::nn {

/// What Module::operator() does for a forward of one tensor; for those that take more.
class NameScope {
 public:
  explicit NameScope(const Module& module) {
    check_stack("Module");
    if (!module.name().empty() && autograd::is_grad_enabled()) label_.emplace(module.name());
  }

 private:
  std::optional<autograd::Label> label_;
};

}  // namespace baregrad::nn
