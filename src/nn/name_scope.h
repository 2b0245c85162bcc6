// Labels the ops recorded inside a module with its name.
#pragma once

#include <optional>

#include "baregrad/autograd.h"
#include "baregrad/nn/module.h"
#include "core/stack.h"

namespace baregrad::nn {

/// The work of Module::operator(), for forwards with more than one argument.
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
