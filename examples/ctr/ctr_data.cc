#include "examples/ctr/ctr_data.h"

#include <charconv>
#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>

#include "framework/config.h"
#include "framework/data/csv.h"
#include "layers/input_layer.h"
#include "layers/merging/concatenate.h"
#include "layers/preprocessing/integer_lookup.h"
#include "layers/preprocessing/string_lookup.h"
#include "layers/reshaping/reshape.h"

namespace keel::examples {
namespace {

// Quantiles that the numbers of a column are cut into.
constexpr int64_t kBuckets = 20;

std::vector<std::string> strings_of(const Config& list) {
  std::vector<std::string> out;
  for (const Config& item : list.items()) out.push_back(item.string());
  return out;
}

// "007" and "+7" are not: two texts would be one category.
bool is_integer_category(const std::string& field) {
  int64_t value = 0;
  std::from_chars(field.data(), field.data() + field.size(), value);
  return std::to_string(value) == field;
}

// "7.0" is: tables write it where other rows have no number.
bool is_whole_number(const std::string& field) {
  constexpr double kMost = 1LL << 53;
  double value = 0;
  const char* const end = field.data() + field.size();
  return std::from_chars(field.data(), end, value).ptr == end && std::abs(value) <= kMost &&
         value == std::trunc(value);
}

std::set<std::string> integer_columns(const std::vector<std::filesystem::path>& files,
                                      const CtrSchema& schema) {
  constexpr int64_t kRowsAtOnce = 4096;
  using Test = bool (*)(const std::string&);
  std::map<std::string, Test> left;
  for (const std::string& name : schema.numeric) left[name] = is_whole_number;
  for (const std::string& name : schema.categorical) left[name] = is_integer_category;
  std::set<std::string> with_values;
  std::vector<data::CsvColumn> columns;
  for (const auto& column : left)
    columns.push_back({.name = column.first, .dtype = DType::kString});
  for (const std::filesystem::path& file : files) {
    for (const Tensors& batch :
         data::csv_dataset(file, {.columns = columns, .batch_size = kRowsAtOnce})) {
      std::erase_if(left, [&](const auto& column) {
        const Tensor fields = batch[column.first].tensor();
        return !std::ranges::all_of(fields.data<std::string>(), [&](const std::string& field) {
          if (!field.empty()) with_values.insert(column.first);
          return field.empty() || column.second(field);
        });
      });
    }
  }
  std::set<std::string> out;
  for (const auto& column : left) {
    if (with_values.contains(column.first)) out.insert(column.first);
  }
  return out;
}

}  // namespace

CtrSchema read_schema(const std::filesystem::path& folder) {
  if (!std::filesystem::is_directory(folder)) {
    throw IoError(folder.string(), ": no such folder");
  }
  const std::filesystem::path file = folder / "schema.json";
  std::ifstream in(file);
  std::stringstream text;
  if (!(text << in.rdbuf())) throw IoError(file.string(), ": cannot be read");
  CtrSchema out;
  try {
    const Config config = parse_json(text.str());
    out = {.label = config["label"].string(),
           .numeric = strings_of(config["numeric"]),
           .categorical = strings_of(config["categorical"])};
  } catch (const Error& error) {
    throw ValueError(file.string(), ": ", error.what());
  }
  out.integers = integer_columns({folder / "train.csv", folder / "test.csv"}, out);
  return out;
}

CtrRows read_ctr_csv(const std::filesystem::path& file, const CtrSchema& schema) {
  std::vector<data::CsvColumn> columns = {{.name = schema.label}};
  for (const std::string& name : schema.numeric) {
    columns.push_back({.name = name, .default_value = 0});
  }
  for (const std::string& name : schema.categorical) {
    if (schema.integers.contains(name)) {
      columns.push_back({.name = name, .dtype = DType::kInt64, .default_value = kNoCategory});
    } else {
      columns.push_back({.name = name, .dtype = DType::kString});
    }
  }
  const Tensors all = data::read_csv(file, std::move(columns));
  const Tensor labels = all[schema.label].tensor();
  for (int64_t row = 0; row < labels.size(); ++row) {
    const float label = labels.data<float>()[row];
    if (label != 0 && label != 1) {
      throw ValueError(file.string(), ": row ", row + 1, ": column '", schema.label,
                       "' must be 0 or 1, received ", label);
    }
  }
  Tensors::Dict features = all.entries();
  features.erase(schema.label);
  return {.columns = Tensors(std::move(features)), .labels = labels.reshaped({labels.size(), 1})};
}

CtrPreprocessing::CtrPreprocessing(const CtrSchema& schema, const Tensors& train_columns)
    : schema_(schema) {
  for (const std::string& name : schema_.categorical) {
    const Tensor column = train_columns[name].tensor();
    if (schema_.integers.contains(name)) {
      // The default word for unknown ones, -1, would take kNoCategory from the vocabulary.
      add_lookup(layers::IntegerLookup(
                     {.oov_token = std::numeric_limits<int64_t>::min(), .name = name + "_lookup"}),
                 name, column);
    } else {
      add_lookup(layers::StringLookup({.name = name + "_lookup"}), name, column);
    }
  }
  std::vector<Tensor> numbers;
  for (const std::string& name : schema_.numeric) {
    layers::Discretization buckets({.num_bins = kBuckets, .name = name + "_buckets"});
    buckets->adapt(train_columns[name].tensor());
    id_columns_.push_back({.name = name, .vocabulary_size = kBuckets});
    buckets_.push_back(std::move(buckets));
    const Tensor column = train_columns[name].tensor();
    numbers.push_back(column.reshaped({column.size(), 1}));
  }
  if (numbers.empty()) return;
  normalization_.emplace_back(NormalizationOptions{.name = "numeric_normalization"});
  Tensors::Items items(numbers.begin(), numbers.end());
  normalization_[0]->adapt(layers::Concatenate({})(Tensors::list(std::move(items))).tensor());
}

template <class Lookup>
void CtrPreprocessing::add_lookup(const Lookup& lookup, const std::string& name,
                                  const Tensor& column) {
  lookup->adapt(column);
  id_columns_.push_back({.name = name, .vocabulary_size = lookup->vocabulary_size()});
  lookups_.push_back(lookup);
}

Tensors CtrPreprocessing::operator()(const Tensors& columns) const {
  Tensors::Dict ids;
  for (size_t i = 0; i < lookups_.size(); ++i) {
    const std::string& name = schema_.categorical[i];
    ids.emplace(name, lookups_[i](columns[name].tensor()));
  }
  Tensors::Items numbers;
  for (size_t i = 0; i < buckets_.size(); ++i) {
    const std::string& name = schema_.numeric[i];
    const Tensor column = columns[name].tensor();
    ids.emplace(name, buckets_[i](column));
    numbers.emplace_back(layers::Reshape({.target_shape = {1}})(column));
  }
  Tensors out = {{"ids", Tensors(std::move(ids))}};
  if (numbers.empty()) return out;
  const Tensor joined = numbers.size() == 1
                            ? numbers[0].tensor()
                            : layers::Concatenate({})(Tensors::list(std::move(numbers))).tensor();
  return {{"ids", out["ids"]}, {"numeric", normalization_[0](joined)}};
}

Tensors CtrPreprocessing::raw_inputs() const {
  Tensors::Dict out;
  for (const std::string& name : schema_.categorical) {
    const bool integer = schema_.integers.contains(name);
    out.emplace(name,
                layers::input({.dtype = integer ? DType::kInt64 : DType::kString, .name = name}));
  }
  for (const std::string& name : schema_.numeric) out.emplace(name, layers::input({.name = name}));
  return Tensors(std::move(out));
}

ExampleFeatures CtrPreprocessing::example_features() const {
  ExampleFeatures out;
  const auto add = [&]<class T>(const std::string& name, T missing) {
    out[name].feature = data::FixedLenFeature{.dtype = DTypeOf<T>::kValue,
                                              .default_value = Tensor::scalar<T>(missing)};
  };
  for (const std::string& name : schema_.categorical) {
    if (schema_.integers.contains(name)) {
      add(name, kNoCategory);
    } else {
      add(name, std::string());
    }
  }
  for (const std::string& name : schema_.numeric) {
    if (schema_.integers.contains(name)) {
      add(name, int64_t{0});
    } else {
      add(name, 0.0F);
    }
  }
  return out;
}

}  // namespace keel::examples
