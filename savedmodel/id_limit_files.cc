#include <keel/savedmodel/id_limit_files.h>

#include <absl/strings/str_cat.h>
#include <absl/time/clock.h>
#include <absl/time/time.h>
#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>

#include <keel/framework/base/internal/atomic_file.h>
#include <keel/savedmodel/keras/internal/zip_file.h>

namespace keel {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "fdo_stats_", kIds = "_max_ids", kUnique = "_max_unique_ids";
constexpr int64_t kLargestFile = int64_t{1} << 30;

// The greatest number of each key.
using Maxima = std::map<std::string, int64_t>;

void take(Maxima& maxima, const std::string& key, double value, const std::string& path) {
  if (!(value >= 0 && value < 9e18)) {
    throw IoError(path, ", ", key, ": ", value, " is no number of ids");
  }
  int64_t& most = maxima[key];
  most = std::max(most, static_cast<int64_t>(std::ceil(value)));
}

// ---- CSV.

// Returns the fields of one record and advances `at` behind it. A field in quotes may contain
// commas, line breaks and doubled quotes.
std::vector<std::string> next_record(const std::string& text, size_t& at) {
  std::vector<std::string> out(1);
  bool quoted = false;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '"') {
      const bool doubled = quoted && at + 1 < text.size() && text[at + 1] == '"';
      if (doubled) out.back() += text[++at];
      if (!doubled) quoted = !quoted;
    } else if (c == ',' && !quoted) {
      out.emplace_back();
    } else if (c == '\n' && !quoted) {
      ++at;
      break;
    } else if (c != '\r' || quoted) {
      out.back() += c;
    }
  }
  return out;
}

void take_numbers(Maxima& maxima, const std::string& key, const std::string& text,
                  const std::string& path) {
  constexpr std::string_view kBetween = " \t\r\n[],";
  size_t begin = text.find_first_not_of(kBetween);
  while (begin != std::string::npos) {
    const size_t end = std::min(text.find_first_of(kBetween, begin), text.size());
    double value = 0;
    const auto [last, error] = std::from_chars(text.data() + begin, text.data() + end, value);
    if (error != std::errc() || last != text.data() + end) {
      throw IoError(path, ", ", key, ": '", text.substr(begin, end - begin), "' is no number");
    }
    take(maxima, key, value, path);
    begin = text.find_first_not_of(kBetween, end);
  }
}

Maxima read_csv(const std::string& path) {
  const std::string text = read_text_file(path, kLargestFile);
  size_t at = 0;
  if (next_record(text, at) != std::vector<std::string>{"key", "values"}) {
    throw IoError(path, ": the first line must be key,values");
  }
  Maxima out;
  while (at < text.size()) {
    const std::vector<std::string> record = next_record(text, at);
    if (record.size() == 1 && record[0].empty()) continue;
    if (record.size() != 2) throw IoError(path, ": a line has ", record.size(), " fields, not 2");
    take_numbers(out, record[0], record[1], path);
  }
  return out;
}

// ---- NPZ.

constexpr std::string_view kMagic = "\x93NUMPY";

template <class T>
void take_values(Maxima& maxima, const std::string& key, std::string_view bytes,
                 const std::string& path) {
  for (size_t at = 0; at + sizeof(T) <= bytes.size(); at += sizeof(T)) {
    T value;
    std::memcpy(&value, bytes.data() + at, sizeof(T));
    take(maxima, key, static_cast<double>(value), path);
  }
}

// Reads an array of little-endian numbers; only its values matter.
void take_array(Maxima& maxima, const std::string& key, std::string_view bytes,
                const std::string& path) {
  const auto fail = [&](const char* what) { throw IoError(path, ", ", key, ": ", what); };
  static_assert(std::endian::native == std::endian::little);
  constexpr size_t kVersion = 6, kLength = 8;
  if (!bytes.starts_with(kMagic) || bytes.size() < 12) fail("is no array of NumPy");
  const bool wide = bytes[kVersion] >= 2;  // the length has four bytes
  uint32_t length = 0;
  std::memcpy(&length, bytes.data() + kLength, wide ? 4 : 2);
  const size_t begin = kLength + (wide ? 4 : 2);
  if (length > bytes.size() - begin) fail("is damaged");
  const std::string_view header = bytes.substr(begin, length);
  const std::string_view values = bytes.substr(begin + length);
  const auto is = [&](const char* type) { return header.find(type) != std::string_view::npos; };
  if (is("'<i8'")) return take_values<int64_t>(maxima, key, values, path);
  if (is("'<i4'")) return take_values<int32_t>(maxima, key, values, path);
  if (is("'<u8'")) return take_values<uint64_t>(maxima, key, values, path);
  if (is("'<u4'")) return take_values<uint32_t>(maxima, key, values, path);
  if (is("'<f4'")) return take_values<float>(maxima, key, values, path);
  if (is("'<f8'")) return take_values<double>(maxima, key, values, path);
  fail("has another dtype than int32, int64, uint32, uint64, float32 and float64");
}

