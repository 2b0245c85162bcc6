// einsum: parsed, then reduced to diagonals, sums and one matrix product per pair of operands.
#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "baregrad/error.h"
#include "baregrad/ops.h"
#include "core/message.h"
#include "ops/positions.h"
#include "ops/widened.h"

namespace baregrad {

namespace {

/// An axis by name: 'a'..'z' and 'A'..'Z' as written, the axes of "..." counted from the last one
/// as kEllipsis, kEllipsis + 1, ...
using Label = int;
using Labels = std::vector<Label>;
constexpr Label kEllipsis = 256;
constexpr Label kDots = -1;  // "..." while its number of axes is not known

bool has(const Labels& labels, Label label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

std::string shown(Label label) {
  if (label >= kEllipsis) return "...";
  return message("'", std::string(1, static_cast<char>(label)), "'");
}

[[noreturn]] void refuse(const std::string& equation, const std::string& why) {
  throw ValueError(message("einsum: \"", equation, "\": ", why));
}

/// One side or operand: letters, at most one "...", spaces anywhere.
Labels parse_term(const std::string& equation, std::string_view text) {
  Labels labels;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == ' ') continue;
    if (is_letter(c)) {
      labels.push_back(c);
    } else if (text.substr(i, 3) == "...") {
      if (has(labels, kDots)) refuse(equation, "\"...\" stands twice in one term");
      labels.push_back(kDots);
      i += 2;
    } else {
      refuse(equation, message("'", std::string(1, c), "' is no letter, comma, \"...\" or \"->\""));
    }
  }
  return labels;
}

struct Equation {
  std::vector<Labels> inputs;
  Labels output;
  bool explicit_output = false;
};

Equation parse(const std::string& text) {
  Equation equation;
  std::string_view left = text;
  const std::size_t arrow = text.find("->");
  if (arrow != std::string::npos) {
    equation.explicit_output = true;
    equation.output = parse_term(text, left.substr(arrow + 2));
    left = left.substr(0, arrow);
  }
  for (;;) {
    const std::size_t comma = left.find(',');
    equation.inputs.push_back(parse_term(text, left.substr(0, comma)));
    if (comma == std::string_view::npos) break;
    left = left.substr(comma + 1);
  }
  return equation;
}

/// "..." replaced by `axes` labels of its own.
Labels with_dots(const Labels& labels, int axes) {
  Labels out;
  for (const Label label : labels) {
    if (label != kDots) {
      out.push_back(label);
      continue;
    }
    for (int i = axes - 1; i >= 0; --i) out.push_back(kEllipsis + i);
  }
  return out;
}

/// A tensor whose axes have names, each once.
struct Named {
  Tensor tensor;
  Labels labels;

  int find(Label label) const {
    const auto at = std::find(labels.begin(), labels.end(), label);
    return at == labels.end() ? -1 : static_cast<int>(at - labels.begin());
  }
  std::int64_t size(Label label) const { return tensor.shape()[find(label)]; }

