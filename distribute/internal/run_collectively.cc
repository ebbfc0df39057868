#include <keel/distribute/internal/run_collectively.h>

#include <absl/strings/str_cat.h>
#include <exception>

namespace keel::distribute {
namespace {

// The type of an exception, sent as a character before its text.
enum class Kind : char {
  kValue = 'v',
  kType = 't',
  kNotImplemented = 'n',
  kIo = 'i',
  kOther = 'r'
};

Kind kind_of(const std::exception& error) {
  if (dynamic_cast<const ValueError*>(&error) != nullptr) return Kind::kValue;
  if (dynamic_cast<const TypeError*>(&error) != nullptr) return Kind::kType;
  if (dynamic_cast<const NotImplementedError*>(&error) != nullptr) return Kind::kNotImplemented;
  if (dynamic_cast<const IoError*>(&error) != nullptr) return Kind::kIo;
  return Kind::kOther;
}

[[noreturn]] void rethrow(int rank, const std::string& failure) {
  const std::string text = absl::StrCat("rank ", rank, ": ", failure.substr(1));
  switch (static_cast<Kind>(failure[0])) {
    case Kind::kValue:
      throw ValueError(text);
    case Kind::kType:
      throw TypeError(text);
    case Kind::kNotImplemented:
      throw NotImplementedError(text);
    case Kind::kIo:
      throw IoError(text);
    default:
      throw RuntimeError(text);
  }
}

}  // namespace

std::vector<std::string> gather_texts(ProcessGroup& group, std::string_view what,
                                      const std::string& mine) {
  const auto all = all_gather(group, what, {std::as_bytes(std::span(mine.data(), mine.size()))});
  std::vector<std::string> out;
  for (int p = 0; p < group.size(); ++p) {
    if (p == group.rank()) {
      out.push_back(mine);
    } else {
      const Bytes bytes = all[p].at(0);
      out.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }
  }
  return out;
}

void run_collectively(ProcessGroup& group, std::string_view what, FunctionRef<void()> fn) {
  if (group.size() == 1) return fn();
  std::exception_ptr own;
  std::string failure;
  try {
    const LongWork work(group, what);
    fn();
  } catch (const std::exception& error) {
    own = std::current_exception();
    failure = str(static_cast<char>(kind_of(error)), error.what());
  }
  const std::vector<std::string> failures = gather_texts(group, what, failure);
  // The exception of this process takes precedence and keeps its exact type.
  if (own != nullptr) std::rethrow_exception(own);
  for (int p = 0; p < group.size(); ++p) {
    if (!failures[p].empty()) rethrow(p, failures[p]);
  }
}

}  // namespace keel::distribute
