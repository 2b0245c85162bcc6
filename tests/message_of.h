// Error messages, for tests.
#pragma once

#include <exception>
#include <string>

#include <gtest/gtest.h>

namespace baregrad {

/// The message of the exception that fn throws. The test fails when it throws nothing or another
/// type.
template <class E, class F>
std::string message_of(F&& fn) {
  try {
    fn();
  } catch (const E& error) {
    return error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "another exception: " << error.what();
    return "";
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

}  // namespace baregrad
