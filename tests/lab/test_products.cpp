// The operands that C++ and Python both compute, and the records of a product.
#include <cmath>
#include <fstream>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include <unistd.h>

#include <gtest/gtest.h>

#include "lab/products.h"

namespace baregrad::lab {
namespace {

TEST(Products, OperandNumbersAreSpreadOverTheirRange) {
  constexpr int kCount = 10'000;
  std::set<float> different;
  double sum = 0;
  double squares = 0;
  for (std::uint32_t i = 0; i < kCount; ++i) {
    const float x = operand_number(1, i);
    ASSERT_GE(x, -1);
    ASSERT_LT(x, 1);
    different.insert(x);
    sum += x;
    squares += static_cast<double>(x) * x;
  }
  EXPECT_GT(different.size(), kCount * 99 / 100);
  // For uniform numbers: the mean is 0 with a deviation of 0.0058, the mean square 1/3 with 0.003.
  EXPECT_LT(std::abs(sum / kCount), 0.03);
  EXPECT_LT(std::abs(squares / kCount - 1.0 / 3), 0.015);
  EXPECT_NE(operand_number(1, 0), operand_number(2, 0));
}

// tests/python/lab/test_peer_products.py has the same values.
TEST(Products, OperandNumbersAreWhatPythonComputes) {
  EXPECT_EQ(operand_number(1, 0), -0.543509126f);
  EXPECT_EQ(operand_number(1, 1), -0.885713935f);
  EXPECT_EQ(operand_number(2, 0), 0.692508698f);
  EXPECT_EQ(operand_number(7, 4194303), 0.568490863f);
  EXPECT_EQ(wide_operand_number(1, 0), -0.54350908424423494);
  EXPECT_EQ(wide_operand_number(7, 4194303), 0.56849087428366119);
}

TEST(Products, AWrongResultIsBeyondTheToleranceInItsRecord) {
  const std::string folder = testing::TempDir() + "lab_products_" + std::to_string(::getpid());
  Notebook notebook("products", "?", "!", {.out = folder, .threads = 1}, {}, {});
  const Product product({.m = 2, .n = 2, .k = 2, .threads = 1}, 3);
  const float* a = product.a.data<float>();
  const float* b = product.b.data<float>();
  const auto write = [a, b](float* c) {
    for (int i = 0; i < 2; ++i) {
      for (int j = 0; j < 2; ++j) c[2 * i + j] = a[2 * i] * b[j] + a[2 * i + 1] * b[2 + j];
    }
  };
  for (const Output output : {Output::Reused, Output::Allocated}) {
    notebook.part(output == Output::Reused ? "reused" : "allocated", [&] {
      Field field(product, output);
      field.add<float>("right", write);
      field.add<float>("wrong", [write](float* c) {
        write(c);
        c[3] += 0.01f;
      });
      field.add<float>("no number", [write](float* c) {
        write(c);
        c[0] = std::numeric_limits<float>::quiet_NaN();
      });
      field.add_kernel();
      field.add_ours();
      field.record(notebook, {.seconds = 0, .least = 1, .most = 1}, {{"group", "test"}});
    });
  }
  notebook.finish(0);

  std::ifstream file(folder + "/products.jsonl");
  std::vector<std::string> names;
  for (std::string line; std::getline(file, line);) {
    const Json record = Json::parse(line);
    if (record["kind"] != "product") continue;
    names.push_back(record["name"]);
    const bool wrong = record["name"] == "wrong" || record["name"] == "no number";
    EXPECT_EQ(record["max_error"].get<double>() > record["tolerance"].get<double>(), wrong) << line;
    EXPECT_EQ(record["group"], "test");
    EXPECT_EQ(record["dtype"], "float32");
    EXPECT_DOUBLE_EQ(record["gflop_per_s"].get<double>() * record["median_ns"].get<double>(), 16);
  }
  const std::vector<std::string> each = {"right", "wrong", "no number", "baregrad", "baregrad"};
  std::vector<std::string> both = each;
  both.insert(both.end(), each.begin(), each.end());
  EXPECT_EQ(names, both);
}

}  // namespace
}  // namespace baregrad::lab
