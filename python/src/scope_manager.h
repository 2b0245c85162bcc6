// Scopes of the engine as context managers.
#pragma once

#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "baregrad/error.h"
#include "bindings.h"

namespace baregrad::python {

/// Opens a Scope with the same arguments at each entry. It may be nested in itself.
template <class Scope, class... Args>
class ScopeManager {
 public:
  explicit ScopeManager(Args... args) : args_(std::move(args)...) {}
  ScopeManager(const ScopeManager&) = delete;
  ScopeManager& operator=(const ScopeManager&) = delete;
  void enter() {
    scopes_.push_back(
        std::apply([](auto&... args) { return std::make_unique<Scope>(args...); }, args_));
  }
  void exit() {
    if (scopes_.empty()) throw ValueError("__exit__: this scope was not entered");
    scopes_.pop_back();
  }

 private:
  std::tuple<Args...> args_;
  std::vector<std::unique_ptr<Scope>> scopes_;
};

/// __enter__ and __exit__ of `Manager`.
template <class Manager>
void def_context_manager(nb::class_<Manager>& cls) {
  cls.def(
         "__enter__",
         [](nb::pointer_and_handle<Manager> self) {
           self.p->enter();
           return nb::borrow(self.h);
         },
         nb::sig("def __enter__(self) -> typing.Self"))
      .def(
          "__exit__", [](Manager& self, const nb::args&) { self.exit(); },
          nb::sig("def __exit__(self, *args: object) -> None"));
}

}  // namespace baregrad::python
