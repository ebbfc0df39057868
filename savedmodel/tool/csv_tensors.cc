#include <keel/savedmodel/tool/csv_tensors.h>

#include <absl/strings/str_cat.h>
#include <algorithm>
#include <cmath>

#include <keel/framework/base/internal/text.h>
#include <keel/framework/data/csv/csv.h>
#include <keel/framework/data/tfrecord.h>

namespace keel::tool {
namespace {

// The context of errors.
struct Column {
  std::string path;
  std::string name;
  int64_t first_row = 1;

  template <class... Args>
  [[noreturn]] void fail(int64_t row, const Args&... what) const {
    throw ValueError(path, ", row ", first_row + row, ", column '", name, "': ", what...);
  }
};

std::vector<std::string_view> words_of(std::string_view field) {
  std::vector<std::string_view> out;
  while (true) {
    const size_t begin = field.find_first_not_of(" ;\t");
    if (begin == std::string_view::npos) return out;
    field.remove_prefix(begin);
    const size_t end = std::min(field.find_first_of(" ;\t"), field.size());
    out.push_back(field.substr(0, end));
    field.remove_prefix(end);
  }
}

// Parses a number. Programs write integers as "3.0" if values of their column are missing.
template <class T>
std::optional<T> whole_number(std::string_view word) {
  const auto value = parse_number<T>(word);
  if (value) return value;
  constexpr double kMost =
      std::min<double>(static_cast<double>(std::numeric_limits<T>::max()), int64_t{1} << 53);
  const auto real = parse_number<double>(word);
  if (!real || std::abs(*real) > kMost || *real != std::trunc(*real)) return {};
  return static_cast<T>(*real);
}

template <class T>
std::optional<T> number(std::string_view word) {
  if constexpr (std::is_integral_v<T>) return whole_number<T>(word);
  return parse_number<T>(word);
}

template <class T>
T value_of(const Column& column, int64_t row, std::string_view word) {
  if constexpr (std::is_same_v<T, std::string>) {
    return std::string(word);
  } else if constexpr (std::is_same_v<T, bool>) {
    if (word == "true" || word == "1") return true;
    if (word == "false" || word == "0") return false;
    column.fail(row, "must be true, false, 1 or 0, received '", word, "'");
  } else {
    const auto value = number<T>(word);
    if (!value) column.fail(row, "must be ", DTypeOf<T>::kValue, ", received '", word, "'");
    return *value;
  }
}

// Appends the values of a field: `width` values, or any number if `width` is unknown.
template <class T>
void append_values(const Column& column, int64_t row, const std::string& field, int64_t width,
                   std::vector<T>& out) {
  const bool whole = std::is_same_v<T, std::string> && width == 1;
  const auto words = whole ? std::vector<std::string_view>{field} : words_of(field);
  const auto count = static_cast<int64_t>(words.size());
  if (width != kUnknown && count != width) {
    column.fail(row, "requires ", width, width == 1 ? " value" : " values", ", received ", count,
                count == 0 ? "; a signature for tf.Example may have a default value" : "");
  }
  for (const std::string_view word : words) out.push_back(value_of<T>(column, row, word));
}

// Returns the values of all rows: `width` values per row, or any number if `width` is unknown.
template <class T>
TensorLike parsed_as(const Column& column, std::span<const std::string> fields, int64_t width,
                     const Shape& shape) {
  std::vector<T> values;
  std::vector<int64_t> splits = {0};
  for (size_t i = 0; i < fields.size(); ++i) {
    append_values(column, static_cast<int64_t>(i), fields[i], width, values);
    splits.push_back(static_cast<int64_t>(values.size()));
  }
  const auto rows = static_cast<int64_t>(fields.size());
  if (width != kUnknown) return Tensor::from(values, shape.with(0, rows));
  const auto count = static_cast<int64_t>(values.size());
  return RaggedTensor{Tensor::from(values, {count}), Tensor::from(splits, {rows + 1})};
}

TensorLike parsed(const Column& column, std::span<const std::string> fields, int64_t width,
                  const TensorSpec& spec) {
  return visit_any(spec.dtype,
                   [&]<class T>(T) { return parsed_as<T>(column, fields, width, spec.shape); });
}

// Returns a feature of one example. An empty field gives a feature without values.
Tensor feature_of(const Column& column, int64_t row, const std::string& field,
                  const data::FeatureSpec& spec) {
  const auto* const fixed = std::get_if<data::FixedLenFeature>(&spec);
  if (field.empty()) {
    if (fixed == nullptr || fixed->default_value) return {};
    column.fail(row, "is empty, but the feature has no default value");
  }
  return visit_any(data::dtype_of(spec), [&]<class T>(T) {
    std::vector<T> values;
    append_values(column, row, field, fixed != nullptr ? fixed->shape.size() : kUnknown, values);
    return Tensor::from(values, {static_cast<int64_t>(values.size())});
  });
}

int64_t width_of(const std::string& path, const std::string& name, const TensorSpec& spec) {
  if (spec.layout == Layout::kRagged && spec.shape.rank() == 2) return kUnknown;
  const bool has_rows = spec.layout == Layout::kDense && spec.shape.rank() > 0;
  if (has_rows && spec.shape.without(0).fully_defined()) return spec.shape.without(0).size();
  throw NotImplementedError(path, ": a CSV file cannot hold input '", name, "' of shape ",
                            spec.shape, "; use a JSON file");
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? "\"\"" : std::string(1, c);
  return out + "\"";
}

std::string element_text(const Tensor& tensor, int64_t i) {
  return visit_any(tensor.dtype(), [&]<class T>(T) -> std::string {
    T value = tensor.data<T>()[i];
    if constexpr (std::is_same_v<T, std::string>) {
      return value;
    } else if constexpr (std::is_same_v<T, bool>) {
      return value ? "1" : "0";
    } else {
      return number_text(value);
    }
  });
}

struct OutputColumn {
  std::string title;
  std::function<std::string(int64_t row)> text;
};

void add_columns(const NamedTensor& named, std::vector<OutputColumn>& out) {
  if (named.value.layout() == Layout::kSparse) {
    throw NotImplementedError("a CSV file cannot hold sparse output '", named.name,
                              "'; use a JSON file");
  }
  const Tensor values = named.value.values();
  if (named.value.layout() == Layout::kRagged) {
    const Tensor splits = named.value.ragged().row_splits;
    const int64_t width = values.shape().without(0).size();
    out.push_back({named.name, [values, splits, width](int64_t row) {
                     std::string text;
                     const auto s = splits.data<int64_t>();
                     for (int64_t i = s[row] * width; i < s[row + 1] * width; ++i) {
                       text += (text.empty() ? "" : " ") + element_text(values, i);
                     }
                     return text;
                   }});
    return;
  }
  if (values.rank() == 0) throw ValueError("output '", named.name, "' is a scalar and has no rows");
  const int64_t width = values.shape().without(0).size();
  for (int64_t k = 0; k < width; ++k) {
    out.push_back(
        {width == 1 ? named.name : absl::StrCat(named.name, "_", k),
         [values, width, k](int64_t row) { return element_text(values, row * width + k); }});
  }
}

}  // namespace

data::Dataset csv_inputs(const std::string& path, const std::map<std::string, TensorSpec>& inputs,
                         int64_t batch_size, const CsvQuoting& quoting) {
  std::vector<data::CsvColumn> columns;
  std::map<std::string, int64_t> widths;
  for (const auto& [name, spec] : inputs) {
    columns.push_back({.name = name, .dtype = DType::kString});
    widths[name] = width_of(path, name, spec);
  }
  // map() is called for the elements in order, once for each.
  const auto row = std::make_shared<int64_t>(1);
  return data::csv_dataset(path, {.columns = columns,
                                  .batch_size = batch_size,
                                  .quoting = quoting.quoting,
                                  .max_quoted_lines = quoting.max_quoted_lines})
      .map([path, inputs, widths, row](const Tensors& batch) {
        Tensors::Dict out;
        int64_t rows = 0;
        for (const auto& [name, spec] : inputs) {
          const Tensor fields = batch[name].tensor();
          rows = fields.size();
          const Column column = {.path = path, .name = name, .first_row = *row};
          out.emplace(name, parsed(column, fields.data<std::string>(), widths.at(name), spec));
        }
        *row += rows;
        return Tensors(std::move(out));
      });
}

data::Dataset csv_examples(const std::string& path, const ExampleFeatures& features,
                           int64_t batch_size, const CsvQuoting& quoting) {
  std::vector<data::CsvColumn> columns;
  for (const auto& feature : features) {
    columns.push_back({.name = feature.first, .dtype = DType::kString});
  }
  const auto first_row = std::make_shared<int64_t>(1);
  return data::csv_dataset(path, {.columns = columns,
                                  .batch_size = batch_size,
                                  .quoting = quoting.quoting,
                                  .max_quoted_lines = quoting.max_quoted_lines})
      .map([path, features, first_row](const Tensors& batch) {
        const int64_t rows = row_count(batch);
        std::vector<std::map<std::string, Tensor>> examples(static_cast<size_t>(rows));
        for (const auto& [name, feature] : features) {
          const Tensor fields = batch[name].tensor();
          const Column column = {.path = path, .name = name, .first_row = *first_row};
          for (int64_t i = 0; i < rows; ++i) {
            examples[i].emplace(
                name, feature_of(column, i, fields.data<std::string>()[i], feature.feature));
          }
        }
        *first_row += rows;
        std::vector<std::string> serialized;
        for (const auto& example : examples) {
          serialized.push_back(data::serialize_example(example));
        }
        return Tensors::dict({{"examples", Tensor::from(serialized, {rows})}});
      });
}

std::string csv_tensors(const std::vector<NamedTensor>& tensors) {
  std::vector<OutputColumn> columns;
  Tensors::Dict all;
  for (const NamedTensor& tensor : tensors) {
    add_columns(tensor, columns);
    all.emplace(tensor.name, tensor.value);
  }
  const int64_t rows = row_count(all);
  std::string out;
  for (size_t k = 0; k < columns.size(); ++k)
    out += (k == 0 ? "" : ",") + csv_field(columns[k].title);
  out += '\n';
  for (int64_t row = 0; row < rows; ++row) {
    for (size_t k = 0; k < columns.size(); ++k) {
      out += (k == 0 ? "" : ",") + csv_field(columns[k].text(row));
    }
    out += '\n';
  }
  return out;
}

}  // namespace keel::tool
