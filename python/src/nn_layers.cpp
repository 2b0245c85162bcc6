// Linear, Embedding, Dropout, Flatten, Identity, MLP, Sequential.
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
      .slot("weight", "[out_features, in_features].")
      .slot("bias", "[out_features], or None.")
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
      .slot("weight", "[num_embeddings, embedding_dim].")
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
      .init(
          +[](void* place, double p) { new (place) nn::Dropout(p); }, nb::arg("p") = 0.5)
      .forward();
  Layer<nn::Flatten>(nn, "Flatten", R"(Joins the axes from start_dim to end_dim into one.

>>> bg.nn.Flatten()(bg.ones((2, 3, 4))).shape
(2, 12)
)")
      .init(
          +[](void* place, std::int64_t start, std::int64_t end) {
            new (place) nn::Flatten(start, end);
          },
          nb::arg("start_dim") = 1, nb::arg("end_dim") = -1)
      .forward();
  Layer<nn::Identity>(nn, "Identity", R"(Gives back what it is given.

>>> bg.nn.Identity()(bg.ones(2))
tensor([1., 1.])
)")
      .init(+[](void* place) { new (place) nn::Identity(); })
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

/// Modules one by one, or one dictionary of them.
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
    made->push_back(name, nb::cast<nn::ModulePtr>(module));
    attributes[name.c_str()] = module;
  };
  if (modules.size() == 1 && nb::isinstance<nb::dict>(modules[0])) {
    for (const auto& [name, module] : entries_of(modules[0])) add(text_of(name), module);
    return;
  }
  for (std::size_t i = 0; i < modules.size(); ++i) add(std::to_string(i), modules[i]);
}

const std::string& name_at(const nn::Sequential& self, std::int64_t position) {
  const auto size = static_cast<std::int64_t>(self.size());
  const std::int64_t at = position < 0 ? position + size : position;
  if (at < 0 || at >= size) {
    throw nb::index_error(("Sequential: position " + std::to_string(position) + " of " +
                           std::to_string(size) + " modules")
                              .c_str());
  }
  return self.children()[static_cast<std::size_t>(at)].first;
}

nb::object slice_of(nb::handle self, const nn::Sequential& modules, const nb::slice& slice) {
  const auto [start, stop, step, count] = slice.compute(modules.size());
  nb::dict picked;
  for (std::size_t i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(start + static_cast<Py_ssize_t>(i) * step);
    const auto& [name, child] = modules.children()[at];
    picked[name.c_str()] = module_object(child);
  }
  return self.type()(picked);
}

nb::object item_of(nb::handle self, nb::object index) {
  const auto& modules = static_cast<const nn::Sequential&>(module_in(self));
  if (nb::isinstance<nb::slice>(index)) {
    return slice_of(self, modules, nb::borrow<nb::slice>(index));
  }
  return attributes_of(self)[name_at(modules, nb::cast<std::int64_t>(index)).c_str()];
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
      .def("__getitem__", &item_of, nb::arg(),
           nb::sig("def __getitem__(self, index: int | slice, /) -> typing.Any"))
      .def(
          "__setitem__",
          [](nb::handle self, std::int64_t index, nb::handle module) {
            const auto& modules = static_cast<const nn::Sequential&>(module_in(self));
            put_child(self, std::string(name_at(modules, index)), module);
          },
          nb::arg(), nb::arg(),
          nb::sig("def __setitem__(self, index: int, module: Module, /) -> None"))
      .def(
          "__iter__", [](nb::handle self) { return self.attr("children")(); },
          nb::sig("def __iter__(self) -> collections.abc.Iterator[Module]"))
      .def(
          "append",
          [](nb::handle self, nb::handle module) {
            auto& modules = static_cast<nn::Sequential&>(module_in(self));
            module_in(module);
            const std::string name = std::to_string(modules.size());
            modules.push_back(name, nb::cast<nn::ModulePtr>(module));
            attributes_of(self)[name.c_str()] = module;
            return nb::borrow(self);
          },
          nb::arg("module"), nb::sig("def append(self, module: Module) -> typing.Self"),
          "Adds a module at the end.\n\n"
          ">>> len(bg.nn.Sequential(bg.nn.ReLU()).append(bg.nn.Tanh()))\n2\n");
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
