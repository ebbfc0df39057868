#include <keel/framework/base/errors.h>

#include <absl/strings/str_cat.h>
#include <sstream>

namespace keel {
namespace text_internal {

void Part::append_text(const Part& part, std::string& text) {
  text.append(static_cast<const char*>(part.object_), part.number_);
}
void Part::append_char(const Part& part, std::string& text) {
  text.push_back(static_cast<char>(part.number_));
}
void Part::append_signed(const Part& part, std::string& text) {
  absl::StrAppend(&text, static_cast<int64_t>(part.number_));
}
void Part::append_unsigned(const Part& part, std::string& text) {
  absl::StrAppend(&text, part.number_);
}
void Part::append_double(const Part& part, std::string& text) {
  absl::StrAppend(&text, part.double_);  // six digits, like operator<<
}
void Part::append_printed(const Part& part, std::string& text) {
  std::ostringstream out;
  part.print_(out, part.object_);
  text += std::move(out).str();
}

std::string concatenate(std::initializer_list<Part> parts) {
  std::string out;
  for (const Part& part : parts) part.append_to(out);
  return out;
}

std::string concatenate_or_empty(std::initializer_list<Part> parts) noexcept {
  try {
    return concatenate(parts);
  } catch (...) {
    return {};
  }
}

}  // namespace text_internal

Error::Error(std::initializer_list<text_internal::Part> parts)
    : std::runtime_error(text_internal::concatenate(parts)) {}
Error::~Error() = default;

ValueError::ValueError(std::initializer_list<text_internal::Part> parts) : Error(parts) {}
ValueError::~ValueError() = default;
TypeError::TypeError(std::initializer_list<text_internal::Part> parts) : Error(parts) {}
TypeError::~TypeError() = default;
RuntimeError::RuntimeError(std::initializer_list<text_internal::Part> parts) : Error(parts) {}
RuntimeError::~RuntimeError() = default;
NotImplementedError::NotImplementedError(std::initializer_list<text_internal::Part> parts)
    : Error(parts) {}
NotImplementedError::~NotImplementedError() = default;
IoError::IoError(std::initializer_list<text_internal::Part> parts) : Error(parts) {}
IoError::~IoError() = default;
InvalidIdError::InvalidIdError(std::initializer_list<text_internal::Part> parts)
    : ValueError(parts) {}
InvalidIdError::~InvalidIdError() = default;

}  // namespace keel
