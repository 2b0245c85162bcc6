// baregrad._core.data: datasets and the loader. An adapter makes Python datasets datasets of the
// engine.
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "baregrad/data_loader.h"
#include "baregrad/error.h"
#include "baregrad/ops.h"
#include "bindings.h"
#include "call.h"
#include "casters.h"
#include "data_bindings.h"
#include "exclusive.h"
#include "interop.h"
#include "python_owner.h"
#include "state_dict.h"

namespace baregrad::python {
namespace {

using namespace data;

/// Whether a batch of a single field is the tensor itself instead of a tuple with one tensor. The
/// items of a Python dataset decide this; it is known after the first batch.
using Bare = std::shared_ptr<std::atomic<bool>>;
Bare make_bare() { return std::make_shared<std::atomic<bool>>(false); }

nb::object python_of(const Batch& batch, bool bare) {
  if (bare) return nb::cast(batch.input);
  const std::size_t fields = batch.target.defined() ? 2 + batch.more.size() : 1;
  nb::list list;
  list.append(batch.input);
  if (fields > 1) list.append(batch.target);
  for (const Tensor& field : batch.more) list.append(field);
  return nb::tuple(list);
}

/// The fields of an item or of a transformed batch: the elements of a tuple or list, else the
/// object itself.
class Fields {
 public:
  Fields() : asarray_(nb::module_::import_("baregrad._core").attr("asarray")) {}

  std::vector<Tensor> of(nb::handle object, bool& bare) const {
    std::vector<Tensor> fields;
    bare = PyTuple_Check(object.ptr()) == 0 && PyList_Check(object.ptr()) == 0;
    if (bare) {
      fields.push_back(tensor(object));
    } else {
      for (const nb::handle field : elements_of(object)) fields.push_back(tensor(field));
    }
    return fields;
  }

 private:
  Tensor tensor(nb::handle object) const {
    if (const Tensor* tensor = tensor_in(object.ptr())) return *tensor;
    return nb::cast<Tensor>(asarray_(object));
  }

  nb::object asarray_;
};

Batch batch_of(std::vector<Tensor> fields, const char* what) {
  if (fields.empty()) throw ValueError(std::string("DataLoader: ") + what + " is empty");
  Batch batch;
  batch.input = std::move(fields[0]);
  if (fields.size() > 1) batch.target = std::move(fields[1]);
  for (std::size_t i = 2; i < fields.size(); ++i) batch.more.push_back(std::move(fields[i]));
  return batch;
}

/// A Python object with a length and items. Threads take the interpreter's lock to get items, and
/// stack them without it.
class PythonDataset final : public Dataset {
 public:
  explicit PythonDataset(nb::object items) : items_(std::move(items)) {}

  std::int64_t size() const override {
    const LockTaken locked;
    return static_cast<std::int64_t>(nb::len(items_.get()));
  }

  Batch get(std::span<const std::int64_t> indices) const override {
    std::vector<std::vector<Tensor>> columns;
    {
      const LockTaken locked;
      columns = read(indices);
    }
    std::vector<Tensor> fields;
    for (const std::vector<Tensor>& column : columns) fields.push_back(stack(column));
    return batch_of(std::move(fields), "an item");
  }

  const Bare& bare() const noexcept { return bare_; }

 private:
  std::vector<std::vector<Tensor>> read(std::span<const std::int64_t> indices) const {
    const Fields fields_of;
    std::vector<std::vector<Tensor>> columns;
    bool bare = false;
    for (const std::int64_t index : indices) {
      std::vector<Tensor> fields = fields_of.of(nb::object(items_.get()[nb::int_(index)]), bare);
      if (columns.empty()) columns.resize(fields.size());
      if (fields.size() != columns.size()) {
        throw ValueError("DataLoader: item " + std::to_string(index) + " has " +
                         std::to_string(fields.size()) + " fields, the first of its batch has " +
                         std::to_string(columns.size()));
      }
      for (std::size_t i = 0; i < fields.size(); ++i) columns[i].push_back(std::move(fields[i]));
    }
    bare_->store(bare);
    return columns;
  }

