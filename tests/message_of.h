// What an error says, for tests of messages.
#pragma once

#include <exception>
#include <string>

#include <gtest/gtest.h>

namespace baregrad {

/// The message of what fn throws; the test fails when it throws nothing or something else.
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
