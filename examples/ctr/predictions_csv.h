// Predictions as a CSV file, written so that equal files are equal bits.
#pragma once

#include <filesystem>
#include <iosfwd>

#include <keel/framework/tensor.h>

namespace keel::examples {

// A line "prediction", then one number for each row: the shortest text that reads back as the
// same float32.
void write_predictions(std::ostream& out, const Tensor& predictions);
void write_predictions(const std::filesystem::path& file, const Tensor& predictions);  // IoError

}  // namespace keel::examples
