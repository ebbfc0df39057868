#include "framework/data/csv.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <memory>
#include <string_view>
#include <type_traits>
#include <variant>

#include "framework/data/csv_reader.h"

namespace keel::data {
namespace {

constexpr const char* kWho = "csv_dataset";
constexpr size_t kShownColumns = 20;

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

template <class T>
std::errc parse_all(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return error;
  return end == text.data() + text.size() ? error : std::errc::invalid_argument;
}

// The number that is all of `text`, spaces around it aside; nothing if there is none, or one that
// T cannot hold or that is not finite.
template <class T>
std::optional<T> parse(std::string_view text) {
  text = trimmed(text);
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  T value = {};
  const std::errc error = parse_all(text, value);
  if constexpr (std::is_floating_point_v<T>) {
    if (error == std::errc::result_out_of_range) {
      long double wide = 0;  // what is merely too small is rounded, not refused
      if (parse_all(text, wide) != std::errc() || std::abs(wide) >= 1) return std::nullopt;
      return static_cast<T>(wide);
    }
    if (!std::isfinite(value)) return std::nullopt;
  }
  if (error != std::errc()) return std::nullopt;
  return value;
}

template <class T>
bool holds(double value) {
  if constexpr (std::is_floating_point_v<T>) {
    return !std::isfinite(value) || std::abs(value) <= std::numeric_limits<T>::max();
  } else {
    // As doubles: min() is exact, and max() + 1 is a power of two.
    return value == std::trunc(value) &&
           value >= static_cast<double>(std::numeric_limits<T>::min()) &&
           value < -static_cast<double>(std::numeric_limits<T>::min());
  }
}

template <class T>
struct Values {
  std::optional<T> missing;  // the value of an empty field
  std::vector<T> read;
};

// One column on its way from fields to a tensor.
class ColumnReader {
 public:
  ColumnReader(const CsvColumn& column, size_t field, const std::string& who)
      : column_(column), field_(field) {
    switch (column.dtype) {
      case DType::kFloat32:
        start<float>(who);
        break;
      case DType::kFloat64:
        start<double>(who);
        break;
      case DType::kInt32:
        start<int32_t>(who);
        break;
      case DType::kInt64:
        start<int64_t>(who);
        break;
      case DType::kString:
        if (column.default_value) {
          throw ValueError(who, ": string column '", column.name, "' takes no default value");
        }
        values_ = Values<std::string>{};
        break;
      default:
        throw TypeError(who, ": column '", column.name,
                        "' needs float32, float64, int32, int64 or string, received ",
                        column.dtype);
    }
  }

  const std::string& name() const { return column_.name; }

  void read(const CsvReader& reader) {
    const CsvReader::Field& field = reader.fields()[field_];
    std::visit([&](auto& values) { read(reader, field, values); }, values_);
  }

  // What was read since the last call.
  Tensor finish() {
    return std::visit(
        [&]<class T>(Values<T>& values) {
          const Shape shape = {static_cast<int64_t>(values.read.size())};
          Tensor out = Tensor::uninitialized(shape, column_.dtype);
          std::ranges::move(values.read, out.mutable_data<T>().begin());
          values.read.clear();
          return out;
        },
        values_);
  }

 private:
  template <class T>
  void start(const std::string& who) {
    Values<T> values;
    if (column_.default_value) {
      if (!holds<T>(*column_.default_value)) {
        throw ValueError(who, ": column '", column_.name, "' needs a default value of its dtype ",
                         column_.dtype, ", received ", *column_.default_value);
      }
      values.missing = static_cast<T>(*column_.default_value);
    }
    values_ = std::move(values);
  }

  static void read(const CsvReader&, const CsvReader::Field& field, Values<std::string>& values) {
    if (field.doubled) {
      values.read.push_back(field.unescaped());
    } else {
      values.read.emplace_back(field.begin, field.end);
    }
  }

  template <class T>
  void read(const CsvReader& reader, const CsvReader::Field& field, Values<T>& values) {
    if (const std::optional<T> value = parse<T>(field.text())) {
      values.read.push_back(*value);
    } else if (values.missing && trimmed(field.text()).empty()) {
      values.read.push_back(*values.missing);
    } else {
      throw_no_number(reader, field);
    }
  }

