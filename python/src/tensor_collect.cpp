// The references of a tensor that Python's garbage collector visits: functions that its node keeps.
// Without them, a hook that refers to its own tensor would be a cycle that is never collected.
#include <utility>
#include <vector>

#include "autograd/owned.h"
#include "call.h"
#include "callbacks.h"
#include "nn_module.h"
#include "tensor_slots.h"

namespace baregrad::python {
namespace {

using autograd::Node;

/// `more`: the number of handles, besides the object's own, that belong to owners of the object.
Node* node_kept_by(PyObject* self, std::uint32_t more) noexcept {
  // The counts must not change during the collection.
  if (LockReleased::others_inside() || !nb::inst_ready(self)) return nullptr;
  const Tensor& tensor = *nb::inst_ptr<Tensor>(self);
  return tensor.defined() ? autograd::node_kept_by(tensor, self, more) : nullptr;
}

int visit_owner(const PythonOwner& owner, visitproc visit, void* arg) noexcept {
  if (owner.is_sole()) Py_VISIT(owner.get().ptr());
  return 0;
}

int visit_node(Node& node, visitproc visit, void* arg) noexcept {
  if (const autograd::Extras* extras = node.extras_if_any()) {
    for (const autograd::Extras::NumberedHook& numbered : extras->hooks) {
      const auto* hook = numbered.hook.target<PythonHook>();
      if (hook == nullptr) continue;
      if (const int stop = visit_owner(hook->function, visit, arg); stop != 0) return stop;
    }
  }
  if (autograd::Context* context = node.context()) {
    for (const PythonOwner* owner : owners_in(*context)) {
      if (const int stop = visit_owner(*owner, visit, arg); stop != 0) return stop;
    }
  }
  if (const auto* segment = node.segment()) {
    const auto* function = segment->target<PythonFunction>();
    if (function != nullptr) return visit_owner(function->function, visit, arg);
  }
  return 0;
}

/// Moves the functions out before dropping them: code that runs meanwhile sees a node without them.
void clear_node(Node& node) {
  std::vector<autograd::Extras::NumberedHook> hooks;
  if (node.extras_if_any() != nullptr) hooks.swap(node.extras().hooks);
  if (autograd::Context* context = node.context()) drop_owners(*context);
  if (node.segment() != nullptr) node.release();
}

int traverse_kept(PyObject* self, std::uint32_t more, visitproc visit, void* arg) noexcept {
  Py_VISIT(Py_TYPE(self));
  Node* node = node_kept_by(self, more);
  return node == nullptr ? 0 : visit_node(*node, visit, arg);
}

int clear_kept(PyObject* self, std::uint32_t more) noexcept {
  if (Node* node = node_kept_by(self, more)) {
    const Ref<GraphNode> alive = autograd::ref_to(*node);
    clear_node(*node);
  }
  return 0;
}

/// The module of a parameter has its own handles, and keeps the object in its __dict__.
constexpr std::uint32_t kHandlesOfModules = 2;

int traverse_parameter(PyObject* self, visitproc visit, void* arg) noexcept {
  if (PyObject** dict = _PyObject_GetDictPtr(self)) Py_VISIT(*dict);
  return traverse_kept(self, kHandlesOfModules, visit, arg);
}

int clear_parameter(PyObject* self) noexcept {
  if (PyObject** dict = _PyObject_GetDictPtr(self)) Py_CLEAR(*dict);
  return clear_kept(self, kHandlesOfModules);
}

}  // namespace

int traverse_tensor(PyObject* self, visitproc visit, void* arg) noexcept {
  return traverse_kept(self, 0, visit, arg);
}

int clear_tensor(PyObject* self) noexcept { return clear_kept(self, 0); }

PyType_Slot* parameter_slots() noexcept {
  static PyType_Slot slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(&traverse_parameter)},
                                {Py_tp_clear, reinterpret_cast<void*>(&clear_parameter)},
                                {0, nullptr}};
  return slots;
}

}  // namespace baregrad::python
