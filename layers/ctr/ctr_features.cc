#include <absl/strings/str_cat.h>
#include <algorithm>
#include <functional>
#include <map>

#include <keel/layers/ctr/ctr_model.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/merging/merging.h>
#include <keel/layers/preprocessing/lookup.h>
#include <keel/layers/reshaping/reshaping.h>

namespace keel {
namespace {

// Returns `name`, with a number appended if it is in `used`.
std::string unused_name(const std::set<std::string>& used, const std::string& name) {
  std::string out = name;
  for (int i = 1; used.contains(out); ++i) out = absl::StrCat(name, "_", i);
  return out;
}

// Layers and HDF5 groups cannot have all names.
std::string possible_layer_name(std::string name) {
  std::ranges::replace(name, '/', '_');
  if (name.find_first_not_of('.') == std::string::npos) std::ranges::replace(name, '.', '_');
  return name;
}

// Returns the categories with at least `min_count` rows in the order of IndexLookupLayer::adapt: by
// descending frequency, then by descending value. Returns the most frequent category if there are
// none.
template <class T>
std::vector<T> frequent_categories(const Tensor& column, int64_t min_count) {
  std::map<T, int64_t> counts;
  for (const T& category : column.data<T>()) ++counts[category];
  std::vector<std::pair<int64_t, T>> sorted;
  for (const auto& [category, count] : counts) sorted.emplace_back(count, category);
  std::ranges::sort(sorted, std::greater<>());
  std::vector<T> out;
  for (const auto& [count, category] : sorted) {
    if (count >= min_count || out.empty()) out.push_back(category);
  }
  return out;
}

// Returns the boundaries of at most `max_buckets` bins with about equal numbers of rows. A value
// with as many rows as a bin gets its own bin, so that a peak (for example at 0) does not use up
// the bins of other values.
std::vector<double> bin_boundaries(const Tensor& column, int64_t max_buckets) {
  std::map<float, int64_t> counts;
  for (float value : column.data<float>()) ++counts[value];
  std::vector<double> out;
  if (std::ssize(counts) <= max_buckets) {
    for (const auto& [value, count] : counts) out.push_back(value);
    if (!out.empty()) out.erase(out.begin());
    return out;
  }
  const auto is_peak = [&](int64_t count) { return count * max_buckets >= column.size(); };
  int64_t rows = column.size();
  int64_t bins = max_buckets;
  for (const auto& [value, count] : counts) {
    if (!is_peak(count)) continue;
    rows -= count;
    --bins;
  }
  bins = std::max<int64_t>(bins, 1);
  int64_t in_bin = 0;
  bool after_peak = false;
  bool first = true;
  for (const auto& [value, count] : counts) {
    const bool peak = is_peak(count);
    const bool full = in_bin > 0 && (in_bin * bins >= rows || after_peak || peak);
    if (full && !first) {
      out.push_back(value);
      in_bin = 0;
    }
    in_bin += count;
    after_peak = peak;
    first = false;
  }
  // Neighboring peaks leave small bins between them; merge the last bins if there are too many.
  while (std::ssize(out) >= max_buckets) out.pop_back();
  return out;
}

}  // namespace

CtrFeatures::CtrFeatures(CtrSchema schema, const Tensors& train_columns, CtrFeaturesOptions options)
    : schema_(std::move(schema)), options_(options) {
  if (options_.min_count < 1 || options_.max_buckets < 2) {
    throw ValueError("CtrFeatures: min_count must be at least 1 and max_buckets at least 2, ",
                     "received ", options_.min_count, " and ", options_.max_buckets);
  }
  for (const std::string& name : options_.dynamic_columns) {
    if (std::ranges::find(schema_.categorical, name) != schema_.categorical.end()) continue;
    throw ValueError("CtrFeatures: dynamic column '", name, "' is not a categorical column");
  }
  name_inputs();
  for (const std::string& name : schema_.categorical) {
    if (is_dynamic(name)) {
      DynamicVocabulary dynamic = *options_.dynamic;
      dynamic.key = schema_.integers.contains(name) ? KeyType::kInt64 : KeyType::kString;
      id_columns_.push_back({.name = name,
                             .vocabulary_size = 0,
                             .dynamic = std::move(dynamic),
                             .table = input_name(name)});
      lookups_.emplace_back();
    } else if (schema_.integers.contains(name)) {
      add_lookup<int64_t>(name, train_columns[name].tensor());
    } else {
      add_lookup<std::string>(name, train_columns[name].tensor());
    }
  }
  std::vector<Tensor> numbers;
  for (const std::string& name : schema_.numeric) {
    const Tensor column = train_columns[name].tensor();
    std::vector<double> boundaries = bin_boundaries(column, options_.max_buckets);
    id_columns_.push_back(
        {.name = name, .vocabulary_size = std::ssize(boundaries) + 1, .table = input_name(name)});
    buckets_.emplace_back(
        DiscretizationOptions{.bin_boundaries = std::move(boundaries),
                              .name = add_layer_name(input_name(name) + "_buckets")});
    reshape_names_.push_back(add_layer_name(input_name(name) + "_column"));
    numbers.push_back(column.reshaped({column.size(), 1}));
  }
  if (numbers.empty()) return;
  concatenate_name_ = add_layer_name("numeric_columns");
  normalization_.emplace_back(
      NormalizationOptions{.name = add_layer_name("numeric_normalization")});
  Tensors::Items items(numbers.begin(), numbers.end());
  normalization_[0]->adapt(layers::Concatenate({})(Tensors::list(std::move(items))).tensor());
}

// Columns keep their names where possible. Other layers get names that no column has.
void CtrFeatures::name_inputs() {
  std::vector<std::string> columns = schema_.categorical;
  columns.insert(columns.end(), schema_.numeric.begin(), schema_.numeric.end());
  for (const std::string& name : columns) {
    if (possible_layer_name(name) == name) input_names_[name] = add_layer_name(name);
  }
  for (const std::string& name : columns) {
    if (!input_names_.contains(name)) {
      input_names_[name] = add_layer_name(possible_layer_name(name));
    }
  }
}

const std::string& CtrFeatures::input_name(const std::string& column) const {
  const auto found = input_names_.find(column);
  if (found == input_names_.end()) {
    throw ValueError("CtrFeatures: '", column, "' is not a column of the features");
  }
  return found->second;
}

std::string CtrFeatures::unused_layer_name(const std::string& name) const {
  return unused_name(layer_names_, name);
}

std::string CtrFeatures::add_layer_name(const std::string& name) {
  return *layer_names_.insert(unused_layer_name(name)).first;
}

template <class T>
void CtrFeatures::add_lookup(const std::string& name, const Tensor& column) {
  LookupOptions<T> options = {.name = add_layer_name(input_name(name) + "_lookup")};
  const std::vector<T> vocabulary = frequent_categories<T>(column, options_.min_count);
  // The default tokens of unknown categories, -1 and "[UNK]", may be categories.
  if constexpr (std::is_same_v<T, int64_t>) options.oov_token = kNoCategory + 1;
  while (std::ranges::find(vocabulary, options.oov_token) != vocabulary.end()) {
    if constexpr (std::is_same_v<T, int64_t>) {
      ++options.oov_token;
    } else {
      options.oov_token += '_';
    }
  }
  options.vocabulary = vocabulary;
  const LayerHandle<IndexLookupLayer<T>> lookup(std::move(options));
  id_columns_.push_back(
      {.name = name, .vocabulary_size = lookup->vocabulary_size(), .table = input_name(name)});
  lookups_.emplace_back(lookup);
}

bool CtrFeatures::is_dynamic(const std::string& name) const {
  const std::vector<std::string>& columns = options_.dynamic_columns;
  return options_.dynamic && (columns.empty() || std::ranges::find(columns, name) != columns.end());
}

Tensors CtrFeatures::operator()(const Tensors& columns) const {
  Tensors::Dict ids;
  for (size_t i = 0; i < lookups_.size(); ++i) {
    const std::string& name = schema_.categorical[i];
    const Tensor column = columns[name].tensor();
    ids.emplace(name, lookups_[i] ? (*lookups_[i])(column) : column);
  }
  Tensors::Items numbers;
  for (size_t i = 0; i < buckets_.size(); ++i) {
    const std::string& name = schema_.numeric[i];
    const Tensor column = columns[name].tensor();
    ids.emplace(name, buckets_[i](column));
    numbers.emplace_back(layers::Reshape({.target_shape = {1}, .name = reshape_names_[i]})(column));
  }
  Tensors out = {{"ids", Tensors(std::move(ids))}};
  if (numbers.empty()) return out;
  const Tensor joined =
      numbers.size() == 1
          ? numbers[0].tensor()
          : layers::Concatenate({.name = concatenate_name_})(Tensors::list(std::move(numbers)))
                .tensor();
  return {{"ids", out["ids"]}, {"numeric", normalization_[0](joined)}};
}

Tensors CtrFeatures::raw_inputs() const {
  Tensors::Dict out;
  for (const std::string& name : schema_.categorical) {
    const bool integer = schema_.integers.contains(name);
    out.emplace(name, layers::input({.dtype = integer ? DType::kInt64 : DType::kString,
                                     .name = input_name(name)}));
  }
  for (const std::string& name : schema_.numeric) {
    out.emplace(name, layers::input({.name = input_name(name)}));
  }
  return Tensors(std::move(out));
}

std::map<std::string, data::FeatureSpec> CtrFeatures::example_features() const {
  std::map<std::string, data::FeatureSpec> out;
  const auto add = [&]<class T>(const std::string& name, T missing) {
    out[name] = data::FixedLenFeature{.dtype = DTypeOf<T>::kValue,
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

}  // namespace keel
