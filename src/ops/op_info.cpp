// The rows of ops.def as data.
#include "ops/op_id.h"

namespace baregrad {

namespace {
constexpr OpInfo kRows[] = {
#define BG_UNARY(name, rule, doc) {#name, Family::Unary, Rule::rule, doc},
#define BG_PREDICATE(name, rule, doc) {#name, Family::Predicate, Rule::rule, doc},
#define BG_BINARY(name, rule, doc) {#name, Family::Binary, Rule::rule, doc},
#define BG_COMPARE(name, rule, doc) {#name, Family::Compare, Rule::rule, doc},
#define BG_TERNARY(name, rule, doc) {#name, Family::Ternary, Rule::rule, doc},
#define BG_REDUCE(name, rule, doc) {#name, Family::Reduce, Rule::rule, doc},
#define BG_ARGREDUCE(name, rule, doc) {#name, Family::ArgReduce, Rule::rule, doc},
#define BG_VIEW(name, rule, doc) {#name, Family::View, Rule::rule, doc},
#define BG_IRREGULAR(name, rule, doc) {#name, Family::Irregular, Rule::rule, doc},
#include "ops/ops.def"
};
static_assert(sizeof(kRows) / sizeof(kRows[0]) == kNumOps);
}  // namespace

const OpInfo& op_info(OpId op) noexcept { return kRows[static_cast<int>(op)]; }

}  // namespace baregrad
