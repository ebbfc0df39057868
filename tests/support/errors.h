// The message of an expected error, for matchers of texts:
//
//   EXPECT_THAT(message_of<ValueError>([&] { layer(input); }), HasSubstr("'watched'"));
#pragma once

#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/framework/base/errors.h>

namespace keel::testing_support {

// Returns the message of the error E that `fn` throws. If `fn` throws nothing, the test fails and
// the message is empty. Errors of other types are not caught.
template <class E = Error, class Fn>
std::string message_of(Fn&& fn) {
  try {
    std::forward<Fn>(fn)();
  } catch (const E& error) {
    return error.what();
  }
  ADD_FAILURE() << "no error was thrown";
  return {};
}

// Returns the message of the error E that `fn` throws, or an empty string if it throws nothing.
// Errors of other types are not caught.
template <class E = Error, class Fn>
std::string message_if_any(Fn&& fn) {
  try {
    std::forward<Fn>(fn)();
  } catch (const E& error) {
    return error.what();
  }
  return {};
}

}  // namespace keel::testing_support