  void sum_out(const Labels& gone) {
    if (gone.empty()) return;
    Dims axes;
    Labels rest;
    for (std::size_t i = 0; i < labels.size(); ++i) {
      if (has(gone, labels[i])) {
        axes.push_back(static_cast<std::int64_t>(i));
      } else {
        rest.push_back(labels[i]);
      }
    }
    tensor = sum(tensor, axes, false, tensor.dtype());
    labels = rest;
  }
  void arrange(const Labels& order) {
    Dims axes;
    for (const Label label : order) axes.push_back(find(label));
    tensor = permute_dims(tensor, axes);
    labels = order;
  }
};

/// Axes of one name become their diagonal.
Named with_names(const std::string& equation, const Tensor& tensor, const Labels& labels) {
  Named out{tensor, {}};
  Labels open = labels;
  for (std::size_t i = 0; i < open.size(); ++i) {
    for (std::size_t j = i + 1; j < open.size();) {
      if (open[j] != open[i]) {
        ++j;
        continue;
      }
      const std::int64_t a = out.tensor.shape()[static_cast<int>(i)];
      const std::int64_t b = out.tensor.shape()[static_cast<int>(j)];
      if (a != b) {
        refuse(equation, message("axes of one name, ", shown(open[i]), ", have sizes ", a, " and ",
                                 b, " in ", describe(tensor)));
      }
      // The diagonal comes last: move it to where the first of the two stood.
      out.tensor =
          diagonal(out.tensor, 0, static_cast<std::int64_t>(i), static_cast<std::int64_t>(j));
      out.tensor = moveaxis(out.tensor, {-1}, {static_cast<std::int64_t>(i)});
      open.erase(open.begin() + static_cast<std::ptrdiff_t>(j));
    }
  }
  out.labels = open;
  return out;
}

std::int64_t product_of(const Named& x, const Labels& labels) {
  std::int64_t n = 1;
  for (const Label label : labels) n *= x.size(label);
  return n;
}

Labels joined(std::initializer_list<const Labels*> parts) {
  Labels all;
  for (const Labels* part : parts) all.insert(all.end(), part->begin(), part->end());
  return all;
}

/// Both as stacks of matrices, multiplied; only the names in `wanted` are left.
Named contract(Named x, Named y, const Labels& wanted) {
  // An axis of size 1 beside a longer one of its name is that one repeated: as if it were not
  // there.
  for (Named* one : {&x, &y}) {
    Named& other = one == &x ? y : x;
    Labels repeated;
    for (const Label label : one->labels) {
      if (one->size(label) == 1 && other.find(label) >= 0 && other.size(label) != 1) {
        repeated.push_back(label);
      }
    }
    one->sum_out(repeated);
  }
  Labels x_alone;
  Labels y_alone;
  for (const Label label : x.labels) {
    if (y.find(label) < 0 && !has(wanted, label)) x_alone.push_back(label);
  }
  for (const Label label : y.labels) {
    if (x.find(label) < 0 && !has(wanted, label)) y_alone.push_back(label);
  }
  x.sum_out(x_alone);
  y.sum_out(y_alone);

  Labels batch;
  Labels summed;
  Labels rows;
  Labels columns;
  for (const Label label : x.labels) {
    (y.find(label) < 0 ? rows : has(wanted, label) ? batch : summed).push_back(label);
  }
  for (const Label label : y.labels) {
    if (x.find(label) < 0) columns.push_back(label);
  }
  Dims shape;
  for (const Label label : batch) shape.push_back(x.size(label));
  for (const Label label : rows) shape.push_back(x.size(label));
  for (const Label label : columns) shape.push_back(y.size(label));
  const std::int64_t b = product_of(x, batch);
  const std::int64_t k = product_of(x, summed);
  const std::int64_t m = product_of(x, rows);
  const std::int64_t n = product_of(y, columns);
  x.arrange(joined({&batch, &rows, &summed}));
  y.arrange(joined({&batch, &summed, &columns}));
  const Tensor product = matmul(reshape(x.tensor, {b, m, k}), reshape(y.tensor, {b, k, n}));
  return {reshape(product, shape), joined({&batch, &rows, &columns})};
}

/// Sizes agree, or one of them is 1.
void check_sizes(const std::string& equation, const std::vector<Named>& operands) {
  for (const Named& x : operands) {
    for (const Named& y : operands) {
      for (const Label label : x.labels) {
        if (y.find(label) < 0) continue;
        const std::int64_t a = x.size(label);
        const std::int64_t b = y.size(label);
        if (a == b || a == 1 || b == 1) continue;
        throw ShapeError(message("einsum: \"", equation, "\": axis ", shown(label), " has size ", a,
                                 " in ", describe(x.tensor), " and ", b, " in ",
                                 describe(y.tensor)));
      }
    }
  }
}

/// Without "->": what "..." stands for, then the letters that stand once, by the alphabet.
Labels implied_output(const std::vector<Labels>& inputs, int dots) {
  Labels output;
  for (int i = dots - 1; i >= 0; --i) output.push_back(kEllipsis + i);
  std::array<int, 128> seen{};
  for (const Labels& labels : inputs) {
    for (const Label label : labels) {
      if (label < kEllipsis && label >= 0) ++seen[static_cast<std::size_t>(label)];
    }
  }
  for (Label label = 0; label < 128; ++label) {
    if (seen[static_cast<std::size_t>(label)] == 1) output.push_back(label);
  }
  return output;
}

}  // namespace

Tensor einsum(const std::string& equation, const std::vector<Tensor>& operands) {
  const Equation parsed = parse(equation);
  if (parsed.inputs.size() != operands.size()) {
    refuse(equation, message("names ", parsed.inputs.size(), " operands, got ", operands.size()));
  }
  int dots = 0;
  std::vector<int> dots_of;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    require_defined(operands[i], "an operand", "einsum");
    const bool open = has(parsed.inputs[i], kDots);
    const int named = static_cast<int>(parsed.inputs[i].size()) - (open ? 1 : 0);
    const int rest = operands[i].ndim() - named;
    if (rest < 0 || (rest > 0 && !open)) {
      refuse(equation, message("names ", named, " axes of operand ", i, ", which is ",
                               describe(operands[i])));
    }
    dots_of.push_back(rest);
    dots = std::max(dots, rest);
  }
  std::vector<Labels> inputs;
  std::vector<Named> named;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    inputs.push_back(with_dots(parsed.inputs[i], dots_of[i]));
    named.push_back(with_names(equation, operands[i], inputs[i]));
  }
  check_sizes(equation, named);
  if (parsed.explicit_output && dots > 0 && !has(parsed.output, kDots)) {
    refuse(equation, "\"...\" stands for axes that the result does not name");
  }
  const Labels output =
      parsed.explicit_output ? with_dots(parsed.output, dots) : implied_output(inputs, dots);
  for (std::size_t i = 0; i < output.size(); ++i) {
    const bool known = std::any_of(named.begin(), named.end(),
                                   [&](const Named& x) { return x.find(output[i]) >= 0; });
    if (!known) refuse(equation, message("the result's ", shown(output[i]), " is in no operand"));
    if (std::find(output.begin(), output.begin() + static_cast<std::ptrdiff_t>(i), output[i]) !=
        output.begin() + static_cast<std::ptrdiff_t>(i)) {
      refuse(equation, message(shown(output[i]), " stands twice in the result"));
    }
  }

  // Two operands are one product. Between several, half precision would round.
  const Widened wide(operands.size() > 2 ? operands : std::vector<Tensor>());
  if (operands.size() > 2) {
    for (Named& operand : named) operand.tensor = wide(operand.tensor);
  }
  Named result = named[0];
  for (std::size_t i = 1; i < named.size(); ++i) {
    Labels wanted = output;
    for (std::size_t j = i + 1; j < named.size(); ++j) {
      wanted.insert(wanted.end(), named[j].labels.begin(), named[j].labels.end());
    }
    result = contract(result, named[i], wanted);
  }
  Labels gone;
  for (const Label label : result.labels) {
    if (!has(output, label)) gone.push_back(label);
  }
  result.sum_out(gone);
  result.arrange(output);
  // A result of its own, as from every other op that is not a view.
  return named.size() == 1 && gone.empty() ? clone(result.tensor) : wide.rounded(result.tensor);
}

}  // namespace baregrad
