#include "examples/ctr/ctr_data.h"

#include <fstream>
#include <sstream>

#include "framework/config.h"
#include "framework/data/csv.h"
#include "layers/input_layer.h"
#include "layers/merging/concatenate.h"
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

}  // namespace

CtrSchema read_schema(const std::filesystem::path& folder) {
  if (!std::filesystem::is_directory(folder)) {
    throw IoError(folder.string(), ": no such folder");
  }
  const std::filesystem::path file = folder / "schema.json";
  std::ifstream in(file);
  std::stringstream text;
  if (!(text << in.rdbuf())) throw IoError(file.string(), ": cannot be read");
  try {
    const Config config = parse_json(text.str());
    return {.label = config["label"].string(),
            .numeric = strings_of(config["numeric"]),
            .categorical = strings_of(config["categorical"])};
  } catch (const Error& error) {
    throw ValueError(file.string(), ": ", error.what());
  }
}

CtrRows read_ctr_csv(const std::filesystem::path& file, const CtrSchema& schema) {
  std::vector<data::CsvColumn> columns = {{.name = schema.label}};
  for (const std::string& name : schema.numeric) {
    columns.push_back({.name = name, .default_value = 0});
  }
  for (const std::string& name : schema.categorical) {
    columns.push_back({.name = name, .dtype = DType::kString});
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
    layers::StringLookup lookup({.name = name + "_lookup"});
    lookup->adapt(train_columns[name].tensor());
    id_columns_.push_back({.name = name, .vocabulary_size = lookup->vocabulary_size()});
    lookups_.push_back(std::move(lookup));
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
    out.emplace(name, layers::input({.dtype = DType::kString, .name = name}));
  }
  for (const std::string& name : schema_.numeric) out.emplace(name, layers::input({.name = name}));
  return Tensors(std::move(out));
}

}  // namespace keel::examples
