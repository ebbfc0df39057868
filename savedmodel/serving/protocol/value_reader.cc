#include <keel/savedmodel/serving/protocol/value_reader.h>

#include <algorithm>
#include <concepts>

#include <keel/savedmodel/serving/base/base64.h>

namespace keel::serving {
namespace {

void read_base64_object(JsonReader& json, std::string& to) {
  std::string key, text;
  json.enter_object();
  bool found = false;
  while (json.next_key(key)) {
    if (key != "b64" || found) {
      throw ValueFault("must be a string or {\"b64\": ...}, received an object with the key '", key,
                       "'");
    }
    json.read_string(text);
    found = true;
  }
  if (!found) throw ValueFault("must be a string or {\"b64\": ...}, received an empty object");
  if (!decode_base64(text, to)) throw ValueFault("b64 is not base64");
}

// Reads one element of type T. Booleans are stored as bool, which has one byte.
template <class T>
void read_one(JsonReader& json, InputValues& to, bool allows_base64) {
  if constexpr (std::same_as<T, std::string>) {
    if (allows_base64 && json.kind() == JsonKind::kObject) {
      read_base64_object(json, to.add_string());
    } else {
      json.read_string(to.add_string());
    }
  } else if constexpr (std::same_as<T, bool>) {
    to.numbers.push(json.read_bool());
  } else if constexpr (std::floating_point<T>) {
    to.numbers.push(json.read_float<T>());
  } else {
    to.numbers.push(json.read_integer<T>());
  }
}

// Calls fn with a value of the C++ type of the dtype.
template <class Fn>
void for_type(DType dtype, Fn&& fn) {
  switch (dtype) {
    case DType::kFloat32:
      return fn(float{});
    case DType::kFloat64:
      return fn(double{});
    case DType::kInt32:
      return fn(int32_t{});
    case DType::kInt64:
      return fn(int64_t{});
    case DType::kBool:
      return fn(bool{});
    case DType::kUint8:
      return fn(uint8_t{});
    case DType::kInt8:
      return fn(int8_t{});
    case DType::kString:
      return fn(std::string());
  }
}

[[noreturn]] void fail_rectangle() {
  throw ValueFault("is not rectangular, or its rows have different shapes");
}

// Reads nested lists whose outermost dimension is number `level` of to.dims.
template <class T>
void read_nested(JsonReader& json, InputValues& to, int level) {
  if (json.kind() != JsonKind::kArray) {
    if (to.nesting < 0) to.nesting = level;
    if (to.nesting != level) fail_rectangle();
    return read_one<T>(json, to, true);
  }
  if (to.nesting >= 0 && level >= to.nesting) fail_rectangle();
  const auto at = static_cast<size_t>(level);
  if (to.dims.size() <= at) to.dims.resize(at + 1, -1);
  json.enter_array();
  int64_t count = 0;
  while (json.next_element()) {
    ++count;
    if (to.nesting == level + 1) {
      if (json.kind() == JsonKind::kArray) fail_rectangle();
      read_one<T>(json, to, true);
    } else {
      read_nested<T>(json, to, level + 1);
    }
  }
  if (count == 0 && to.nesting < 0) to.nesting = level + 1;
  if (count == 0 && to.nesting != level + 1) fail_rectangle();
  if (to.dims[at] < 0) to.dims[at] = count;
  if (to.dims[at] != count) fail_rectangle();
}

void read_dense(JsonReader& json, InputValues& to, int level) {
  for_type(to.dtype(), [&]<class T>(const T&) { read_nested<T>(json, to, level); });
  to.dims.resize(static_cast<size_t>(to.nesting), -1);
}

// Reads one list of values of a ragged row or of a sparse tensor; returns how many it has.
int64_t read_list(JsonReader& json, InputValues& to) {
  json.enter_array();
  int64_t count = 0;
  while (json.next_element()) {
    if (to.info().spec.layout == Layout::kRagged && to.info().spec.shape.rank() > 2) {
      read_dense(json, to, 1);
    } else {
      if (json.kind() == JsonKind::kArray)
        throw ValueFault("must be a list of values, not of lists");
      read_element(json, to, true);
    }
    ++count;
  }
  return count;
}

void read_ragged_row(JsonReader& json, InputValues& to) {
  if (to.splits.empty()) to.splits.push_back(0);
  to.splits.push_back(to.splits.back() + read_list(json, to));
}

// Sets dims[0] of ragged values, whose other dimensions were found while reading.
void finish_ragged_rows(InputValues& to) {
  const auto rank = static_cast<size_t>(to.info().spec.shape.rank()) - 1;
  if (to.dims.empty()) {
    to.dims.push_back(-1);
    for (size_t axis = 1; axis < rank; ++axis) {
      const int64_t dim = to.info().spec.shape.dims()[axis + 1];
      to.dims.push_back(dim == kUnknown ? 0 : dim);
    }
  }
  to.dims[0] = to.splits.back();
}

[[noreturn]] void fail_keys(const char* keys, const std::string& key) {
  throw ValueFault("must be an object with exactly the keys ", keys, "; the key '", key,
                   "' is unknown or stands twice");
}

// Reads the places of one value or of all values of a row, each of `width` numbers.
void read_places(JsonReader& json, int64_t row, int width, IntegerList& to) {
  json.enter_array();
  while (json.next_element()) {
    to.push_back(row);
    const size_t before = to.size();
    if (width == 1) {
      to.push_back(json.read_integer<int64_t>());
    } else {
      read_integers(json, to);
    }
    if (to.size() - before != static_cast<size_t>(width)) {
      throw ValueFault("each index must have ", width, " numbers");
    }
  }
}

void read_sparse_row(JsonReader& json, InputValues& to, int64_t row) {
  const int rank = to.info().spec.shape.rank();
  if (json.kind() != JsonKind::kObject) {
    if (rank != 2) throw ValueFault("must be an object of indices and values");
    const int64_t count = read_list(json, to);
    for (int64_t place = 0; place < count; ++place) {
      to.indices.push_back(row);
      to.indices.push_back(place);
    }
    return;
  }
  constexpr const char* kKeys = "indices and values";
  std::string key;
  bool has_indices = false, has_values = false;
  const size_t before = to.indices.size();
  int64_t count = 0;
  json.enter_object();
  while (json.next_key(key)) {
    if (key == "indices" && !has_indices) {
      has_indices = true;
      read_places(json, row, rank - 1, to.indices);
    } else if (key == "values" && !has_values) {
      has_values = true;
      count = read_list(json, to);
    } else {
      fail_keys(kKeys, key);
    }
  }
  if (!has_indices || !has_values) throw ValueFault("needs the keys ", kKeys);
  const auto places =
      static_cast<int64_t>((to.indices.size() - before) / static_cast<size_t>(rank));
  if (places != count) throw ValueFault("has ", count, " values and ", places, " indices");
}

// The dense shape of rows: the spec's, and what the indices need where that is unknown.
void finish_sparse_rows(InputValues& to, int64_t rows) {
  const Shape& shape = to.info().spec.shape;
  const auto rank = static_cast<size_t>(shape.rank());
  to.sparse_shape.assign(rank, 0);
  to.sparse_shape[0] = rows;
  for (size_t axis = 1; axis < rank; ++axis) {
    const int64_t dim = shape.dims()[axis];
    to.sparse_shape[axis] = std::max<int64_t>(dim, 0);
    if (dim != kUnknown) continue;
    for (size_t i = axis; i < to.indices.size(); i += rank) {
      if (to.indices[i] == INT64_MAX) throw ValueFault("index ", INT64_MAX, " is too large");
      to.sparse_shape[axis] = std::max(to.sparse_shape[axis], to.indices[i] + 1);
    }
  }
}

void read_ragged_column(JsonReader& json, InputValues& to) {
  if (json.kind() == JsonKind::kArray) {
    to.splits.push_back(0);
    json.enter_array();
    while (json.next_element()) read_ragged_row(json, to);
    return finish_ragged_rows(to);
  }
  constexpr const char* kKeys = "values and row_splits";
  std::string key;
  bool has_values = false, has_splits = false;
  json.enter_object();
  while (json.next_key(key)) {
    if (key == "values" && !has_values) {
      has_values = true;
      read_dense(json, to, 0);
    } else if (key == "row_splits" && !has_splits) {
      has_splits = true;
      read_integers(json, to.splits);
    } else {
      fail_keys(kKeys, key);
    }
  }
  if (!has_values || !has_splits) throw ValueFault("needs the keys ", kKeys);
}

void read_sparse_column(JsonReader& json, InputValues& to) {
  if (json.kind() == JsonKind::kArray) {
    int64_t rows = 0;
    json.enter_array();
    while (json.next_element()) read_sparse_row(json, to, rows++);
    return finish_sparse_rows(to, rows);
  }
  constexpr const char* kKeys = "indices, values and dense_shape";
  const auto rank = static_cast<size_t>(to.info().spec.shape.rank());
  std::string key;
  bool has_indices = false, has_values = false, has_shape = false;
  json.enter_object();
  while (json.next_key(key)) {
    if (key == "indices" && !has_indices) {
      has_indices = true;
      json.enter_array();
      while (json.next_element()) {
        const size_t before = to.indices.size();
        read_integers(json, to.indices);
        if (to.indices.size() - before != rank) {
          throw ValueFault("each index must have ", rank, " numbers");
        }
      }
    } else if (key == "values" && !has_values) {
      has_values = true;
      read_list(json, to);
    } else if (key == "dense_shape" && !has_shape) {
      has_shape = true;
      read_integers(json, to.sparse_shape);
    } else {
      fail_keys(kKeys, key);
    }
  }
  if (!has_indices || !has_values || !has_shape) throw ValueFault("needs the keys ", kKeys);
}

template <class T>
void read_flat_of(JsonReader& json, InputValues& to) {
  json.enter_array();
  while (json.next_element()) {
    if (json.kind() == JsonKind::kArray) {
      read_flat_of<T>(json, to);
    } else {
      read_one<T>(json, to, false);
    }
  }
}

}  // namespace

void read_element(JsonReader& json, InputValues& to, bool allows_base64) {
  for_type(to.dtype(), [&]<class T>(const T&) { read_one<T>(json, to, allows_base64); });
}

void read_integers(JsonReader& json, IntegerList& to, bool nested) {
  json.enter_array();
  while (json.next_element()) {
    if (nested && json.kind() == JsonKind::kArray) {
      read_integers(json, to, true);
    } else {
      to.push_back(json.read_integer<int64_t>());
    }
  }
}

void read_row(JsonReader& json, InputValues& to, int64_t row) {
  switch (to.info().spec.layout) {
    case Layout::kDense:
      return read_dense(json, to, 1);
    case Layout::kRagged:
      return read_ragged_row(json, to);
    case Layout::kSparse:
      return read_sparse_row(json, to, row);
  }
}

void finish_rows(InputValues& to, int64_t rows) {
  switch (to.info().spec.layout) {
    case Layout::kDense:
      to.dims.resize(std::max<size_t>(to.dims.size(), 1));
      to.dims[0] = rows;
      break;
    case Layout::kRagged:
      finish_ragged_rows(to);
      break;
    case Layout::kSparse:
      finish_sparse_rows(to, rows);
      break;
  }
  to.finish();
}

void read_column(JsonReader& json, InputValues& to) {
  switch (to.info().spec.layout) {
    case Layout::kDense:
      read_dense(json, to, 0);
      break;
    case Layout::kRagged:
      read_ragged_column(json, to);
      break;
    case Layout::kSparse:
      read_sparse_column(json, to);
      break;
  }
  to.finish();
}

void read_flat(JsonReader& json, InputValues& to) {
  for_type(to.dtype(), [&]<class T>(const T&) { read_flat_of<T>(json, to); });
}

}  // namespace keel::serving