  PythonOwner items_;
  Bare bare_ = make_bare();
};

/// A dataset of the engine.
struct Source {
  DatasetPtr dataset;
  Bare bare = make_bare();
};

Source source_of_python(nb::object items) {
  auto dataset = std::make_shared<PythonDataset>(std::move(items));
  Bare bare = dataset->bare();
  return {std::move(dataset), std::move(bare)};
}

/// The transform of a loader. It is called with the batch that a loop would get, and with its own
/// generator.
std::function<Batch(Batch, Generator&)> transform_of(nb::callable function, Bare from, Bare to) {
  return [owner = PythonOwner(std::move(function)), from = std::move(from), to = std::move(to)](
             const Batch& batch, Generator& generator) {
    const LockTaken locked;
    // A copy of the generator, because the function may keep it.
    auto own = std::make_unique<Generator>();
    own->set_state(generator.state());
    const nb::object result = owner.get()(python_of(batch, from->load()),
                                          nb::cast(own.release(), nb::rv_policy::take_ownership));
    bool bare = false;
    std::vector<Tensor> fields = Fields().of(result, bare);
    to->store(bare);
    return batch_of(std::move(fields), "what the transform returned");
  };
}

class Loader : public Exclusive {
 public:
  Loader(const Source& source, LoaderOptions options, nb::object transform) : bare_(source.bare) {
    if (!transform.is_none()) {
      bare_ = make_bare();
      options.transform = transform_of(nb::cast<nb::callable>(transform), source.bare, bare_);
    }
    const LockReleased unlocked;
    loader_ = std::make_unique<DataLoader>(source.dataset, std::move(options));
  }
  ~Loader() {
    // The loader's threads may need the lock to finish.
    const LockReleased unlocked;
    loader_.reset();
  }

  /// Returns None at the end of the epoch and in all later calls. A batch that fails is skipped:
  /// the next call returns the one after it. An interrupt skips nothing.
  nb::object next() {
    Batch batch;
    const bool more = exclusively(*this, [&] {
      if (ended_) return false;
      const Batch* found = nullptr;
      try {
        found = loader_->next();
      } catch (...) {
        if (!is_interrupt()) pass_over();
        throw;
      }
      if (found != nullptr) batch = *found;
      ended_ = found == nullptr;
      return found != nullptr;
    });
    return more ? python_of(batch, bare_->load()) : nb::none();
  }

  /// Runs f with exclusive access to the loader.
  template <class F>
  auto with(F&& f) {
    return exclusively(*this, [&] { return f(*loader_); });
  }

  /// Sets the position, in the epoch or at its start.
  void load_state(const State& state) {
    exclusively(*this, [&] {
      loader_->load_state(state);
      ended_ = false;
    });
  }

 private:
  /// Whether the exception in flight is Ctrl-C, or another one that is not a Python Exception.
  static bool is_interrupt() {
    try {
      throw;
    } catch (const nb::python_error& error) {
      const LockTaken lock;
      return PyErr_GivenExceptionMatches(error.type().ptr(), PyExc_Exception) == 0;
    } catch (...) {
      return false;
    }
  }

  void pass_over() {
    State state = loader_->state();
    state.values["position"] = std::to_string(loader_->position() + 1);
    loader_->load_state(state);
  }

