// Reads and writes tensors as columns of CSV files.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <keel/framework/data/dataset.h>
#include <keel/savedmodel/keras/signature.h>
#include <keel/savedmodel/tool/json_tensors.h>

namespace keel::tool {

// How CSV files are quoted; see data::CsvOptions.
struct CsvQuoting {
  bool quoting = true;
  int64_t max_quoted_lines = 100;
};

// Returns batches {input name: tensor} of a file whose header has a column for each of `inputs`.
// Other columns are ignored. A field holds the values of one row, separated by spaces or ';': as
// many as the input's shape has, or any number for a ragged input. In a string input with one value
// per row, the whole field is the value. Integers may be written as "3.0".
//
// Throws NotImplementedError for sparse inputs and inputs of unknown size, ValueError, naming the
// file, row and column, for a field that does not fit, and the errors of csv_dataset().
data::Dataset csv_inputs(const std::string& path, const std::map<std::string, TensorSpec>& inputs,
                         int64_t batch_size, const CsvQuoting& quoting = {});

// Returns batches {"examples": strings} of the rows as serialized tf.Examples. The header must have
// a column for each of `features`. A field holds values as above; an empty field is a missing
// feature. Throws the errors of csv_inputs(), and ValueError for an empty field of a feature that
// is required and has no default value.
data::Dataset csv_examples(const std::string& path, const ExampleFeatures& features,
                           int64_t batch_size, const CsvQuoting& quoting = {});

// Returns a header and one line per row. A dense tensor with one value per row becomes a column
// with its name, and one with n values n columns "name_0", "name_1", ... A ragged tensor becomes a
// column of values separated by spaces. Throws NotImplementedError for sparse tensors and
// ValueError for scalars.
std::string csv_tensors(const std::vector<NamedTensor>& tensors);

}  // namespace keel::tool
