// Generic functions over attribute structs, one instance per struct, found by AttrKind.
#include "ops/attr_types.h"

#include <algorithm>
#include <array>
#include <bit>
#include <new>
#include <type_traits>

#include "baregrad/error.h"
#include "core/message.h"
#include "core/number_text.h"
#include "ops/activation_name.h"

namespace baregrad {

namespace {

// ---- One field

bool same(const Dims& a, const Dims& b) noexcept { return a == b; }
bool same(AxisMask a, AxisMask b) noexcept { return a == b; }
bool same(Device a, Device b) noexcept { return a == b; }
bool same(double a, double b) noexcept {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}
bool same(const double (&a)[2], const double (&b)[2]) noexcept {
  return same(a[0], b[0]) && same(a[1], b[1]);
}
template <class T>
requires std::is_integral_v<T> || std::is_enum_v<T>
bool same(T a, T b) noexcept { return a == b; }

/// The numbers of a step in the order of the struct.
std::array<double, 13> all_of(const StepNumbers& n) noexcept {
  return {static_cast<double>(n.lr),       static_cast<double>(n.sign),
          static_cast<double>(n.shrink),   static_cast<double>(n.weight_decay),
          static_cast<double>(n.beta1),    static_cast<double>(n.rate1),
          static_cast<double>(n.beta2),    static_cast<double>(n.rate2),
          static_cast<double>(n.scale2),   static_cast<double>(n.eps),
          static_cast<double>(n.momentum), static_cast<double>(n.nesterov),
          static_cast<double>(n.first)};
}
bool same(const StepNumbers& a, const StepNumbers& b) noexcept {
  const auto x = all_of(a);
  const auto y = all_of(b);
  return std::equal(x.begin(), x.end(), y.begin(), [](double u, double v) { return same(u, v); });
}

/// Mixes one more number into a hash (the finaliser of splitmix64).
std::size_t mixed(std::size_t hash, std::uint64_t value) noexcept {
  std::uint64_t x = hash + 0x9e3779b97f4a7c15ULL + value;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return static_cast<std::size_t>(x ^ (x >> 31));
}
std::size_t hashed(std::size_t hash, const Dims& dims) noexcept {
  hash = mixed(hash, static_cast<std::uint64_t>(dims.size()));
  for (const std::int64_t value : dims) hash = mixed(hash, static_cast<std::uint64_t>(value));
  return hash;
}
std::size_t hashed(std::size_t hash, AxisMask axes) noexcept { return mixed(hash, axes.bits); }
std::size_t hashed(std::size_t hash, Device device) noexcept {
  return mixed(hash, static_cast<std::uint64_t>(device.type) * 256 + device.index);
}
std::size_t hashed(std::size_t hash, double value) noexcept {
  return mixed(hash, std::bit_cast<std::uint64_t>(value));
}
std::size_t hashed(std::size_t hash, const double (&values)[2]) noexcept {
  return hashed(hashed(hash, values[0]), values[1]);
}
template <class T>
requires std::is_integral_v<T> || std::is_enum_v<T> std::size_t hashed(std::size_t hash, T value)
noexcept { return mixed(hash, static_cast<std::uint64_t>(value)); }

std::size_t hashed(std::size_t hash, const StepNumbers& numbers) noexcept {
  for (const double value : all_of(numbers)) hash = hashed(hash, value);
  return hash;
}

std::string text(const Dims& dims) { return to_string(dims); }
std::string text(AxisMask axes) {
  Dims list;
  for (int axis = 0; axis < kMaxDims; ++axis) {
    if (axes.has(axis)) list.push_back(axis);
  }
  return to_string(list);
}
std::string text(Device device) { return to_string(device); }
std::string text(bool value) { return value ? "true" : "false"; }
std::string text(double value) { return number_text(value); }
std::string text(const double (&values)[2]) {
  return number_text(values[0]) + " " + number_text(values[1]);
}
std::string text(DType dtype) { return std::string(name(dtype)); }
std::string text(Activation activation) { return name_of(activation); }
std::string text(LossReduction reduction) {
  constexpr const char* kNames[] = {"none", "mean", "sum"};
  return kNames[static_cast<int>(reduction)];
}
template <class T>
requires(std::is_integral_v<T> && !std::is_same_v<T, bool>) std::string text(T value) {
  return std::to_string(value);
}

std::string text(StepRule rule) { return std::to_string(static_cast<int>(rule)); }
std::string text(const StepNumbers& numbers) {
  std::string out;
  for (const double value : all_of(numbers)) out += (out.empty() ? "" : " ") + number_text(value);
  return out;
}

// ---- One struct

template <class T>
bool same_struct(const void* a, const void* b) noexcept {
  const T& x = *static_cast<const T*>(a);
  const T& y = *static_cast<const T*>(b);
  return std::apply([&](const auto&... f) { return (same(x.*f.member, y.*f.member) && ...); },
                    T::fields());
}

template <class T>
std::size_t hash_struct(const void* data) noexcept {
  const T& x = *static_cast<const T*>(data);
  auto hash = static_cast<std::size_t>(kAttrKindOf<T>);
  std::apply([&](const auto&... f) { ((hash = hashed(hash, x.*f.member)), ...); }, T::fields());
  return hash;
}

template <class T>
std::string print_struct(const void* data) {
  const T& x = *static_cast<const T*>(data);
  std::string out;
  const auto add = [&](const auto& field) {
    if (!out.empty()) out += ", ";
    out += message(field.name, "=", text(x.*field.member));
  };
  std::apply([&](const auto&... f) { (add(f), ...); }, T::fields());
  return out;
}

template <class T>
void copy_struct(void* to, const void* from) noexcept {
  new (to) T(*static_cast<const T*>(from));
}

struct AttrType {
  const char* name = "None";
  std::size_t size = 0;
  bool (*same)(const void*, const void*) noexcept = nullptr;
  std::size_t (*hash)(const void*) noexcept = nullptr;
  std::string (*print)(const void*) = nullptr;
  void (*copy)(void*, const void*) noexcept = nullptr;
};

template <class T>
constexpr AttrType type_of(const char* name) {
  static_assert(alignof(T) <= 8 && std::is_trivially_destructible_v<T>);
  return {name, sizeof(T), same_struct<T>, hash_struct<T>, print_struct<T>, copy_struct<T>};
}

constexpr AttrType kTypes[] = {{},
#define BG_ROW(name) type_of<name##Attrs>(#name),
                               BG_ATTR_KINDS(BG_ROW)
#undef BG_ROW
};

const AttrType& type_of(AttrKind kind) noexcept { return kTypes[static_cast<int>(kind)]; }

}  // namespace

void throw_wrong_attrs(AttrKind wanted, AttrKind there) {
  throw Error(message("internal error: an op call has attributes ", attr_kind_name(there),
                      " where ", attr_kind_name(wanted), " are read"));
}

const char* attr_kind_name(AttrKind kind) noexcept { return type_of(kind).name; }

std::size_t attrs_size(AttrKind kind) noexcept { return type_of(kind).size; }

void copy_attrs(void* to, AttrsRef attrs) noexcept {
  if (!attrs.empty()) type_of(attrs.kind()).copy(to, attrs.data());
}

bool same_attrs(AttrsRef a, AttrsRef b) noexcept {
  if (a.kind() != b.kind()) return false;
  return a.empty() || type_of(a.kind()).same(a.data(), b.data());
}

std::size_t hash_attrs(AttrsRef attrs) noexcept {
  return attrs.empty() ? 0 : type_of(attrs.kind()).hash(attrs.data());
}

std::string to_string(AttrsRef attrs) {
  return attrs.empty() ? std::string() : type_of(attrs.kind()).print(attrs.data());
}

OwnedAttrs::OwnedAttrs(AttrsRef attrs) : kind_(attrs.kind()) {
  if (attrs.empty()) return;
  auto data = std::make_shared<std::byte[]>(attrs_size(kind_));
  copy_attrs(data.get(), attrs);
  data_ = std::move(data);
}

}  // namespace baregrad