  std::unique_ptr<DataLoader> loader_;
  Bare bare_;
  bool ended_ = false;
};

void bind_source(nb::module_& m) {
  nb::class_<Source>(m, "Source", "A dataset of the engine.")
      .def("__len__", [](const Source& self) { return self.dataset->size(); })
      .def(
          "item",
          [](const Source& self, std::int64_t index) {
            return python_of(self.dataset->item(index), false);
          },
          nb::arg("index"),
          nb::sig("def item(self, index: int) -> tuple[baregrad._core.Tensor, ...]"));
  m.def(
      "tensor_source",
      [](const std::vector<Tensor>& fields) {
        const LockReleased unlocked;
        return Source{std::make_shared<TensorDataset>(fields)};
      },
      nb::arg("tensors"));
  m.def(
      "image_source",
      [](const Tensor& images, const Tensor& labels, float mean, float std) {
        // Adds the channel axis that convolutions expect.
        const Tensor planes = images.ndim() == 3 ? expand_dims(images, {1}) : images;
        return Source{std::make_shared<TensorDataset>(planes, labels, Scaling{mean, std})};
      },
      nb::arg("images"), nb::arg("labels"), nb::arg("mean"), nb::arg("std"));
  m.def("python_source", &source_of_python, nb::arg("dataset"));
  m.def(
      "subset_source",
      [](const Source& source, std::vector<std::int64_t> indices) {
        return Source{std::make_shared<Subset>(source.dataset, std::move(indices)), source.bare};
      },
      nb::arg("source"), nb::arg("indices"));
  m.def(
      "random_split",
      [](const Source& source, const std::vector<std::int64_t>& lengths, std::uint64_t seed) {
        std::vector<std::vector<std::int64_t>> parts;
        for (const auto& part : random_split(source.dataset, lengths, seed)) {
          parts.push_back(part->indices());
        }
        return parts;
      },
      nb::arg("source"), nb::arg("lengths"), nb::arg("seed"));
}

void bind_loader(nb::module_& m) {
  nb::class_<Loader>(m, "Loader", nb::is_weak_referenceable(), "One epoch of a dataset.")
      .def(
          "__init__",
          [](Loader* self, const Source& source, std::int64_t batch_size, bool shuffle,
             std::uint64_t seed, bool drop_last, int num_workers, int prefetch,
             nb::object transform, DeviceArg device) {
            LoaderOptions options{batch_size,  shuffle,  seed, drop_last,
                                  num_workers, prefetch, {},   device.in("DataLoader")};
            new (self) Loader(source, std::move(options), std::move(transform));
          },
          nb::arg("source"), nb::arg("batch_size"), nb::arg("shuffle"), nb::arg("seed"),
          nb::arg("drop_last"), nb::arg("num_workers"), nb::arg("prefetch"),
          nb::arg("transform").none(), nb::arg("device"))
      .def("next", &Loader::next, nb::sig("def next(self) -> typing.Any"))
      .def("__len__", [](Loader& self) { return self.with([](auto& l) { return l.size(); }); })
      .def_prop_ro("position",
                   [](Loader& self) { return self.with([](auto& l) { return l.position(); }); })
      .def(
          "set_epoch",
          [](Loader& self, std::int64_t epoch) { self.with([&](auto& l) { l.set_epoch(epoch); }); },
          nb::arg("epoch"))
      .def(
          "rest", [](Loader& self) { self.with([](auto& l) { l.set_epoch(l.epoch()); }); },
          "Ends the epoch; returns when all workers are idle.")
      .def(
          "is_free",
          [](Loader& self) {
            const std::unique_lock lock(self.mutex, std::try_to_lock);
            return lock.owns_lock();
          },
          "Whether no other thread is using it.")
      .def("state",
           [](Loader& self) { return dict_of(self.with([](auto& l) { return l.state(); })); })
      .def(
          "load_state",
          [](Loader& self, const StateDict& dict) {
            self.load_state(state_of(dict, "DataLoader.load_state_dict"));
          },
          nb::arg("state"));
}

}  // namespace

void bind_data(nb::module_& m) {
  nb::module_ data = m.def_submodule("data", "What baregrad.data is made of.");
  bind_source(data);
  bind_loader(data);
  bind_data_files(data);
}

}  // namespace baregrad::python
