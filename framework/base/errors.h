// The exceptions that this library throws.
//
// Messages have the form "function or class: problem; remedy". Unless documented otherwise, a call
// that throws has changed nothing.
//   ValueError           a value, shape, length or key is wrong
//   TypeError            a dtype, layout or kind of container is wrong
//   RuntimeError         a valid call at the wrong time or place, e.g. inside a replica
//   NotImplementedError  a valid request that is not supported
//   IoError              a file is missing, truncated or malformed
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

namespace keel {

namespace text_internal {

// A value that becomes a part of a text. It refers to the value, which must exist as long. Calls of
// str() and of the constructors of errors make an array of parts and call one function, so that
// their code is small whatever the types of their arguments are.
class Part {
 public:
  template <std::convertible_to<std::string_view> T>
  Part(const T& text) : Part(std::string_view(text)) {}  // NOLINT: implicit
  Part(const char* text)                                 // NOLINT: implicit; null is an empty text
      : Part(text == nullptr ? std::string_view() : std::string_view(text)) {}
  Part(std::string_view text)  // NOLINT: implicit
      : append_(append_text), object_(text.data()), number_(text.size()) {}
  Part(char c)
      : append_(append_char), number_(static_cast<unsigned char>(c)) {}  // NOLINT: implicit
  template <std::integral T>
  Part(T number)  // NOLINT: implicit
      : append_(sizeof(T) == 1 && !std::same_as<T, bool> ? append_char
                : std::is_signed_v<T>                    ? append_signed
                                                         : append_unsigned),
        number_(static_cast<uint64_t>(number)) {}
  template <std::floating_point T>
  Part(T number)  // NOLINT: implicit
      : append_(append_double), double_(static_cast<double>(number)) {}
  // Any other type that operator<< prints.
  template <class T>
    requires(!std::convertible_to<T, std::string_view> && !std::is_arithmetic_v<T>)
  Part(const T& object)  // NOLINT: implicit
      : append_(append_printed), object_(&object), print_(print<T>) {}

  // Appends the value to the text.
  void append_to(std::string& text) const { append_(*this, text); }

 private:
  using Append = void (*)(const Part&, std::string&);
  using Print = void (*)(std::ostream&, const void*);
  static void append_text(const Part& part, std::string& text);
  static void append_char(const Part& part, std::string& text);
  static void append_signed(const Part& part, std::string& text);
  static void append_unsigned(const Part& part, std::string& text);
  static void append_double(const Part& part, std::string& text);
  static void append_printed(const Part& part, std::string& text);
  template <class T>
  static void print(std::ostream& out, const void* object) {
    out << *static_cast<const T*>(object);
  }

  Append append_;
  const void* object_ = nullptr;
  union {
    uint64_t number_ = 0;
    double double_;
    Print print_;
  };
};

std::string concatenate(std::initializer_list<Part> parts);
std::string concatenate_or_empty(std::initializer_list<Part> parts) noexcept;

}  // namespace text_internal

// Concatenates the arguments as operator<< prints them. Sources whose arguments are texts and
// numbers call absl::StrCat.
template <class... Args>
[[gnu::always_inline]] inline std::string str(const Args&... args) {
  return text_internal::concatenate({text_internal::Part(args)...});
}

// Like str(), but returns an empty string if memory is exhausted.
template <class... Args>
[[gnu::always_inline]] inline std::string str_or_empty(const Args&... args) noexcept {
  return text_internal::concatenate_or_empty({text_internal::Part(args)...});
}

// The base class of all exceptions of this library.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  // Makes the message from its parts.
  Error(std::initializer_list<text_internal::Part> parts);
  Error(const Error&) = default;
  Error& operator=(const Error&) = default;
  ~Error() override;  // defined in a source, so that not every object file has a copy of the class
};

// A value, shape, length or key is wrong.
class ValueError : public Error {
 public:
  // Makes the message from its parts with str().
  template <class... Args>
  [[gnu::always_inline]] explicit ValueError(const Args&... args)
      : ValueError(std::initializer_list<text_internal::Part>{args...}) {}
  explicit ValueError(std::initializer_list<text_internal::Part> parts);
  ValueError(const ValueError&) = default;
  ValueError& operator=(const ValueError&) = default;
  ~ValueError() override;
};

// A dtype, layout or kind of container is wrong.
class TypeError : public Error {
 public:
  // Makes the message from its parts with str().
  template <class... Args>
  [[gnu::always_inline]] explicit TypeError(const Args&... args)
      : TypeError(std::initializer_list<text_internal::Part>{args...}) {}
  explicit TypeError(std::initializer_list<text_internal::Part> parts);
  TypeError(const TypeError&) = default;
  TypeError& operator=(const TypeError&) = default;
  ~TypeError() override;
};

// A valid call at the wrong time or place.
class RuntimeError : public Error {
 public:
  // Makes the message from its parts with str().
  template <class... Args>
  [[gnu::always_inline]] explicit RuntimeError(const Args&... args)
      : RuntimeError(std::initializer_list<text_internal::Part>{args...}) {}
  explicit RuntimeError(std::initializer_list<text_internal::Part> parts);
  RuntimeError(const RuntimeError&) = default;
  RuntimeError& operator=(const RuntimeError&) = default;
  ~RuntimeError() override;
};

// A valid request that is not supported.
class NotImplementedError : public Error {
 public:
  // Makes the message from its parts with str().
  template <class... Args>
  [[gnu::always_inline]] explicit NotImplementedError(const Args&... args)
      : NotImplementedError(std::initializer_list<text_internal::Part>{args...}) {}
  explicit NotImplementedError(std::initializer_list<text_internal::Part> parts);
  NotImplementedError(const NotImplementedError&) = default;
  NotImplementedError& operator=(const NotImplementedError&) = default;
  ~NotImplementedError() override;
};

// A file is missing, truncated or malformed.
class IoError : public Error {
 public:
  // Makes the message from its parts with str().
  template <class... Args>
  [[gnu::always_inline]] explicit IoError(const Args&... args)
      : IoError(std::initializer_list<text_internal::Part>{args...}) {}
  explicit IoError(std::initializer_list<text_internal::Part> parts);
  IoError(const IoError&) = default;
  IoError& operator=(const IoError&) = default;
  ~IoError() override;
};

// A ValueError about an id that its table does not have, which servers count.
class InvalidIdError : public ValueError {
 public:
  // Makes the message from its parts with str().
  template <class... Args>
  [[gnu::always_inline]] explicit InvalidIdError(const Args&... args)
      : InvalidIdError(std::initializer_list<text_internal::Part>{args...}) {}
  explicit InvalidIdError(std::initializer_list<text_internal::Part> parts);
  InvalidIdError(const InvalidIdError&) = default;
  InvalidIdError& operator=(const InvalidIdError&) = default;
  ~InvalidIdError() override;
};

}  // namespace keel