Maxima read_npz(const std::string& path) {
  const ZipFile file(path);
  Maxima out;
  for (const std::string& entry : file.entries()) {
    constexpr std::string_view kSuffix = ".npy";
    if (!entry.ends_with(kSuffix)) continue;
    const std::string key = entry.substr(0, entry.size() - kSuffix.size());
    if (!key.ends_with(kIds) && !key.ends_with(kUnique)) continue;
    take_array(out, key, file.read(entry, kLargestFile), path);
  }
  return out;
}

// Returns a file of one int64 number.
std::string npy_of(int64_t value) {
  // Magic, version, length and header together are a multiple of 64 bytes.
  std::string header = "{'descr': '<i8', 'fortran_order': False, 'shape': (1, 1), }";
  header.resize(128 - 10 - 1, ' ');
  header += '\n';
  std::string out(kMagic);
  out += std::string("\x01\x00", 2);
  out += static_cast<char>(header.size());
  out += '\0';
  out += header;
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
  return out;
}

// ---- Names of files.

// The process and the time in a name "fdo_stats_<process>_<nanoseconds>.<format>".
struct FileName {
  int64_t process = 0, time = 0;
};

std::optional<FileName> parse_name(const std::string& name) {
  if (!name.starts_with(kPrefix) || !(name.ends_with(".csv") || name.ends_with(".npz"))) return {};
  FileName out;
  const char* const end = name.data() + name.size() - 4;
  const auto process = std::from_chars(name.data() + kPrefix.size(), end, out.process);
  if (process.ec != std::errc() || process.ptr == end || *process.ptr != '_') return {};
  const auto time = std::from_chars(process.ptr + 1, end, out.time);
  if (time.ec != std::errc() || time.ptr != end) return {};
  return out;
}

void check(const std::map<std::string, IdLimits>& limits, const IdLimitFileOptions& options) {
  if (options.format != "csv" && options.format != "npz") {
    throw ValueError("write_id_limits: format must be csv or npz, received '", options.format, "'");
  }
  if (options.process < 0) {
    throw ValueError("write_id_limits: process must not be negative, received ", options.process);
  }
  for (const auto& [table, _] : limits) {
    if (table.empty() || table.find_first_of(",\"/\\\r\n") != std::string::npos) {
      throw ValueError("write_id_limits: the name '", table,
                       "' of a table is empty or contains a comma, a quote, a slash or a line "
                       "break; rename the table");
    }
  }
}

}  // namespace

std::string write_id_limits(const std::string& folder,
                            const std::map<std::string, IdLimits>& limits,
                            const IdLimitFileOptions& options) {
  check(limits, options);
  Maxima numbers;
  for (const auto& [table, of_table] : limits) {
    numbers[table + std::string(kIds)] = of_table.max_ids_per_partition;
    numbers[table + std::string(kUnique)] = of_table.max_unique_ids_per_partition;
  }
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw IoError(folder, ": the folder cannot be created: ", error.message());
  int64_t time = absl::ToUnixNanos(absl::Now());
  const auto path_at = [&] {
    return (fs::path(folder) / str(kPrefix, options.process, "_", time, ".", options.format))
        .string();
  };
  while (fs::exists(path_at())) ++time;
  const std::string path = path_at();
  if (options.format == "npz") {
    ZipWriter file(path);
    for (const auto& [key, value] : numbers) file.add(key + ".npy", npy_of(value));
    file.finish();
    return path;
  }
  std::string text = "key,values\n";
  for (const auto& [key, value] : numbers) absl::StrAppend(&text, key, ",", value, "\n");
  write_file_atomically(path, text);
  return path;
}

std::map<std::string, IdLimits> read_id_limits(const std::string& folder) {
  std::error_code error;
  std::map<int64_t, std::pair<int64_t, std::string>> latest;  // time and path, by process
  for (const fs::directory_entry& file : fs::directory_iterator(folder, error)) {
    const std::optional<FileName> name = parse_name(file.path().filename().string());
    if (!name) continue;
    auto& found = latest[name->process];
    found = std::max(found, std::pair(name->time, file.path().string()));
  }
  if (latest.empty()) {
    throw IoError(folder, ": the folder has no file fdo_stats_<process>_<time>.csv or .npz");
  }
  std::map<std::string, IdLimits> out;
  std::map<std::string, int64_t> numbers;
  for (const auto& [_, file] : latest) {
    const std::string& path = file.second;
    for (const auto& [key, value] : path.ends_with(".npz") ? read_npz(path) : read_csv(path)) {
      numbers[key] = std::max(numbers[key], value);
    }
  }
  for (const auto& [key, value] : numbers) {
    if (key.ends_with(kUnique)) {
      out[key.substr(0, key.size() - kUnique.size())].max_unique_ids_per_partition = value;
    } else if (key.ends_with(kIds)) {
      out[key.substr(0, key.size() - kIds.size())].max_ids_per_partition = value;
    }
  }
  return out;
}

}  // namespace keel
