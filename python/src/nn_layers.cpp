// Linear, Embedding, Dropout, Flatten, Identity, MLP, Sequential.
#include <algorithm>

#include "baregrad/error.h"
#include "baregrad/nn/layers.h"
#include "nn_bindings.h"
#include "nn_choices.h"
#include "nn_module.h"

namespace baregrad::python {
namespace {

using MaybeWord = std::optional<std::string>;

void bind_linear(nb::module_& nn) {
  Layer<nn::Linear>(nn, "Linear", R"(act(x W^T + b) over the last axis.

The activation ("relu", "gelu", "gelu_tanh", "silu") happens inside the product.

>>> layer = bg.nn.Linear(3, 2)
>>> layer
Linear(in_features=3, out_features=2, bias=True)
>>> layer(bg.ones((5, 3))).shape
(5, 2)
)")
      .tensor("weight", "[out_features, in_features].")
      .tensor("bias", "[out_features], or None.")
      .init(
          +[](void* place, std::int64_t in, std::int64_t out, bool bias, MaybeWord activation,
              DTypeOption dtype) {
            auto* layer =
                new (place) nn::Linear(in, out, bias, activation_from(activation, "Linear"));
            if (dtype) layer->to(*dtype);
          },
          nb::arg("in_features"), nb::arg("out_features"), nb::arg("bias") = true,
          nb::arg("activation") = nb::none(), nb::arg("dtype") = nb::none())
      .forward();
}

void bind_embedding(nb::module_& nn) {
  Layer<nn::Embedding>(nn, "Embedding", R"(Rows of a table by integers of any shape.

The row padding_idx begins as zeros and gets no gradient.

>>> bg.nn.Embedding(10, 4)(bg.ones((2, 3), dtype=bg.int64)).shape
(2, 3, 4)
)")
      .tensor("weight", "[num_embeddings, embedding_dim].")
      .init(
          +[](void* place, std::int64_t count, std::int64_t size,
              std::optional<std::int64_t> padding_idx, DTypeOption dtype) {
            auto* layer = new (place) nn::Embedding(count, size, padding_idx);
            if (dtype) layer->to(*dtype);
          },
          nb::arg("num_embeddings"), nb::arg("embedding_dim"), nb::arg("padding_idx") = nb::none(),
          nb::kw_only(), nb::arg("dtype") = nb::none())
      .forward();
}

void bind_small(nb::module_& nn) {
  Layer<nn::Dropout>(nn, "Dropout",
                     R"(In training: each element is 0 with probability p, else divided by 1 - p.

>>> bg.nn.Dropout(0.5).eval()(bg.ones(3))
tensor([1., 1., 1.])
)")
      .init_from_arguments()
      .forward();
  Layer<nn::Flatten>(nn, "Flatten", R"(Joins the axes from start_dim to end_dim into one.

>>> bg.nn.Flatten()(bg.ones((2, 3, 4))).shape
(2, 12)
)")
      .init_from_arguments()
      .forward();
  Layer<nn::Identity>(nn, "Identity", R"(Gives back what it is given.

>>> bg.nn.Identity()(bg.ones(2))
tensor([1., 1.])
)")
      .init_from_arguments()
      .forward();
}

// ---- MLP ----------------------------------------------------------------------------------------

void init_mlp(nb::pointer_and_handle<nn::MLP> self, const std::vector<std::int64_t>& sizes,
              const std::string& activation, double dropout, bool bias, DTypeOption dtype) {
  auto* layer = new (static_cast<void*>(self.p)) nn::MLP(
      sizes, {.activation = activation_from(activation, "MLP"), .dropout = dropout, .bias = bias});
  if (dtype) layer->to(*dtype);
  nb::dict arguments;
  arguments["sizes"] = nb::tuple(nb::cast(sizes));
  arguments["activation"] = activation;
  arguments["dropout"] = dropout;
  arguments["bias"] = bias;
  layer_made(self.h, *layer, arguments);
  for (std::size_t i = 0; i + 1 < sizes.size(); ++i) {
    const bool last = i + 2 == sizes.size();
    made_inside(self.h, std::to_string(i).c_str(),
                {{"in_features", nb::cast(sizes[i])},
                 {"out_features", nb::cast(sizes[i + 1])},
                 {"bias", nb::cast(bias)},
                 {"activation", last ? nb::none() : nb::object(nb::cast(activation))}});
  }
  if (dropout != 0.0) made_inside(self.h, "dropout", {{"p", nb::cast(dropout)}});
}

void bind_mlp(nb::module_& nn) {
  Layer<nn::MLP> mlp(nn, "MLP", R"(Linear layers with an activation after every one but the last.

>>> bg.nn.MLP([2, 16, 1])
MLP(
  (0): Linear(in_features=2, out_features=16, bias=True, activation=relu)
  (1): Linear(in_features=16, out_features=1, bias=True)
)
)");
  mlp.forward().type().def("__init__", &init_mlp, nb::arg("sizes"), nb::arg("activation") = "relu",
                           nb::arg("dropout") = 0.0, nb::arg("bias") = true, nb::kw_only(),
                           nb::arg("dtype") = nb::none());
  mlp.argument("sizes").argument("activation");
}

// ---- Sequential ---------------------------------------------------------------------------------

/// From modules as positional arguments, or from one dictionary of modules.
void init_sequential(nb::pointer_and_handle<nn::Sequential> self, const nb::args& modules) {
  auto* made = new (static_cast<void*>(self.p)) nn::Sequential();
  layer_made(self.h, *made, nb::dict());
  const nb::dict attributes = attributes_of(self.h);
  const auto add = [&](const std::string& name, nb::handle module) {
    if (maybe_module(module) == nullptr) {
      throw nb::type_error((std::string("Sequential: '") + Py_TYPE(module.ptr())->tp_name +
                            "' is no Module; give modules one by one, or one dictionary of them")
                               .c_str());
    }
    {
      const ModuleChange change;
      made->push_back(name, nb::cast<nn::ModulePtr>(module));
    }
    attributes[name.c_str()] = module;
  };
  if (modules.size() == 1 && nb::isinstance<nb::dict>(modules[0])) {
    for (const auto& [name, module] : entries_of(modules[0])) add(text_of(name), module);
    return;
  }
  for (std::size_t i = 0; i < modules.size(); ++i) add(std::to_string(i), modules[i]);
}

std::size_t position_in(std::size_t count, std::int64_t position) {
  const auto size = static_cast<std::int64_t>(count);
  const std::int64_t at = position < 0 ? position + size : position;
  if (at < 0 || at >= size) {
    throw nb::index_error(("Sequential: position " + std::to_string(position) + " of " +
                           std::to_string(size) + " modules")
                              .c_str());
  }
  return static_cast<std::size_t>(at);
}

/// As lists take positions: IndexError for what no list is long enough for.
std::int64_t integer_in(nb::handle index) {
  const Py_ssize_t at = PyNumber_AsSsize_t(index.ptr(), PyExc_IndexError);
  if (at == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
  return at;
}

std::string name_at(const nn::Sequential& self, std::int64_t position) {
  return self.children()[position_in(self.size(), position)].first;
}

/// The positions of the children in a slice.
std::vector<std::size_t> positions_of(const nb::slice& slice, std::size_t size) {
  const auto [start, stop, step, count] = slice.compute(size);
  std::vector<std::size_t> positions;
  for (std::size_t i = 0; i < count; ++i) {
    positions.push_back(static_cast<std::size_t>(start + static_cast<Py_ssize_t>(i) * step));
  }
  return positions;
}

nb::object slice_of(nb::handle self, const nn::Sequential& modules, const nb::slice& slice) {
  const auto children = modules.children();
  nb::dict picked;
  for (const std::size_t at : positions_of(slice, children.size())) {
    picked[python_text(children[at].first)] = module_object(children[at].second);
  }
  return self.type()(picked);
}

nn::Sequential& sequential_in(nb::handle self) {
  return static_cast<nn::Sequential&>(module_in(self));
}

using Items = std::vector<nb::object>;

Items items_in(nb::handle self) {
  Items items;
  const auto children = module_in(self).children();
  for (const auto& [name, child] : children) items.push_back(module_object(child));
  return items;
}

/// Replaces all children by these, named "0", "1", ...
void refill(nb::handle self, const Items& items) {
  for (const nb::object& item : items) {
    if (maybe_module(item) != nullptr) continue;
    nb::raise_type_error("Sequential: '%s' is no Module", Py_TYPE(item.ptr())->tp_name);
  }
  nn::Sequential& modules = sequential_in(self);
  const nb::dict attributes = attributes_of(self);
  const auto before = modules.children();
  {
    const ModuleChange change;
    const auto put = [&](auto&& add_all) {
      // From the end: what stands behind a removed one moves.
      while (!modules.children().empty()) {
        const std::string last = modules.children().back().first;
        modules.remove(last);
      }
      add_all();
    };
    try {
      put([&] {
        for (std::size_t i = 0; i < items.size(); ++i) {
          modules.push_back(std::to_string(i), nb::cast<nn::ModulePtr>(items[i]));
        }
      });
    } catch (...) {
      // An item contains this Sequential: the old children are restored.
      put([&] {
        for (const auto& [name, child] : before) modules.push_back(name, child);
      });
      throw;
    }
  }
  for (const auto& [name, child] : before) {
    const nb::str key = python_text(name);
    if (attributes.contains(key)) nb::del(attributes[key]);
  }
  for (std::size_t i = 0; i < items.size(); ++i) attributes[std::to_string(i).c_str()] = items[i];
}

void delete_items(nb::handle self, nb::object index) {
  Items items = items_in(self);
  std::vector<std::size_t> gone;
  if (nb::isinstance<nb::slice>(index)) {
    gone = positions_of(nb::borrow<nb::slice>(index), items.size());
    std::sort(gone.begin(), gone.end());
  } else {
    const std::int64_t at = integer_in(index);
    gone.push_back(position_in(items.size(), at));
  }
  Items left;
  auto next = gone.begin();
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (next != gone.end() && *next == i) {
      ++next;
    } else {
      left.push_back(std::move(items[i]));
    }
  }
  refill(self, left);
}

nb::object insert_item(nb::handle self, std::int64_t index, nb::object module) {
  Items items = items_in(self);
  const auto size = static_cast<std::int64_t>(items.size());
  const std::int64_t at = index < 0 ? index + size : index;
  if (at < 0 || at > size) {
    throw nb::index_error(("Sequential: cannot insert at " + std::to_string(index) + " of " +
                           std::to_string(size) + " modules")
                              .c_str());
  }
  items.insert(items.begin() + at, std::move(module));
  refill(self, items);
  return nb::borrow(self);
}

nb::object append_item(nb::handle self, nb::handle module) {
  module_in(module);
  const std::string name = std::to_string(sequential_in(self).size());
  {
    const ModuleChange change;
    sequential_in(self).push_back(name, nb::cast<nn::ModulePtr>(module));
  }
  attributes_of(self)[name.c_str()] = module;
  return nb::borrow(self);
}

nb::object extend_items(nb::handle self, nb::handle modules) {
  // All modules are checked first, so that an error does not change the list.
  const nb::tuple more = elements_of(modules);
  for (const nb::handle module : more) module_in(module);
  for (const nb::handle module : more) append_item(self, module);
  return nb::borrow(self);
}

Items other_items(nb::handle other) {
  if (dynamic_cast<nn::Sequential*>(maybe_module(other)) == nullptr) {
    nb::raise_type_error("Sequential: + takes a Sequential, not '%s'",
                         Py_TYPE(other.ptr())->tp_name);
  }
  return items_in(other);
}

nb::object sequential_of(const Items& items) {
  nb::object made = nb::type<nn::Sequential>()();
  refill(made, items);
  return made;
}

Items repeated_items(nb::handle self, std::int64_t times) {
  if (times < 1) {
    throw nb::value_error(
        ("Sequential: * takes a number of at least 1, not " + std::to_string(times)).c_str());
  }
  const Items once = items_in(self);
  // A limit, because names of very many modules would fill the memory.
  constexpr std::size_t kMost = 1 << 20;
  if (!once.empty() && static_cast<std::size_t>(times) > kMost / once.size()) {
    throw nb::value_error("Sequential: * would make more than a million modules");
  }
  Items all;
  for (std::int64_t i = 0; i < (once.empty() ? 0 : times); ++i) {
    all.insert(all.end(), once.begin(), once.end());
  }
  return all;
}

nb::object item_of(nb::handle self, nb::object index) {
  const auto& modules = static_cast<const nn::Sequential&>(module_in(self));
  if (nb::isinstance<nb::slice>(index)) {
    return slice_of(self, modules, nb::borrow<nb::slice>(index));
  }
  const std::int64_t at = integer_in(index);
  return attributes_of(self)[name_at(modules, at).c_str()];
}

void bind_sequential(nb::module_& nn) {
  Layer<nn::Sequential> sequential(
      nn, "Sequential", R"(Modules one after the other, named "0", "1", ... or by a dictionary.

>>> net = bg.nn.Sequential(bg.nn.Linear(2, 16), bg.nn.ReLU(), bg.nn.Linear(16, 1))
>>> net[0]
Linear(in_features=2, out_features=16, bias=True)
>>> net(bg.ones((4, 2))).shape
(4, 1)
)");
  sequential.forward()
      .type()
      .def("__init__", &init_sequential, nb::arg("modules"),
           nb::sig("def __init__(self, *modules: Module | dict[str, Module]) -> None"))
      .def("__len__", &nn::Sequential::size)
      .def("__getitem__", &item_of, nb::arg().none(),
           nb::sig("def __getitem__(self, index: int | slice, /) -> typing.Any"))
      .def(
          "__setitem__",
          [](nb::handle self, std::int64_t index, nb::handle module) {
            const auto& modules = static_cast<const nn::Sequential&>(module_in(self));
            put_child(self, name_at(modules, index), module);
          },
          nb::arg(), nb::arg(),
          nb::sig("def __setitem__(self, index: int, module: Module, /) -> None"))
      .def(
          "__iter__", [](nb::handle self) { return self.attr("children")(); },
          nb::sig("def __iter__(self) -> collections.abc.Iterator[Module]"))
      .def("append", &append_item, nb::arg("module"),
           nb::sig("def append(self, module: Module) -> typing.Self"),
           "Adds a module at the end.\n\n"
           ">>> len(bg.nn.Sequential(bg.nn.ReLU()).append(bg.nn.Tanh()))\n2\n")
      .def("extend", &extend_items, nb::arg("modules"),
           nb::sig("def extend(self, modules: collections.abc.Iterable[Module]) -> typing.Self"),
           "Adds modules at the end.\n\n"
           ">>> len(bg.nn.Sequential(bg.nn.ReLU()).extend([bg.nn.Tanh(), bg.nn.ReLU()]))\n3\n")
      .def("insert", &insert_item, nb::arg("index"), nb::arg("module"),
           nb::sig("def insert(self, index: int, module: Module) -> typing.Self"),
           "Puts a module before another; those after it move on by one name.\n\n"
           ">>> bg.nn.Sequential(bg.nn.ReLU()).insert(0, bg.nn.Tanh())[0]\nTanh()\n")
      .def(
          "pop",
          [](nb::handle self, nb::object index) {
            nb::object item = item_of(self, index);
            delete_items(self, std::move(index));
            return item;
          },
          nb::arg("index").none(), nb::sig("def pop(self, index: int | slice) -> typing.Any"),
          "Removes a module, or a slice of them, and gives it back.\n\n"
          ">>> bg.nn.Sequential(bg.nn.ReLU(), bg.nn.Tanh()).pop(0)\nReLU()\n")
      .def("__delitem__", &delete_items, nb::arg().none(),
           nb::sig("def __delitem__(self, index: int | slice, /) -> None"))
      .def(
          "__add__",
          [](nb::handle self, nb::handle other) {
            Items items = items_in(self);
            for (nb::object& item : other_items(other)) items.push_back(std::move(item));
            return sequential_of(items);
          },
          nb::arg(), nb::sig("def __add__(self, other: Sequential, /) -> Sequential"))
      .def(
          "__iadd__",
          [](nb::handle self, nb::handle other) {
            for (const nb::object& item : other_items(other)) append_item(self, item);
            return nb::borrow(self);
          },
          nb::arg(), nb::sig("def __iadd__(self, other: Sequential, /) -> typing.Self"))
      .def(
          "__mul__",
          [](nb::handle self, std::int64_t times) {
            return sequential_of(repeated_items(self, times));
          },
          nb::arg(), nb::sig("def __mul__(self, times: int, /) -> Sequential"))
      .def(
          "__rmul__",
          [](nb::handle self, std::int64_t times) {
            return sequential_of(repeated_items(self, times));
          },
          nb::arg(), nb::sig("def __rmul__(self, times: int, /) -> Sequential"))
      .def(
          "__imul__",
          [](nb::handle self, std::int64_t times) {
            refill(self, repeated_items(self, times));
            return nb::borrow(self);
          },
          nb::arg(), nb::sig("def __imul__(self, times: int, /) -> typing.Self"));
}

}  // namespace

void bind_nn_layers(nb::module_& nn) {
  bind_linear(nn);
  bind_embedding(nn);
  bind_small(nn);
  bind_nn_activations(nn);
  bind_mlp(nn);
  bind_sequential(nn);
}

}  // namespace baregrad::python