  [[noreturn]] void throw_no_number(const CsvReader& reader, const CsvReader::Field& field) const {
    constexpr size_t kShown = 40;
    std::string text = field.unescaped();
    if (text.size() > kShown) text = text.substr(0, kShown) + "...";
    throw ValueError(reader.place(), ", column '", column_.name, "': needs ",
                     is_floating(column_.dtype) ? "a finite " : "an ", column_.dtype,
                     ", received '", text, "'");
  }

  const CsvColumn column_;
  const size_t field_;
  std::variant<Values<float>, Values<double>, Values<int32_t>, Values<int64_t>, Values<std::string>>
      values_;
};

std::vector<std::string> read_header(CsvReader& reader) {
  if (!reader.next()) throw IoError(reader.place(), ": needs names, received an empty file");
  std::vector<std::string> names;
  for (const CsvReader::Field& field : reader.fields()) names.push_back(field.unescaped());
  return names;
}

std::string listed(const std::vector<std::string>& names) {
  std::string out;
  for (size_t i = 0; i < std::min(names.size(), kShownColumns); ++i) {
    out += str(i == 0 ? "'" : ", '", names[i], "'");
  }
  if (names.size() > kShownColumns) out += str(" and ", names.size() - kShownColumns, " more");
  return out;
}

// The columns asked for, of a file that is open at its first row.
class TableReader {
 public:
  TableReader(const std::filesystem::path& file, const std::vector<CsvColumn>& columns,
              char delimiter, const std::string& who)
      : reader_(file, delimiter, who) {
    if (columns.empty()) throw ValueError(who, ": needs a column to read, received none");
    const std::vector<std::string> header = read_header(reader_);
    fields_ = header.size();
    for (const CsvColumn& column : columns) {
      const auto found = std::ranges::find(header, column.name);
      if (found == header.end()) {
        throw ValueError(who, ": '", file.string(), "' has no column '", column.name, "'; it has ",
                         listed(header));
      }
      if (std::find(found + 1, header.end(), column.name) != header.end()) {
        throw ValueError(who, ": '", file.string(), "' has several columns '", column.name, "'");
      }
      if (std::ranges::any_of(columns_, [&](auto& c) { return c.name() == column.name; })) {
        throw ValueError(who, ": needs each column once, received '", column.name, "' twice");
      }
      columns_.emplace_back(column, static_cast<size_t>(found - header.begin()), who);
    }
  }

  // Up to `most` rows. Returns how many.
  int64_t read(int64_t most) {
    int64_t rows = 0;
    for (; rows < most && reader_.next(); ++rows) {
      if (reader_.fields().size() != fields_) {
        throw IoError(reader_.place(), ": needs ", fields_, " fields as the header has, received ",
                      reader_.fields().size());
      }
      for (ColumnReader& column : columns_) column.read(reader_);
    }
    return rows;
  }

  Tensors finish() {
    Tensors::Dict out;
    for (ColumnReader& column : columns_) out.emplace(column.name(), column.finish());
    return out;
  }

 private:
  CsvReader reader_;
  size_t fields_ = 0;
  std::vector<ColumnReader> columns_;
};

}  // namespace

Dataset csv_dataset(const std::filesystem::path& file, CsvOptions options) {
  if (options.batch_size < 1) {
    throw ValueError(kWho, ": needs a batch size of at least 1, received ", options.batch_size);
  }
  const TableReader checks_the_header(file, options.columns, options.delimiter, kWho);
  return Dataset::from_generator([file, options = std::move(options)]() -> Dataset::Generator {
    // Shared, because functions are copied.
    auto table = std::make_shared<TableReader>(file, options.columns, options.delimiter, kWho);
    return [table, options]() -> std::optional<Tensors> {
      const int64_t rows = table->read(options.batch_size);
      if (rows == 0 || (rows < options.batch_size && options.drop_remainder)) return std::nullopt;
      return table->finish();
    };
  });
}

Tensors read_csv(const std::filesystem::path& file, std::vector<CsvColumn> columns,
                 char delimiter) {
  TableReader table(file, columns, delimiter, "read_csv");
  table.read(std::numeric_limits<int64_t>::max());
  return table.finish();
}

std::vector<std::string> csv_header(const std::filesystem::path& file, char delimiter) {
  CsvReader reader(file, delimiter, "csv_header");
  return read_header(reader);
}

}  // namespace keel::data
