#include <keel/layers/training/internal/number_text.h>

#include <array>
#include <charconv>

namespace keel {

std::string shortest_text(double value) {
  std::array<char, 32> buffer{};
  const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return {buffer.data(), result.ptr};
}

}  // namespace keel
