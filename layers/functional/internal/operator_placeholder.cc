#include <keel/layers/functional/internal/operator_placeholder.h>

namespace keel {

static constexpr const char* kPlaceholder = "__tensor_number__";

Config tensor_placeholder(int64_t i) { return Config::dict({{kPlaceholder, i}}); }

int64_t placeholder_number(const Config& value) {
  const Config* const number = value.is_dict() ? value.find(kPlaceholder) : nullptr;
  return number == nullptr ? -1 : number->integer();
}

}  // namespace keel
