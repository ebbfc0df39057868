// Tensors in the columns of CSV files.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <keel/framework/data/dataset.h>
#include <keel/savedmodel/keras/signature.h>
#include <keel/savedmodel/tool/json_tensors.h>

namespace keel::tool {

// Batches {input name: tensor} of a file whose header has a column for each of `inputs`; other
// columns are left out. A field holds the values of one row, separated by spaces or ';': as many as
// the input's shape has, any number of a ragged one; a string is one value, whatever is in it, for
// an input of one value a row. Whole numbers may be written as "3.0".
// NotImplementedError for sparse inputs and those of unknown size; ValueError, naming the file, row
// and column, for a field that does not fit; and what csv_dataset throws.
data::Dataset csv_inputs(const std::string& path, const std::map<std::string, TensorSpec>& inputs,
                         int64_t batch_size);

// Batches {"examples": strings} of the rows as serialized tf.Example, whose header has a column for
// each of `features`. A field holds values as above; an empty one is a feature without values.
// ValueError as above, and for an empty field of a feature that needs values and has no default.
data::Dataset csv_examples(const std::string& path, const ExampleFeatures& features,
                           int64_t batch_size);

// A header and a line for each row. A dense tensor of one value a row is a column of its name, of n
// values n columns "name_0", "name_1", ...; a ragged one is a column of values separated by spaces.
// NotImplementedError for sparse ones, ValueError for scalars.
std::string csv_tensors(const std::vector<NamedTensor>& tensors);

}  // namespace keel::tool
