// optim/: optimizers and schedules, on the fused step kernels and public ops.
//
// Here: a reader of a State that collects all problems, so that one error can list them.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "baregrad/state.h"

namespace baregrad::optim {

class StateReader {
 public:
  /// `who` opens the message; the state must outlive the reader.
  StateReader(const State& state, std::string who);

  /// A value; "", 0 where it is missing or cannot be read.
  std::string text(const std::string& name);
  double number(const std::string& name);
  std::int64_t count(const std::string& name);  ///< 0 or more
  /// A value that must be this one.
  void expect(const std::string& name, const std::string& wanted);
  /// A state tensor of a parameter: floating and of its shape. Null where it is missing.
  const Tensor* tensor(const std::string& name, const Tensor& parameter);

  void add_problem(const std::string& problem);
  /// Throws ValueError if there was a problem. An entry that was not read is a problem too.
  void finish();

 private:
  const State& state_;
  std::string who_;
  std::string problems_;
  std::set<std::string> asked_;
  std::map<std::string, const Tensor*> tensors_;  // not read yet
};

}  // namespace baregrad::optim
