// Reads the values of inputs from JSON, in the row and column formats of TensorFlow Serving.
#pragma once

#include <cstdint>

#include <keel/savedmodel/serving/base/json_reader.h>
#include <keel/savedmodel/serving/models/input_values.h>

namespace keel::serving {

// Reads one element of an input: a number, boolean, string or, if `allows_base64`, {"b64": "..."}.
// Throws ValueFault.
void read_element(JsonReader& json, InputValues& to, bool allows_base64);

// Reads the value of row `row` of an input. All rows of a dense input must have the same shape.
// Throws ValueFault that does not name the input.
void read_row(JsonReader& json, InputValues& to, int64_t row);
// Completes an input after its last row.
void finish_rows(InputValues& to, int64_t rows);

// Reads all rows of an input and completes it. Throws ValueFault that does not name the input.
void read_column(JsonReader& json, InputValues& to);

// Reads numbers in lists that are nested in any way, for KServe v2.
void read_flat(JsonReader& json, InputValues& to);
// Reads a flat list of integers, or nested in any way if `nested`. Appends to `to`.
void read_integers(JsonReader& json, IntegerList& to, bool nested = false);

}  // namespace keel::serving
