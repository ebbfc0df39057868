// Writes predictions to a CSV file so that equal files mean equal bits.
#pragma once

#include <filesystem>
#include <iosfwd>

#include <keel/framework/tensor.h>

namespace keel::examples {

// Writes a line "prediction" and then one number per row: the shortest text that reads back as the
// same float32.
void write_predictions(std::ostream& out, const Tensor& predictions);
void write_predictions(const std::filesystem::path& file, const Tensor& predictions);  // IoError

}  // namespace keel::examples
