// Random programs of views, in-place writes, detach and no_grad. Each runs twice: with the engine's
// views, and in a functional form without views. In that form a storage is an immutable flat
// tensor, a view is a list of positions in it, a read is a `take`, and a write makes a new flat
// tensor. Values must agree after every step, and gradients at the end.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <set>

#include "baregrad/error.h"
#include "tests/autograd/support.h"

namespace baregrad {
namespace {

using Positions = std::vector<std::int64_t>;

Tensor index_tensor(const Positions& at) {
  return Tensor::of<std::int64_t>(at, {static_cast<std::int64_t>(at.size())});
}

/// Elements of a flat tensor.
Tensor picked(const Tensor& flat, const Positions& at, const Dims& shape) {
  return reshape(take(flat, index_tensor(at), 0), shape);
}

/// `flat` with `values` at these positions.
Tensor placed(const Tensor& flat, const Positions& at, const Tensor& values) {
  Positions from(static_cast<std::size_t>(flat.numel()));
  std::iota(from.begin(), from.end(), 0);
  for (std::size_t k = 0; k < at.size(); ++k) {
    from[static_cast<std::size_t>(at[k])] = flat.numel() + static_cast<std::int64_t>(k);
  }
  return picked(concat({flat, reshape(values, {values.numel()})}, 0), from, {flat.numel()});
}

/// The value of `now` with the gradient of `history`.
Tensor with_value(const Tensor& history, const Tensor& now) {
  return history + (now - history).detach();
}

/// The tensors that share a history: a result or a detached handle, with all its views. Several
/// groups may share a storage: they see the same values, but have separate gradients.
struct Group {
  int storage;
  Tensor flat;
};

struct Variable {
  Tensor tensor;  ///< of the program with views
  int group;
  Dims shape;
  Positions at;
  bool untracked = false;  ///< a view made under no_grad: read without a gradient
  bool is_distinct() const { return std::set(at.begin(), at.end()).size() == at.size(); }
};

class Program {
 public:
  explicit Program(std::uint64_t seed) : rng_(seed) {}

  void run();
  /// A step was refused; the program continued without it.
  bool refused() const { return refused_; }
  /// Backward was refused: nothing could be compared.
  bool raised() const { return raised_; }
  bool has_gradients() const { return has_gradients_; }

 private:
  std::int64_t roll(std::int64_t count) {
    return static_cast<std::int64_t>(rng_() % static_cast<std::uint64_t>(count));
  }
  bool chance(double p) { return static_cast<double>(rng_() >> 11) * 0x1p-53 < p; }
  double number() { return 2 * (static_cast<double>(rng_() >> 11) * 0x1p-53) - 1; }
  std::size_t any_variable() {
    // Newer variables are more likely.
    const auto n = static_cast<std::int64_t>(variables_.size());
    return static_cast<std::size_t>(chance(0.5) ? n - 1 - roll(std::min<std::int64_t>(n, 4))
                                                : roll(n));
  }
  std::size_t matching(const Variable& v);

  void add_leaf(const Dims& shape);
  void add_result(const Tensor& tensor, const Tensor& functional);
  void step();
  void compute(std::size_t k);
  void view(std::size_t k);
  void write(std::size_t k);
  void index_put(std::size_t k);

  Tensor read(const Variable& v) const {
    const Tensor value = picked(groups_[static_cast<std::size_t>(v.group)].flat, v.at, v.shape);
    return v.untracked ? value.detach() : value;
  }
  void store(const Variable& v, const Tensor& value);
  /// One of `count` operations on a variable; the log follows the code.
  std::int64_t choose(const char* kind, std::int64_t count, std::size_t k, std::size_t with = 0) {
    const std::int64_t choice = roll(count);
    log_ += std::string(autograd::is_grad_enabled() ? "" : "no_grad ") + kind + " " +
            std::to_string(choice) + " of variable " + std::to_string(k) +
            (with != 0 ? " with " + std::to_string(with) : "");
    return choice;
  }
  void check_values(const std::string& what) const;
  void check_gradients();
  static bool is_legitimate(const GradError& e);

