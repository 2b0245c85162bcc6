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
  Irregular,
};

enum class Rule : std::uint8_t { Any, Numeric, Floating, Integer, Shift, Free };

struct OpInfo {
  const char* name;
  Family family;
  Rule rule;
  const char* doc;
};

/// The row of ops.def behind an OpId.
const OpInfo& op_info(OpId op) noexcept;
inline const char* op_name(OpId op) noexcept { return op_info(op).name; }

}  // namespace baregrad
