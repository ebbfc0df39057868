#include <absl/strings/str_join.h>
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fstream>
#include <map>
#include <sstream>

#include <keel/framework/base/file_path_internal.h>
#include <keel/framework/config/config.h>
#include <keel/framework/random.h>
#include <keel/layers/ctr/ctr_model.h>

namespace keel {
namespace {

// Random stream of splits, separate from the streams of weights and shuffling.
constexpr uint64_t kSplitPurpose = 0x5B117;

std::vector<std::string> strings_of(const Config& list) {
  std::vector<std::string> out;
  for (const Config& item : list.items()) out.push_back(item.string());
  return out;
}

// Rejects "007" and "+7", because two texts would become one category, and kNoCategory.
bool is_integer_category(const std::string& field) {
  int64_t value = 0;
  std::from_chars(field.data(), field.data() + field.size(), value);
  return value != kNoCategory && std::to_string(value) == field;
}

// Accepts "7.0" as well, which some tools write for integers in columns with missing values.
bool is_whole_number(const std::string& field) {
  constexpr double kMost = 1LL << 53;
  double value = 0;
  const char* const end = field.data() + field.size();
  return std::from_chars(field.data(), end, value).ptr == end && std::abs(value) <= kMost &&
         value == std::trunc(value);
}

data::CsvOptions csv_layout(const CtrSchema& schema) {
  return {.columns = {},
          .delimiter = schema.delimiter,
          .has_header = schema.columns.empty(),
          .column_names = schema.columns,
          .quoting = schema.quoting,
          .max_quoted_lines = schema.max_quoted_lines};
}

std::set<std::string> integer_columns(const std::vector<std::filesystem::path>& files,
                                      const CtrSchema& schema) {
  constexpr int64_t kRowsAtOnce = 4096;
  using Test = bool (*)(const std::string&);
  std::map<std::string, Test> left;
  for (const std::string& name : schema.numeric) left[name] = is_whole_number;
  for (const std::string& name : schema.categorical) left[name] = is_integer_category;
  std::set<std::string> with_values;
  data::CsvOptions options = csv_layout(schema);
  options.batch_size = kRowsAtOnce;
  for (const auto& column : left) {
    options.columns.push_back({.name = column.first, .dtype = DType::kString});
  }
  for (const std::filesystem::path& file : files) {
    for (const Tensors& batch : data::csv_dataset(file, options)) {
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

void check_keys(const Config& config) {
  constexpr std::array kKnown = {"label", "numeric", "categorical", "delimiter",       "columns",
                                 "train", "test",    "quoting",     "max_quoted_lines"};
  // Facts about the rows, which tools that make data sets write.
  constexpr std::array kFacts = {"rows_train", "rows_test", "pos_train",
                                 "pos_test",   "card",      "split"};
  for (const auto& entry : config.entries()) {
    if (std::ranges::find(kKnown, entry.first) != kKnown.end()) continue;
    if (std::ranges::find(kFacts, entry.first) != kFacts.end()) continue;
    throw ValueError("unknown key '", entry.first, "'; the known keys are ",
                     absl::StrJoin(kKnown, ", "));
  }
}

void check_names(const CtrSchema& schema) {
  std::vector<std::string> names = {schema.label};
  names.insert(names.end(), schema.numeric.begin(), schema.numeric.end());
  names.insert(names.end(), schema.categorical.begin(), schema.categorical.end());
  std::set<std::string> seen;
  for (const std::string& name : names) {
    if (name.empty()) throw ValueError("a column has no name; name each column");
    if (!seen.insert(name).second) {
      throw ValueError("column '", name, "' is listed twice; list it once");
    }
    if (!schema.columns.empty() && std::ranges::count(schema.columns, name) != 1) {
      throw ValueError("column '", name, "' must be listed once in 'columns'");
    }
  }
  if (names.size() == 1) throw ValueError("no features; list some in 'numeric' or 'categorical'");
}

template <class T>
Tensor rows_of(const Tensor& column, const std::vector<int64_t>& rows) {
  Tensor out = Tensor::uninitialized(column.shape().with(0, std::ssize(rows)), column.dtype());
  const auto from = column.data<T>();
  auto to = out.mutable_data<T>();
  for (size_t i = 0; i < rows.size(); ++i) to[i] = from[static_cast<size_t>(rows[i])];
  return out;
}

CtrRows rows_of(const CtrRows& all, const std::vector<int64_t>& rows) {
  Tensors::Dict columns;
  for (const auto& [name, leaf] : all.columns.entries()) {
    const Tensor column = leaf.tensor();
    columns.emplace(name, column.dtype() == DType::kString  ? rows_of<std::string>(column, rows)
                          : column.dtype() == DType::kInt64 ? rows_of<int64_t>(column, rows)
                                                            : rows_of<float>(column, rows));
  }
  return {.columns = Tensors(std::move(columns)), .labels = rows_of<float>(all.labels, rows)};
}

}  // namespace

CtrSchema parse_ctr_schema(const std::string& json, const std::string& file) {
  try {
    const Config config = parse_json(json);
    check_keys(config);
    CtrSchema out = {.label = config["label"].string(),
                     .numeric = strings_of(config["numeric"]),
                     .categorical = strings_of(config["categorical"])};
    if (const Config* const delimiter = config.find("delimiter")) {
      if (delimiter->string().size() != 1) {
        throw ValueError("'delimiter' must be one character, received '", delimiter->string(), "'");
      }
      out.delimiter = delimiter->string()[0];
    }
    if (const Config* const columns = config.find("columns")) out.columns = strings_of(*columns);
    if (const Config* const quoting = config.find("quoting")) out.quoting = quoting->boolean();
    if (const Config* const lines = config.find("max_quoted_lines")) {
      out.max_quoted_lines = lines->integer();
      if (out.max_quoted_lines < 1) {
        throw ValueError("'max_quoted_lines' must be at least 1, received ", out.max_quoted_lines);
      }
    }
    const Config* const train = config.find("train");
    const Config* const test = config.find("test");
    out.train_file = train == nullptr ? "train.csv" : train->string();
    out.test_file = test == nullptr ? "test.csv" : test->string();
    check_names(out);
    return out;
  } catch (const Error& error) {
    throw ValueError("parse_ctr_schema: ", file, ": ", error.what());
  }
}

CtrSchema read_ctr_schema(const std::filesystem::path& folder,
                          const std::vector<std::filesystem::path>& more_files,
                          std::optional<bool> quoting) {
  if (!std::filesystem::is_directory(folder)) {
    throw IoError("read_ctr_schema: ", folder.string(),
                  ": no such folder; pass the folder with schema.json");
  }
  const std::filesystem::path file = folder / "schema.json";
  std::ifstream in(file);
  std::stringstream text;
  if (!(text << in.rdbuf())) {
    throw IoError("read_ctr_schema: ", file.string(),
                  ": cannot be read: ", internal::system_message());
  }
  CtrSchema out = parse_ctr_schema(text.str(), file.string());
  if (quoting) out.quoting = quoting;
  out.train_file = folder / out.train_file;
  out.test_file = folder / out.test_file;
  std::vector<std::filesystem::path> files = {out.train_file, out.test_file};
  files.insert(files.end(), more_files.begin(), more_files.end());
  out.integers = integer_columns(files, out);
  return out;
}

data::CsvOptions ctr_csv_options(const CtrSchema& schema) {
  data::CsvOptions out = csv_layout(schema);
  for (const std::string& name : schema.numeric) {
    out.columns.push_back({.name = name, .default_value = 0});
  }
  for (const std::string& name : schema.categorical) {
    if (schema.integers.contains(name)) {
      out.columns.push_back({.name = name, .dtype = DType::kInt64, .default_value = kNoCategory});
    } else {
      out.columns.push_back({.name = name, .dtype = DType::kString});
    }
  }
  return out;
}

CtrRows read_ctr_csv(const std::filesystem::path& file, const CtrSchema& schema) {
  data::CsvOptions options = ctr_csv_options(schema);
  options.columns.push_back({.name = schema.label});
  const Tensors all = data::read_csv_table(file, options);
  const Tensor labels = all[schema.label].tensor();
  for (int64_t row = 0; row < labels.size(); ++row) {
    const float label = labels.data<float>()[row];
    if (label != 0 && label != 1) {
      throw ValueError("read_ctr_csv: ", file.string(), ": row ", row + 1, ": column '",
                       schema.label, "' must be 0 or 1, received ", label);
    }
  }
  Tensors::Dict features = all.entries();
  features.erase(schema.label);
  return {.columns = Tensors(std::move(features)), .labels = labels.reshaped({labels.size(), 1})};
}

std::pair<CtrRows, CtrRows> split_ctr_rows(const CtrRows& rows, double validation, uint64_t seed) {
  if (!(validation > 0 && validation < 1)) {
    throw ValueError("split_ctr_rows: validation must be above 0 and below 1, received ",
                     validation);
  }
  const RandomStream stream = {.seed = seed, .purpose = kSplitPurpose};
  const auto bound = static_cast<uint64_t>(validation * 0x1p32);
  std::vector<int64_t> train, held_out;
  for (int64_t row = 0; row < rows.labels.dim(0); ++row) {
    (stream.bits(static_cast<uint64_t>(row))[0] < bound ? held_out : train).push_back(row);
  }
  if (train.empty() || held_out.empty()) {
    throw ValueError("split_ctr_rows: ", rows.labels.dim(0),
                     " rows are too few for a validation share of ", validation,
                     "; pass separate validation rows or train without validation");
  }
  return {rows_of(rows, train), rows_of(rows, held_out)};
}

}  // namespace keel
