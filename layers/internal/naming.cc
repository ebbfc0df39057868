#include <keel/layers/internal/naming.h>

#include <absl/strings/ascii.h>
#include <map>
#include <mutex>

namespace keel {
namespace {

struct Counters {
  std::mutex mutex;  // guards `made`
  std::map<std::string, int> made;
};

Counters& counters() {
  static Counters instance;
  return instance;
}

bool is_upper(char c) { return absl::ascii_isupper(c); }
bool is_lower(char c) { return absl::ascii_islower(c); }
bool is_word(char c) { return absl::ascii_isalnum(c) || c == '_'; }

}  // namespace

std::string to_snake_case(const std::string& class_name) {
  std::string word;
  for (char c : class_name) {
    if (is_word(c)) word += c;
  }
  std::string out;
  for (size_t i = 0; i < word.size(); ++i) {
    const char c = word[i];
    if (i > 0 && is_upper(c)) {
      const char before = word[i - 1];
      const bool starts_word = i + 1 < word.size() && is_lower(word[i + 1]);
      const bool after_lower = is_lower(before) || absl::ascii_isdigit(before);
      if ((starts_word || after_lower) && before != '_') {
        // "Conv1D" stays one word: a lone capital after a digit does not start a word.
        const bool lone_after_digit = absl::ascii_isdigit(before) && !starts_word;
        if (!lone_after_digit) out += '_';
      }
    }
    out += absl::ascii_tolower(c);
  }
  return out;
}

std::string unique_layer_name(const std::string& class_name) {
  const std::string base = to_snake_case(class_name);
  const std::lock_guard lock(counters().mutex);
  const int number = counters().made[base]++;
  return number == 0 ? base : base + "_" + std::to_string(number);
}

std::string without_number(const std::string& name) {
  const size_t end = name.find_last_not_of("0123456789");
  const bool numbered = end != std::string::npos && end + 1 < name.size() && name[end] == '_';
  return numbered ? name.substr(0, end) : name;
}

void clear_session() {
  const std::lock_guard lock(counters().mutex);
  counters().made.clear();
}

}  // namespace keel
