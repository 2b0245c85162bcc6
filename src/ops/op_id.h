// OpId: a number for every row of ops.def.
#pragma once

#include <cstdint>

#include "ops/attr_kind.h"

namespace baregrad {

enum class OpId : std::uint16_t {
#define BG_UNARY(name, rule, doc) name,
#define BG_PREDICATE(name, rule, doc) name,
#define BG_BINARY(name, rule, doc) name,
#define BG_COMPARE(name, rule, doc) name,
#define BG_TERNARY(name, rule, doc) name,
#define BG_REDUCE(name, rule, doc) name,
#define BG_ARGREDUCE(name, rule, doc) name,
#define BG_VIEW(name, attrs, doc) name,
#define BG_PRODUCT(name, rule, doc) name,
#define BG_IRREGULAR(name, attrs, infer, results, doc) name,
#include "ops/ops.def"
  kCount
};
inline constexpr int kNumOps = static_cast<int>(OpId::kCount);

enum class Family : std::uint8_t {
  Unary,
  Predicate,
  Binary,
  Compare,
  Ternary,
  Reduce,
  ArgReduce,
  View,
  Product,
  Irregular,
};

/// One result element per element of the broadcast inputs.
constexpr bool is_elementwise(Family family) noexcept { return family <= Family::Ternary; }

enum class Rule : std::uint8_t { Any, Numeric, Floating, Integer, Shift, Free };

struct OpInfo {
  const char* name;
  Family family;
  Rule rule;
  AttrKind attrs;  ///< the struct that a call carries, if any
  int results;     ///< their number; -1 where the input decides
  const char* doc;
};

inline constexpr OpInfo kOpRows[] = {
#define BG_ROW(name, family, rule, attrs, doc) \
  {#name, Family::family, Rule::rule, AttrKind::attrs, 1, doc},
#define BG_UNARY(name, rule, doc) BG_ROW(name, Unary, rule, None, doc)
#define BG_UNARY_PARAM(name, rule, doc) BG_ROW(name, Unary, rule, Numbers, doc)
#define BG_PREDICATE(name, rule, doc) BG_ROW(name, Predicate, rule, None, doc)
#define BG_BINARY(name, rule, doc) BG_ROW(name, Binary, rule, None, doc)
#define BG_BINARY_TIES(name, rule, doc) BG_ROW(name, Binary, rule, Ties, doc)
#define BG_COMPARE(name, rule, doc) BG_ROW(name, Compare, rule, None, doc)
#define BG_TERNARY(name, rule, doc) BG_ROW(name, Ternary, rule, None, doc)
#define BG_TERNARY_PARAM(name, rule, doc) BG_ROW(name, Ternary, rule, Numbers, doc)
#define BG_REDUCE(name, rule, doc) BG_ROW(name, Reduce, rule, Reduce, doc)
#define BG_ARGREDUCE(name, rule, doc) BG_ROW(name, ArgReduce, rule, ArgReduce, doc)
#define BG_VIEW(name, attrs, doc) BG_ROW(name, View, Free, attrs, doc)
#define BG_PRODUCT(name, rule, doc) BG_ROW(name, Product, rule, Product, doc)
#define BG_IRREGULAR(name, attrs, infer, results, doc) \
  {#name, Family::Irregular, Rule::Free, AttrKind::attrs, results, doc},
#include "ops/ops.def"
#undef BG_ROW
};
static_assert(sizeof(kOpRows) / sizeof(kOpRows[0]) == kNumOps);

/// The row of ops.def behind an OpId.
constexpr const OpInfo& op_info(OpId op) noexcept { return kOpRows[static_cast<int>(op)]; }
constexpr const char* op_name(OpId op) noexcept { return op_info(op).name; }

}  // namespace baregrad
