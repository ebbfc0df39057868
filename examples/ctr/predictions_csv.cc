#include "examples/ctr/predictions_csv.h"

#include <array>
#include <charconv>
#include <fstream>
#include <ostream>

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
  std::ofstream out(file);
  write_predictions(out, predictions);
  if (!out.flush()) throw IoError(file.string(), ": cannot be written");
}

}  // namespace keel::examples
