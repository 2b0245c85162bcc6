// OpId: a number for every row of ops.def.
#pragma once

#include <cstdint>

namespace baregrad {

enum class OpId : std::uint16_t {
#define BG_UNARY(name, rule, doc) name,
#define BG_PREDICATE(name, rule, doc) name,
#define BG_BINARY(name, rule, doc) name,
#define BG_COMPARE(name, rule, doc) name,
#define BG_TERNARY(name, rule, doc) name,
#define BG_REDUCE(name, rule, doc) name,
#define BG_ARGREDUCE(name, rule, doc) name,
#define BG_VIEW(name, rule, doc) name,
#define BG_PRODUCT(name, rule, doc) name,
#define BG_IRREGULAR(name, rule, doc) name,
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
  const char* doc;
};

inline constexpr OpInfo kOpRows[] = {
#define BG_UNARY(name, rule, doc) {#name, Family::Unary, Rule::rule, doc},
#define BG_PREDICATE(name, rule, doc) {#name, Family::Predicate, Rule::rule, doc},
#define BG_BINARY(name, rule, doc) {#name, Family::Binary, Rule::rule, doc},
#define BG_COMPARE(name, rule, doc) {#name, Family::Compare, Rule::rule, doc},
#define BG_TERNARY(name, rule, doc) {#name, Family::Ternary, Rule::rule, doc},
#define BG_REDUCE(name, rule, doc) {#name, Family::Reduce, Rule::rule, doc},
#define BG_ARGREDUCE(name, rule, doc) {#name, Family::ArgReduce, Rule::rule, doc},
#define BG_VIEW(name, rule, doc) {#name, Family::View, Rule::rule, doc},
#define BG_PRODUCT(name, rule, doc) {#name, Family::Product, Rule::rule, doc},
#define BG_IRREGULAR(name, rule, doc) {#name, Family::Irregular, Rule::rule, doc},
#include "ops/ops.def"
};
static_assert(sizeof(kOpRows) / sizeof(kOpRows[0]) == kNumOps);

/// The row of ops.def behind an OpId.
constexpr const OpInfo& op_info(OpId op) noexcept { return kOpRows[static_cast<int>(op)]; }
constexpr const char* op_name(OpId op) noexcept { return op_info(op).name; }

}  // namespace baregrad
