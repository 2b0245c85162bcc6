// Reading a State and collecting its problems.
#include "optim/values.h"

#include <charconv>
#include <utility>

#include "baregrad/error.h"
#include "core/message.h"
#include "optim/views.h"

namespace baregrad::optim {

StateReader::StateReader(const State& state, std::string who)
    : state_(state), who_(std::move(who)) {
  for (const NamedTensor& t : state.tensors) {
    if (!tensors_.emplace(t.name, &t.tensor).second) {
      add_problem("tensor '" + t.name + "' is there twice");
    }
  }
}

std::string StateReader::text(const std::string& name) {
  asked_.insert(name);
  const auto found = state_.values.find(name);
  if (found != state_.values.end()) return found->second;
  add_problem("'" + name + "' is missing");
  return {};
}

double StateReader::number(const std::string& name) {
  const bool there = state_.values.contains(name);
  const std::string value = text(name);
  double result = 0;
  const char* const end = value.data() + value.size();
  const auto read = std::from_chars(value.data(), end, result);
  if (read.ec == std::errc() && read.ptr == end) return result;
  if (there) add_problem("'" + name + "' is not a number: '" + value + "'");
  return 0;
}

std::int64_t StateReader::count(const std::string& name) {
  const bool there = state_.values.contains(name);
  const std::string value = text(name);
  std::int64_t result = 0;
  const char* const end = value.data() + value.size();
  const auto read = std::from_chars(value.data(), end, result);
  if (read.ec == std::errc() && read.ptr == end && result >= 0) return result;
  if (there) add_problem("'" + name + "' is not a whole number from 0: '" + value + "'");
  return 0;
}

void StateReader::expect(const std::string& name, const std::string& wanted) {
  const bool there = state_.values.contains(name);
  const std::string value = text(name);
  if (there && value != wanted) {
    add_problem("'" + name + "' is '" + value + "', not '" + wanted + "'");
  }
}

const Tensor* StateReader::tensor(const std::string& name, const Tensor& parameter) {
  const std::string wanted =
      message(baregrad::name(state_dtype(parameter.dtype())), to_string(parameter.shape()));
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) {
    add_problem("tensor '" + name + "' is missing: " + wanted);
    return nullptr;
  }
  const Tensor* const t = found->second;
  tensors_.erase(found);
  if (!t->defined() || !(t->shape() == parameter.shape()) || !is_floating(t->dtype())) {
    add_problem("tensor '" + name + "' is " + describe(*t) + ", not " + wanted);
  }
  return t;
}

void StateReader::add_problem(const std::string& problem) { problems_ += "\n  " + problem; }

void StateReader::finish() {
  for (const auto& [name, unused] : tensors_) {
    add_problem("tensor '" + name + "' is not expected");
  }
  tensors_.clear();
  for (const auto& [name, unused] : state_.values) {
    if (asked_.insert(name).second) add_problem("'" + name + "' is not expected");
  }
  if (!problems_.empty()) throw ValueError(who_ + ": the state does not fit:" + problems_);
}

}  // namespace baregrad::optim
