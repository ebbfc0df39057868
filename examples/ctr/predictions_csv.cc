#include "examples/ctr/predictions_csv.h"

#include <array>
#include <charconv>
#include <ostream>
#include <sstream>

#include <keel/framework/base/internal/atomic_file.h>

namespace keel::examples {

void write_predictions(std::ostream& out, const Tensor& predictions) {
  out << "prediction\n";
  std::array<char, 32> text;
  for (float value : predictions.data<float>()) {
    const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value);
    out.write(text.data(), end - text.data()) << '\n';
  }
}

void write_predictions(const std::filesystem::path& file, const Tensor& predictions) {
  std::ostringstream out;
  write_predictions(out, predictions);
  write_text_file(file.string(), out.str());
}

}  // namespace keel::examples