  op_table::Rng rng_;
  std::vector<Group> groups_;
  std::vector<Variable> variables_;
  Tensors leaves_;
  Tensors functional_leaves_;
  std::string log_;
  int storages_ = 0;
  bool refused_ = false;
  bool raised_ = false;
  bool has_gradients_ = false;
};

/// Another variable of the shape of `v`, or one element.
std::size_t Program::matching(const Variable& v) {
  for (int tries = 0; tries < 12; ++tries) {
    const std::size_t k = any_variable();
    const Variable& w = variables_[k];
    if (w.shape == v.shape || (w.at.size() == 1 && w.shape.size() <= v.shape.size())) return k;
  }
  return static_cast<std::size_t>(&v - variables_.data());
}

void Program::add_leaf(const Dims& shape) {
  Tensor t = empty(shape, DType::Float64, Device());
  for (std::int64_t i = 0; i < t.numel(); ++i) t.data<double>()[i] = number();
  t = t.to(default_device());
  leaves_.push_back(t.requires_grad_());
  functional_leaves_.push_back(t.detach().clone().requires_grad_());
  add_result(leaves_.back(), functional_leaves_.back());
}

void Program::add_result(const Tensor& tensor, const Tensor& functional) {
  Variable v{tensor, static_cast<int>(groups_.size()), tensor.shape(), {}};
  v.at.resize(static_cast<std::size_t>(tensor.numel()));
  std::iota(v.at.begin(), v.at.end(), 0);
  ASSERT_TRUE(tensor.is_contiguous() && tensor.offset() == 0);
  groups_.push_back({storages_++, reshape(functional, {functional.numel()})});
  variables_.push_back(std::move(v));
}

/// A write through `v`: its group sees it with gradients, other groups on the storage without.
void Program::store(const Variable& v, const Tensor& value) {
  Group& own = groups_[static_cast<std::size_t>(v.group)];
  const Tensor full = reshape(broadcast_to(value, v.shape), {v.tensor.numel()});
  const bool recorded = autograd::is_grad_enabled() && !v.untracked;
  for (Group& group : groups_) {
    if (group.storage != own.storage) continue;
    const Tensor now = placed(group.flat, v.at, full);
    const enable_grad on;
    group.flat = recorded && &group == &own ? now : with_value(group.flat, now);
  }
}

void Program::compute(std::size_t k) {
  const Variable v = variables_[k];
  const std::size_t other = matching(variables_[k]);
  const Variable w = variables_[other];
  const Tensor a = read(v);
  const Tensor b = read(w);
  const double c = number();
  const std::int64_t axis = v.shape.empty() ? 0 : roll(v.shape.size());
  const auto both = [&](const auto& fn) { add_result(fn(v.tensor, w.tensor), fn(a, b)); };
  switch (choose("compute", 11, k, other)) {
    case 0:
      both([](const Tensor& x, const Tensor& y) { return x + y; });
      break;
    case 1:
      both([](const Tensor& x, const Tensor& y) { return x * y; });
      break;
    case 2:
      both([](const Tensor& x, const Tensor& y) { return x - y; });
      break;
    case 3:
      both([c](const Tensor& x, const Tensor&) { return x * c; });
      break;
    case 4:
      both([](const Tensor& x, const Tensor&) { return sin(x); });
      break;
    case 5:
      both([](const Tensor& x, const Tensor&) { return tanh(x); });
      break;
    case 6:
      both([](const Tensor& x, const Tensor&) { return sigmoid(x); });
      break;
    case 7:
      both([](const Tensor& x, const Tensor&) { return clone(x); });
      break;
    case 8:
      both([=](const Tensor& x, const Tensor&) { return x.ndim() == 0 ? sum(x) : sum(x, axis); });
      break;
    case 9:
      both([c](const Tensor& x, const Tensor& y) { return lerp(x, y, c); });
      break;
    default:
      both([](const Tensor& x, const Tensor&) {
        return x.ndim() == 2 ? matmul(x, x.mT()) : x + 1.0;
      });
  }
}

/// Views are made by the engine in one program, and computed by hand in the other.
void Program::view(std::size_t k) {
  const Variable v = variables_[k];
  if (v.at.empty()) return;
  const int ndim = v.shape.size();
  const auto axis = static_cast<int>(ndim == 0 ? 0 : roll(ndim));
  Tensor tensor;
  Dims shape = v.shape;
  // From the position of an element in the view to its position in `v`.
  std::function<Positions(const Positions&)> from = [](const Positions& at) { return at; };
  switch (choose("view", 12, k)) {
    case 0: {  // slice
      if (ndim == 0) return;
      const std::int64_t n = v.shape[axis];
      const std::int64_t start = roll(n);
      const bool back = chance(0.4);
      const std::int64_t step = 1 + roll(2);
      const std::int64_t room = back ? start + 1 : n - start;
      const std::int64_t size = 1 + roll((room + step - 1) / step);
      const std::int64_t signed_step = back ? -step : step;
      const std::int64_t end = start + signed_step * size;
      Slice range{start, end, signed_step};
      if (end < 0) range.stop.reset();
      tensor = slice(v.tensor, axis, range);
      shape[axis] = size;
      from = [=](Positions at) {
        at[static_cast<std::size_t>(axis)] =
            start + signed_step * at[static_cast<std::size_t>(axis)];
        return at;
      };
      break;
    }
    case 1: {  // permute
      Dims order;
      for (int i = 0; i < ndim; ++i) order.push_back(i);
      std::shuffle(order.begin(), order.end(), rng_);
      tensor = permute_dims(v.tensor, order);
      for (int i = 0; i < ndim; ++i) shape[i] = v.shape[static_cast<int>(order[i])];
      from = [=](const Positions& at) {
        Positions to(at.size());
        for (int i = 0; i < ndim; ++i) {
          to[static_cast<std::size_t>(order[i])] = at[static_cast<std::size_t>(i)];
        }
        return to;
      };
      break;
    }
    case 2: {  // flip
      if (ndim == 0) return;
      tensor = flip(v.tensor, axis);
      const std::int64_t n = v.shape[axis];
      from = [=](Positions at) {
        at[static_cast<std::size_t>(axis)] = n - 1 - at[static_cast<std::size_t>(axis)];
        return at;
      };
      break;
    }
    case 3: {  // expand
      if (ndim > 2) return;
      shape.insert(0, 2);
      tensor = expand(v.tensor, shape);
      from = [](const Positions& at) { return Positions(at.begin() + 1, at.end()); };
      break;
    }
    case 4: {  // diagonal
      if (ndim != 2) return;
      const std::int64_t offset = roll(2);
      tensor = diagonal(v.tensor, offset);
      shape = {std::max<std::int64_t>(0, std::min(v.shape[0], v.shape[1] - offset))};
      from = [=](const Positions& at) { return Positions{at[0], at[0] + offset}; };
      break;
    }
    case 5: {  // unfold
      if (ndim == 0 || ndim > 2 || v.shape[axis] < 2) return;
      const std::int64_t step = 1 + roll(2);
      tensor = unfold(v.tensor, axis, 2, step);
      shape[axis] = (v.shape[axis] - 2) / step + 1;
      shape.push_back(2);
      from = [=](Positions at) {
        at[static_cast<std::size_t>(axis)] = at[static_cast<std::size_t>(axis)] * step + at.back();
        at.pop_back();
        return at;
      };
      break;
    }
    case 6: {  // select
      if (ndim == 0) return;
      const std::int64_t at_axis = roll(v.shape[axis]);
      tensor = select(v.tensor, axis, at_axis);
      shape.erase(axis);
      from = [=](Positions at) {
        at.insert(at.begin() + axis, at_axis);
        return at;
      };
      break;
    }
    case 7: {  // expand_dims, squeezed again by others
      if (ndim > 2) return;
      tensor = expand_dims(v.tensor, {0});
      shape.insert(0, 1);
      from = [](const Positions& at) { return Positions(at.begin() + 1, at.end()); };
      break;
    }
    case 8: {  // squeeze
      tensor = squeeze(v.tensor);
      shape = {};
      for (const std::int64_t n : v.shape) {
        if (n != 1) shape.push_back(n);
      }
      from = [=](const Positions& at) {
        Positions to;
        std::size_t next = 0;
        for (const std::int64_t n : v.shape) to.push_back(n == 1 ? 0 : at[next++]);
        return to;
      };
      break;
    }
    case 9: {  // reshape, where it is a view
      const std::int64_t n = v.tensor.numel();
      shape = n % 2 == 0 && chance(0.5) ? Dims{2, n / 2} : Dims{n};
      tensor = reshape(v.tensor, shape);
      if (!tensor.same_storage(v.tensor)) {
        add_result(tensor, reshape(read(v), shape));
        return;
      }
      from = [=](const Positions& at) {
        std::int64_t flat = 0;
        for (std::size_t i = 0; i < at.size(); ++i) {
          flat = flat * shape[static_cast<int>(i)] + at[i];
        }
        Positions to(static_cast<std::size_t>(ndim));
        for (int i = ndim - 1; i >= 0; --i) {
          to[static_cast<std::size_t>(i)] = flat % v.shape[i];
          flat /= v.shape[i];
        }
        return to;
      };
      break;
    }
    case 10: {  // as_strided; only within its input, since elements beyond it get no gradient
      const std::set<std::int64_t> reach(v.at.begin(), v.at.end());
      const Dims wanted{1 + roll(3), 1 + roll(2)};
      const Dims strides{roll(4), roll(3)};
      const std::int64_t offset = roll(4);
      Variable seen{{}, v.group, wanted, {}, v.untracked || !autograd::is_grad_enabled()};
      for (std::int64_t i = 0; i < wanted[0]; ++i) {
        for (std::int64_t j = 0; j < wanted[1]; ++j) {
          seen.at.push_back(offset + i * strides[0] + j * strides[1]);
          if (reach.count(seen.at.back()) == 0) return;
        }
      }
      seen.tensor = as_strided(v.tensor, wanted, strides, offset);
      variables_.push_back(std::move(seen));
      return;
    }
    default: {  // detach: the same elements, a new history
      if (!v.is_distinct()) return;
      Variable apart = v;
      apart.tensor = v.tensor.detach();
      apart.untracked = false;
      apart.group = static_cast<int>(groups_.size());
      const Group& group = groups_[static_cast<std::size_t>(v.group)];
      groups_.push_back({group.storage, group.flat.detach()});
      variables_.push_back(std::move(apart));
      return;
    }
  }
  Variable seen{tensor, v.group, shape, {}, v.untracked || !autograd::is_grad_enabled()};
  ASSERT_EQ(tensor.shape(), shape);
  for (std::int64_t flat = 0; flat < tensor.numel(); ++flat) {
    Positions at(static_cast<std::size_t>(shape.size()));
    std::int64_t rest = flat;
    for (int i = shape.size() - 1; i >= 0; --i) {
      at[static_cast<std::size_t>(i)] = rest % shape[i];
      rest /= shape[i];
    }
    std::int64_t place = 0;
    const Positions in_v = from(at);
    for (int i = 0; i < ndim; ++i) place = place * v.shape[i] + in_v[static_cast<std::size_t>(i)];
    seen.at.push_back(v.at[static_cast<std::size_t>(place)]);
  }
  variables_.push_back(std::move(seen));
}

void Program::index_put(std::size_t k) {
  const Variable v = variables_[k];
  const Variable u = variables_[matching(variables_[k])];
  if (v.shape.empty() || !(u.shape == v.shape)) return;
  const bool adds = chance(0.5);
  Positions rows;
  for (int i = 0; i < 3; ++i) rows.push_back(roll(v.shape[0]));
  const std::int64_t width = v.tensor.numel() / v.shape[0];
  const Tensor at = index_tensor(rows);
  index_put_(v.tensor, {at}, index(u.tensor, {at}) * 0.7, adds);
  Tensor value = reshape(read(v), {v.tensor.numel()});
  const Tensor source = reshape(read(u), {v.tensor.numel()}) * 0.7;
  // All values are taken first, then written one row after the other.
  for (const std::int64_t row : rows) {
    Positions place(static_cast<std::size_t>(width));
    std::iota(place.begin(), place.end(), row * width);
    Tensor line = picked(source, place, {width});
    if (adds) line = line + picked(value, place, {width});
    value = placed(value, place, line);
  }
  store(v, reshape(value, v.shape));
}

void Program::write(std::size_t k) {
  const Variable v = variables_[k];
  if (v.at.empty() || !v.is_distinct()) return;
  const std::size_t other = matching(variables_[k]);
  const Variable w = variables_[other];
  const double c = number();
  const Tensor a = read(v);
  const Tensor b = read(w);
  const Tensor& t = v.tensor;
  const double greatest = amax(abs(a.detach())).item<double>();
  switch (choose("write", 13, k, other)) {
    case 0:
      add_(t, w.tensor);
      store(v, a + b);
      break;
    case 1:
      add_(t, c);
      store(v, a + c);
      break;
    case 2:
    case 3:
      multiply_(t, c);
      store(v, a * c);
      break;
    case 4:
      if (greatest > 3) return;
      multiply_(t, w.tensor);
      store(v, a * b);
      break;
    case 5:
      copy_(t, w.tensor);
      store(v, b);
      break;
    case 6:
      fill_(t, c);
      store(v, full(v.shape, c, DType::Float64));
      break;
    case 7: {
      Tensor mask = empty(v.shape, DType::Bool, Device());
      for (std::int64_t i = 0; i < mask.numel(); ++i) mask.data<bool>()[i] = chance(0.4);
      mask = mask.to(default_device());
      if (w.at.size() == 1) {
        masked_fill_(t, mask, w.tensor);
        store(v, where(mask, b, a));
      } else {
        masked_fill_(t, mask, c);
        store(v, where(mask, c, a));
      }
      break;
    }
    case 8:
      if (greatest > 2) return;
      exp_(t);
      store(v, exp(a));
      break;
    case 9:
      sigmoid_(t);
      store(v, sigmoid(a));
      break;
    case 10:
      sin_(t);
      store(v, sin(a));
      break;
    case 11:
      subtract_(t, w.tensor);
      store(v, a - b);
      break;
    default:
      index_put(k);
  }
}

bool Program::is_legitimate(const GradError& e) {
  const std::string text = e.what();
  for (const char* reason : {"overwritten since", "a leaf that requires", "made under no_grad"}) {
    if (text.find(reason) != std::string::npos) return true;
  }
  return false;
}

void Program::check_values(const std::string& what) const {
  const no_grad off;
  for (const Variable& v : variables_) {
    const std::vector<double> have = values(v.tensor);
    const std::vector<double> want = values(read(v));
    ASSERT_EQ(have.size(), want.size());
    for (std::size_t i = 0; i < have.size(); ++i) {
      ASSERT_NEAR(have[i], want[i], 1e-9 * std::max(1.0, std::fabs(want[i]))) << what << "\n"
                                                                              << log_;
    }
  }
}

void Program::step() {
  const std::size_t k = any_variable();
  const autograd::GradModeScope mode(!chance(0.08));
  const std::size_t count = variables_.size();
  try {
    const std::int64_t kind = roll(10);
    if (kind < 3) {
      compute(k);
    } else if (kind < 7) {
      view(k);
    } else {
      // Leaves refuse writes: rarely tried.
      const bool of_leaf = variables_[k].group < static_cast<int>(leaves_.size());
      write(of_leaf && chance(0.9) ? leaves_.size() + static_cast<std::size_t>(roll(4)) : k);
    }
  } catch (const GradError& e) {
    // Refused without any change.
    EXPECT_TRUE(is_legitimate(e)) << e.what();
    EXPECT_EQ(variables_.size(), count);
    refused_ = true;
    log_ += ": refused";
  }
  if (variables_.size() > count) {
    const Variable& made = variables_.back();
    log_ += ": variable " + std::to_string(count) + ", " + describe(made.tensor) + ", group " +
            std::to_string(made.group);
  }
  log_ += "\n";
}

void Program::check_gradients() {
  // Some of the variables; each element has its own weight.
  Tensor total;
  Tensor functional_total;
  for (int i = 0; i < 4; ++i) {
    const std::size_t k = any_variable();
    const Variable& v = variables_[k];
    log_ += "loss of variable " + std::to_string(k) + "\n";
    const Tensor weights =
        sin(reshape(arange(v.tensor.numel(), DType::Float64), v.shape) * 1.3 + i + 0.5);
    const Tensor a = sum(v.tensor * weights);
    const Tensor b = sum(read(v) * weights);
    total = total.defined() ? total + a : a;
    functional_total = functional_total.defined() ? functional_total + b : b;
  }
  // The gradients, and the gradients of their squares.
  for (const char* order : {"first", "second"}) {
    Tensors got(leaves_.size());
    Tensors want(leaves_.size());
    const autograd::GradOptions options{.create_graph = true, .allow_unused = true};
    try {
      if (total.requires_grad()) got = autograd::grad({total}, leaves_, {}, options);
    } catch (const GradError& e) {
      EXPECT_TRUE(is_legitimate(e)) << e.what();
      raised_ = true;
      return;
    }
    if (functional_total.requires_grad()) {
      want = autograd::grad({functional_total}, functional_leaves_, {}, options);
    }
    total = zeros({}, DType::Float64);
    functional_total = zeros({}, DType::Float64);
    for (std::size_t k = 0; k < leaves_.size(); ++k) {
      const Tensor zero = zeros(leaves_[k].shape(), DType::Float64);
      const Tensor have = got[k].defined() ? got[k] : zero;
      const Tensor right = want[k].defined() ? want[k] : zero;
      for (std::size_t i = 0; i < values(have).size(); ++i) {
        const double w = values(right)[i];
        has_gradients_ |= w != 0;
        ASSERT_NEAR(values(have)[i], w, 1e-9 * std::max(1.0, std::fabs(w)))
            << order << " gradient, leaf " << k << ", element " << i << "\n"
            << log_;
      }
      total = total + sum(have * have);
      functional_total = functional_total + sum(right * right);
    }
  }
}

void Program::run() {
  const Dims shapes[] = {{4}, {2, 3}, {3, 4}, {6}, {2, 2, 2}};
  for (int i = 0; i < 3; ++i) add_leaf(shapes[roll(5)]);
  // A target to write to; leaves refuse writes.
  for (std::size_t k = 0; k < 3; ++k) {
    add_result(variables_[k].tensor * 1.5, read(variables_[k]) * 1.5);
  }
  add_result(zeros({3, 4}, DType::Float64), zeros({3, 4}, DType::Float64));
  const std::int64_t steps = 4 + roll(20);
  for (std::int64_t i = 0; i < steps; ++i) {
    step();
    check_values("step " + std::to_string(i));
    if (::testing::Test::HasFatalFailure()) return;
  }
  check_gradients();
}

TEST(RandomPrograms, NO_TSAN_HaveTheGradientsOfTheirFunctionalForm) {
  const bool thorough = std::getenv("BAREGRAD_TEST_LONG") != nullptr;
  const int count = thorough ? 10000 : 200;
  int refused = 0;
  int raised = 0;
  int useful = 0;
  for (int seed = 1; seed <= count; ++seed) {
    SCOPED_TRACE("program " + std::to_string(seed));
    Program program(static_cast<std::uint64_t>(seed));
    program.run();
    if (HasFailure()) return;
    refused += program.refused() ? 1 : 0;
    raised += program.raised() ? 1 : 0;
    useful += !program.raised() && program.has_gradients() ? 1 : 0;
  }
  RecordProperty("programs", count);
  RecordProperty("refused", refused);
  RecordProperty("raised", raised);
  RecordProperty("compared", useful);
  // An engine that refuses every step would pass otherwise.
  EXPECT_GT(useful, count * 6 / 10) << raised << " of " << count << " raised";
}

}  // namespace
}  // namespace baregrad
