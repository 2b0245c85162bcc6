// Helpers for tests of graphs: search for words in drawings and tables.
#pragma once

#include <string>

#include <gtest/gtest.h>

#include "baregrad/baregrad.h"
#include "baregrad/graph.h"

namespace baregrad {

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace baregrad
