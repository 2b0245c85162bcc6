// What can be done with any attribute struct: keep, compare, hash, print. All of it follows from
// the struct's fields().
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "ops/attrs.h"

namespace baregrad {

/// "Slice", for messages.
const char* attr_kind_name(AttrKind kind) noexcept;
/// Bytes of the struct; 0 for none.
std::size_t attrs_size(AttrKind kind) noexcept;
/// Copies the struct to `to`, which has attrs_size() bytes, aligned to 8.
void copy_attrs(void* to, AttrsRef attrs) noexcept;
/// The same kind and every field the same. Floats are compared by their bits.
bool same_attrs(AttrsRef a, AttrsRef b) noexcept;
std::size_t hash_attrs(AttrsRef attrs) noexcept;
/// "axes=[0,1], keepdims=true"; "" for none.
std::string to_string(AttrsRef attrs);

/// A copy that owns the struct.
class OwnedAttrs {
 public:
  OwnedAttrs() noexcept = default;
  explicit OwnedAttrs(AttrsRef attrs);
  AttrsRef ref() const noexcept { return {kind_, data_.get()}; }

 private:
  AttrKind kind_ = AttrKind::None;
  std::shared_ptr<const std::byte[]> data_;  // immutable, so copies may share it
};

}  // namespace baregrad
