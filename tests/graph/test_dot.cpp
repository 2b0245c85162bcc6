// to_dot: the contents and wording of drawings; user text must not break them. test_svg.py tests
// that Graphviz can read them.
#include <limits>

#include "core/utf8.h"
#include "graph/text.h"
#include "tests/graph/support.h"

namespace baregrad {
namespace {

using autograd::Label;
using graph::to_dot;

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

Tensor leaf_of_ones(const Dims& shape) { return ones(shape).requires_grad_(); }

TEST(ToDot, OpsShapesNamesAndEdges) {
  const Tensor w = leaf_of_ones({3, 2});
  const Tensor x = ones({4, 3});
  const Tensor h = matmul(x, w);
  const Tensor loss = sum(h * h);
  const std::string dot = to_dot(loss, {.names = {{"weight", w}, {"input", x}, {"hidden", h}}});
  EXPECT_TRUE(has(dot, "n0 [label=\"weight\\nfloat32[3,2]\", fillcolor=")) << dot;
  EXPECT_TRUE(has(dot, "n1 [label=\"matmul\\nhidden float32[4,2]\"];")) << dot;
  EXPECT_TRUE(has(dot, "n2 [label=\"multiply\\nfloat32[4,2]\"];")) << dot;
  EXPECT_TRUE(has(dot, "n3 [label=\"sum\\nfloat32[]\"];")) << dot;
  EXPECT_TRUE(has(dot, "  n0 -> n1;\n"));
  EXPECT_EQ(count(dot, "  n1 -> n2;\n"), 2U) << "h is both factors";
  EXPECT_TRUE(has(dot, "  n2 -> n3;\n"));
  EXPECT_TRUE(has(dot, "  n3 -> r0;\n"));
  EXPECT_EQ(count(dot, " -> "), 5U);
  EXPECT_FALSE(has(dot, "input")) << "x has no history";
  EXPECT_FALSE(has(dot, "legend"));
}

TEST(ToDot, IsTheSameForTheSameGraph) {
  const auto draw = [] {
    const Tensor a = leaf_of_ones({2});
    const Tensor b = leaf_of_ones({2});
    return to_dot({exp(a) * b, a + b}, {.names = {{"a", a}, {"b", b}}});
  };
  const std::string first = draw();
  // Other addresses, other numbers.
  const std::vector<Tensor> elsewhere(100, leaf_of_ones({5}) * 2.0);
  EXPECT_EQ(draw(), first);
}

TEST(ToDot, SeveralRootsShareTheirPast) {
  const Tensor x = leaf_of_ones({2});
  const Tensor h = exp(x);
  const std::string dot = to_dot({sum(h), h * 2.0, h});
  EXPECT_EQ(count(dot, "label=\"exp"), 1U);
  EXPECT_TRUE(has(dot, "r0 [label=\"root 0\""));
  EXPECT_TRUE(has(dot, "n1 -> r2;")) << dot;
}

TEST(ToDot, ResultsOfOneOpAreToldApart) {
  const Tensor x = leaf_of_ones({4});
  const std::vector<Tensor> both = autograd::checkpoint(
      [](const autograd::Tensors& in) {
        return autograd::Tensors{in[0] * 2.0, exp(in[0])};
      },
      {x});
  const std::string dot = to_dot(sum(both[1]), {.names = {{"second", both[1]}}});
  EXPECT_TRUE(has(dot, "label=\"checkpoint\\nfloat32[4]\\nsecond float32[4]\"")) << dot;
  EXPECT_TRUE(has(dot, "n1 -> n2 [label=\"result 1\"];")) << dot;
}

TEST(ToDot, LabelsAreNestedFrames) {
  const Tensor x = leaf_of_ones({2});
  Tensor h;
  {
    const Label outer("encoder");
    h = exp(x);
    {
      const Label inner("layer 0");
      h = h * 2.0;
    }
    h = h + 1.0;
  }
  const std::string dot = to_dot(sum(h));
  EXPECT_TRUE(has(dot,
                  "  subgraph cluster_0 {\n"
                  "    label=\"encoder\"; color=\"#999999\"; style=rounded;\n"
                  "    n1 [label=\"exp\\nfloat32[2]\"];\n"
                  "    n3 [label=\"add\\nfloat32[2]\"];\n"
                  "    subgraph cluster_1 {\n"
                  "      label=\"layer 0\"; color=\"#999999\"; style=rounded;\n"
                  "      n2 [label=\"multiply\\nfloat32[2]\"];\n"
                  "    }\n"
                  "  }\n"))
      << dot;
  EXPECT_EQ(count(dot, "subgraph"), 2U);
  EXPECT_EQ(count(dot, "{"), count(dot, "}"));
}

TEST(ToDot, WhatIsFarthestFromTheRootBecomesACount) {
  const Tensor x = leaf_of_ones({1});
  Tensor h = x;
  for (int i = 0; i < 9; ++i) h = h * 2.0;
  const std::string dot = to_dot(h, {.names = {{"x", x}}, .max_nodes = 4});
  EXPECT_TRUE(has(dot, "... and 6 more")) << dot;
  EXPECT_EQ(count(dot, "label=\"multiply"), 4U);
  EXPECT_TRUE(has(dot, "more -> n0 [style=dashed];")) << dot;
  EXPECT_FALSE(has(dot, "label=\"x"));
  const std::string whole = to_dot(h, {.max_nodes = 10});
  EXPECT_FALSE(has(whole, "more"));
}

TEST(ToDot, NO_TSAN_AMillionNodesDeep) {
  const Tensor x = leaf_of_ones({1});
  Tensor h = x;
  for (int i = 0; i < 1'000'000; ++i) h = negative(h);
  const std::string dot = to_dot(h);
  EXPECT_TRUE(has(dot, "... and 998,001 more")) << dot.substr(0, 2000);
  EXPECT_EQ(count(dot, "label=\"negative"), 2000U);
}

TEST(ToDot, ManyNestedLabels) {
  const Tensor x = leaf_of_ones({1});
  std::string label;
  for (int i = 0; i < 100'000; ++i) label += "a/";
  const Label deep(label);
  const std::string dot = to_dot(x * 2.0);
  EXPECT_EQ(count(dot, "subgraph cluster_"), 100'000U);
  EXPECT_EQ(count(dot, "{"), count(dot, "}"));
}

TEST(ToDot, TextOfUsersIsEscaped) {
  const Tensor x = leaf_of_ones({1});
  const Label label("l\"\\\n{}");
  const std::string dot = to_dot(x * 2.0, {.names = {{"a\"b\\c\nd{e}<f>&amp;|\té", x}}});
  EXPECT_TRUE(has(dot, "label=\"a\\\"b\\\\c\\nd{e}<f>&amp;amp;| é\\nfloat32[1]\"")) << dot;
  EXPECT_TRUE(has(dot, "label=\"l\\\"\\\\\\n{}\";")) << dot;
}

TEST(ToDot, WhatItRefuses) {
  const Tensor x = leaf_of_ones({1});
  EXPECT_THROW(to_dot(Tensor()), ValueError);
  EXPECT_THROW(to_dot(std::vector<Tensor>{}), ValueError);
  EXPECT_THROW(to_dot(x, {.max_nodes = 0}), ValueError);
  EXPECT_THROW(to_dot(x, {.names = {{"none", Tensor()}}}), ValueError);
  EXPECT_THROW(to_dot(x, {.vanishing = 2, .exploding = 1}), ValueError);
  EXPECT_THROW(to_dot(x, {.vanishing = std::numeric_limits<double>::quiet_NaN()}), ValueError);
  try {
    to_dot({x, ones({2, 3})});
    FAIL() << "no error";
  } catch (const GradError& e) {
    EXPECT_EQ(std::string(e.what()).rfind("to_dot: float32[2,3] has no history", 0), 0U)
        << e.what();
  }
  EXPECT_TRUE(has(to_dot(x), "leaf\\nfloat32[1]"));
}

// ---- Text

TEST(Text, BytesThatAreNoUtf8AreReplaced) {
  const std::string bad = "\xEF\xBF\xBD";
  EXPECT_EQ(graph::clean_utf8("aé€😀"), "aé€😀");
  EXPECT_EQ(graph::clean_utf8("\x80x"), bad + "x");
  EXPECT_EQ(graph::clean_utf8("\xC3"), bad) << "cut off";
  EXPECT_EQ(graph::clean_utf8("\xC0\xAF"), bad + bad) << "longer than need be";
  EXPECT_EQ(graph::clean_utf8("\xED\xA0\x80"), bad + bad + bad) << "a surrogate";
  EXPECT_EQ(graph::clean_utf8("\xF4\x90\x80\x80"), bad + bad + bad + bad) << "beyond Unicode";
  EXPECT_EQ(graph::clean_utf8("\x1B[1m\n"), bad + "[1m\n");
}

TEST(Text, NumbersForPeople) {
  EXPECT_EQ(graph::bytes_text(0), "0 B");
  EXPECT_EQ(graph::bytes_text(1023), "1023 B");
  EXPECT_EQ(graph::bytes_text(1024), "1.0 KiB");
  EXPECT_EQ(graph::bytes_text(1536), "1.5 KiB");
  EXPECT_EQ(graph::bytes_text(1024 * 1024 - 1), "1.0 MiB");
  EXPECT_EQ(graph::bytes_text(std::numeric_limits<std::uint64_t>::max()), "16.0 EiB");
  EXPECT_EQ(graph::grouped(0), "0");
  EXPECT_EQ(graph::grouped(999), "999");
  EXPECT_EQ(graph::grouped(1000), "1,000");
  EXPECT_EQ(graph::grouped(1234567), "1,234,567");
  EXPECT_EQ(graph::short_number(0.0123456), "0.0123");
  EXPECT_EQ(graph::short_number(1e-9), "1e-09");
}

TEST(Text, OneLineShowsWhatATerminalWouldObey) {
  EXPECT_EQ(graph::one_line("a\nb\x1B[2Jc\u0085é"), "a\\nb\\x1b[2Jc\\x85é");
  EXPECT_EQ(utf8_columns("aé€😀"), 4U);
}

}  // namespace
}  // namespace baregrad
