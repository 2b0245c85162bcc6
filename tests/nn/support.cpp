// Reading golden.txt.
#include "tests/nn/support.h"

#include <cmath>
#include <fstream>
#include <sstream>

namespace baregrad {

namespace {

Tensor parse_tensor(std::istringstream& in) {
  std::string kind;
  std::string word;
  in >> kind;
  Dims shape;
  while (in >> word && word != ":") shape.push_back(std::stoll(word));
  std::vector<double> values;
  while (in >> word) values.push_back(std::stod(word));
  const Tensor t = Tensor::of<double>(values, shape);
  return kind == "f" ? t : t.to(kind == "b" ? DType::Bool : DType::Int64);
}

std::map<std::string, GoldenCase> read_cases() {
  std::ifstream file(std::string(BAREGRAD_TEST_DIR) + "/nn/golden.txt");
  std::map<std::string, GoldenCase> cases;
  GoldenCase* current = nullptr;
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream in(line);
    std::string key;
    in >> key;
    if (key == "case") {
      std::string name;
      std::string mode;
      in >> name >> mode;
      current = &cases[name];
      current->train = mode == "train";
    } else if (key == "repr") {
      for (std::size_t i = 5; i < line.size(); ++i) {
        const bool newline = line.compare(i, 2, "\\n") == 0;
        current->repr += newline ? '\n' : line[i];
        if (newline) ++i;
      }
    } else if (key == "state") {
      std::string name;
      std::string size;
      in >> name;
      Dims shape;
      while (in >> size) shape.push_back(std::stoll(size));
      current->state.emplace_back(name, shape);
    } else {
      current->tensors[key] = parse_tensor(in);
    }
  }
  return cases;
}

/// The same random numbers for a test, whatever the order of tests.
class Seeded : public ::testing::EmptyTestEventListener {
  void OnTestStart(const ::testing::TestInfo&) override { manual_seed(1); }
};
[[maybe_unused]] const bool seeded = [] {
  ::testing::UnitTest::GetInstance()->listeners().Append(new Seeded);
  return true;
}();

}  // namespace

const std::map<std::string, GoldenCase>& golden_cases() {
  static const auto& cases = *new std::map<std::string, GoldenCase>(read_cases());
  return cases;
}

::testing::AssertionResult near(const Tensor& got, const Tensor& wanted, double rtol, double atol) {
  if (!got.defined() || !(got.shape() == wanted.shape())) {
    return ::testing::AssertionFailure() << describe(got) << " instead of " << describe(wanted);
  }
  const std::vector<double> a = got.detach().to(DType::Float64).to_vector<double>();
  const std::vector<double> b = wanted.detach().to(DType::Float64).to_vector<double>();
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!(std::fabs(a[i] - b[i]) <= atol + rtol * std::fabs(b[i]))) {
      return ::testing::AssertionFailure() << "element " << i << " of " << describe(got) << ": "
                                           << a[i] << " instead of " << b[i];
    }
  }
  return ::testing::AssertionSuccess();
}

}  // namespace baregrad
