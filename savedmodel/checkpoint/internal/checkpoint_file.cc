#include <keel/savedmodel/checkpoint/internal/checkpoint_file.h>

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <algorithm>
#include <filesystem>

#include <keel/distribute/internal/run_collectively.h>
#include <keel/framework/base/internal/temporary_file.h>

namespace keel {
namespace {

namespace fs = std::filesystem;
using distribute::ProcessGroup;

constexpr const char* kCaller = "Checkpoint.write";
constexpr const char* kFormat = "keel-checkpoint";
constexpr const char* kPartFormat = "keel-checkpoint-part";
constexpr int64_t kVersion = 1;
constexpr int64_t kBytesAtOnce = 16 << 20;

int64_t rows_at_once(const TensorSpec& spec) {
  const Shape& shape = spec.shape;
  const int64_t row = shape.rank() == 0 || shape[0] == 0 ? 1 : shape.size() / shape[0];
  const auto bytes = std::max<int64_t>(1, row) * static_cast<int64_t>(size_of(spec.dtype));
  return std::max<int64_t>(1, kBytesAtOnce / bytes);
}

Tensor rows_between(const CheckpointValue& value, int64_t begin, int64_t end) {
  if (value.rows->get) return value.rows->get(begin, end);
  Tensor out = Tensor::uninitialized(value.spec.shape.with(0, end - begin), DType::kFloat32);
  value.rows->read(begin, end, out.mutable_data<float>().data());
  return out;
}

void write_rows(Hdf5Writer& file, const std::string& dataset, const CheckpointValue& value) {
  const StateEntry::Rows& rows = *value.rows;
  if (value.spec.dtype == DType::kString) {
    // Strings cannot be written in pieces.
    file.write(dataset, rows_between(value, rows.first, rows.end));
  } else {
    file.create_dataset(dataset, {.shape = value.spec.shape.with(0, rows.end - rows.first),
                                  .dtype = value.spec.dtype});
    const int64_t block = rows_at_once(value.spec);
    for (int64_t begin = rows.first; begin < rows.end; begin += block) {
      const int64_t end = std::min(begin + block, rows.end);
      file.write_rows(dataset, begin - rows.first, rows_between(value, begin, end));
    }
  }
  if (rows.first == 0 && rows.end == value.spec.shape[0]) return;
  file.write_attribute(dataset, "first_row", rows.first);
  file.write_attribute(dataset, "rows", value.spec.shape[0]);
}

// Returns a value without rows by its position in the list of values.
using Whole = std::function<Tensor(size_t)>;

// Writes the rows that this process holds and, in the first process, the values without rows.
void write_values(Hdf5Writer& file, int64_t step, bool first_process,
                  const std::vector<CheckpointValue>& values, const Whole& whole) {
  file.create_group("/entries");
  int64_t entries = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const CheckpointValue& value = values[i];
    const bool no_rows = !value.rows || value.rows->first == value.rows->end;
    if (no_rows && !first_process) continue;
    const std::string dataset = absl::StrCat("/entries/", entries);
    if (value.rows) {
      write_rows(file, dataset, value);
    } else {
      file.write(dataset, whole(i));
    }
    file.write_attribute(dataset, "key", value.key, Hdf5Writer::Charset::kUtf8);
    if (!value.optimizer.empty()) {
      file.write_attribute(dataset, "optimizer", value.optimizer, Hdf5Writer::Charset::kUtf8);
    }
    ++entries;
  }
  file.write_attribute("/", "format", first_process ? kFormat : kPartFormat);
  file.write_attribute("/", "format_version", kVersion);
  file.write_attribute("/", "step", step);
  file.write_attribute("/", "entries", entries);
}

// Reading a value may be collective. With several processes, all values are therefore read before
// any process can fail to write. A single process reads each value when it writes it, because a
// value may be a copy, and all copies together could be large.
Whole read_whole(const std::vector<CheckpointValue>& values, bool alone) {
  if (alone) return [&values](size_t i) { return values[i].get(); };
  std::vector<Tensor> all;
  for (const CheckpointValue& value : values) all.push_back(value.rows ? Tensor() : value.get());
  return [all = std::move(all)](size_t i) { return all[i]; };
}

std::string part_prefix(const std::string& path) {
  return fs::path(path).filename().string() + ".part-";
}

std::vector<fs::path> parts_beside(const std::string& path) {
  const fs::path folder = fs::path(path).has_parent_path() ? fs::path(path).parent_path() : ".";
  std::vector<fs::path> out;
  for (const std::string& name : file_names(folder.string())) {
    if (name.starts_with(part_prefix(path))) out.push_back(folder / name);
  }
  return out;
}

void check_format(const Hdf5File& file, const char* format) {
  if (!file.has_attribute("/", "format") || file.string_attribute("/", "format") != format) {
    throw IoError(file.path(), ": not a checkpoint; pass a file that Checkpoint.write wrote");
  }
  const int64_t version = file.integer_attribute("/", "format_version");
  if (version != kVersion) {
    throw IoError(file.path(), ": is a checkpoint of version ", version,
                  ", but this library reads version ", kVersion,
                  "; use the version of the library that wrote it");
  }
}

}  // namespace

namespace {

// Writes the part of this process and returns its file name, which contains its checksum.
std::string write_part(const std::string& path, int rank, int64_t step,
                       const std::vector<CheckpointValue>& values, const Whole& whole) {
  const std::string provisional = absl::StrCat(path, ".part-", rank);
  {
    Hdf5Writer part(provisional);
    write_values(part, step, false, values, whole);
    part.commit({.seal = true});
  }
  std::error_code error;
  std::string name;
  try {
    name = absl::StrCat(provisional, "-", sealed_checksum(provisional));
    fs::rename(provisional, name, error);
    if (error) throw IoError(name, ": cannot be renamed into place: ", error.message());
  } catch (const IoError&) {
    fs::remove(provisional, error);
    throw;
  }
  return fs::path(name).filename().string();
}

void remove_parts_but(const std::string& path, const std::vector<std::string>& names) {
  for (const fs::path& other : parts_beside(path)) {
    if (std::ranges::find(names, other.filename().string()) == names.end()) {
      remove_file(other.string());
    }
  }
}

}  // namespace

void write_checkpoint(const std::string& path, int64_t step,
                      const std::vector<CheckpointValue>& values) {
  ProcessGroup& group = distribute::processes();
  const bool first = group.rank() == 0;
  const bool has_rows = std::ranges::any_of(
      values, [](const CheckpointValue& v) { return v.rows && v.rows->first != v.rows->end; });
  const Whole whole = read_whole(values, group.size() == 1);
  std::optional<Hdf5Writer> main;
  std::string part;
  try {
    distribute::run_collectively(group, kCaller, [&] {
      if (first) {
        main.emplace(path);
        write_values(*main, step, true, values, whole);
      } else if (has_rows) {
        part = write_part(path, group.rank(), step, values, whole);
      }
    });
    std::vector<std::string> parts = distribute::gather_texts(group, kCaller, part);
    std::erase(parts, "");
    distribute::run_collectively(group, kCaller, [&] {
      if (!first) return;
      // The main file is committed last, when all parts exist, so it never names a missing part.
      // Parts of an older checkpoint are removed only after that.
      main->write_string_list("/", "parts", parts);
      main->commit({.seal = true});
      remove_parts_but(path, parts);
    });
  } catch (const Error&) {
    // Keeps the part if the path exists: an older checkpoint there may have a part with equal
    // contents and thus the same name.
    std::error_code error;
    if (!part.empty() && !fs::exists(path, error)) {
      fs::remove(fs::path(path).replace_filename(part), error);
    }
    throw;
  }
}

void remove_checkpoint(const std::string& path) {
  remove_file(path);
  for (const fs::path& part : parts_beside(path)) remove_file(part.string());
}

CheckpointReader::CheckpointReader(const std::string& path) : path_(path) {
  check_seal(path);
  files_.push_back(std::make_unique<Hdf5File>(path));
  const Hdf5File& main = *files_.front();
  check_format(main, kFormat);
  step_ = main.integer_attribute("/", "step");
  add_file(main);
  for (const std::string& name : main.string_list("/", "parts")) {
    if (!name.starts_with(part_prefix(path)) || absl::StrContains(name, '/')) {
      throw IoError(path, ": refers to '", name,
                    "', a part of another checkpoint; restore the file from a copy");
    }
    const std::string part = fs::path(path).replace_filename(name).string();
    check_seal(part);
    if (!name.ends_with(absl::StrCat("-", sealed_checksum(part)))) {
      throw IoError(part, ": does not belong to ", path, "; restore both files from the same copy");
    }
    files_.push_back(std::make_unique<Hdf5File>(part));
    check_format(*files_.back(), kPartFormat);
    add_file(*files_.back());
  }
  check_whole();
}

CheckpointReader::~CheckpointReader() = default;

void CheckpointReader::add_file(const Hdf5File& file) {
  const std::vector<std::string> names = file.children("/entries");
  const int64_t expected = file.integer_attribute("/", "entries");
  if (expected != static_cast<int64_t>(names.size())) {
    throw IoError(file.path(), ": has ", names.size(), " entries instead of ", expected,
                  "; restore the file from a copy");
  }
  for (const std::string& name : names) {
    Piece piece = {.file = &file, .dataset = "/entries/" + name, .first = 0, .count = 1};
    Stored stored = {.spec = file.spec(piece.dataset)};
    if (file.has_attribute(piece.dataset, "optimizer")) {
      stored.optimizer = file.string_attribute(piece.dataset, "optimizer");
    }
    const std::string key = file.string_attribute(piece.dataset, "key");
    if (stored.spec.shape.rank() > 0) piece.count = stored.spec.shape[0];
    if (file.has_attribute(piece.dataset, "first_row")) {
      piece.first = file.integer_attribute(piece.dataset, "first_row");
      if (stored.spec.shape.rank() == 0) {
        throw IoError(
            file.path(), ": '", key,
            "' is a scalar but is marked as a range of rows; restore the file from a copy");
      }
      stored.spec.shape = stored.spec.shape.with(0, file.integer_attribute(piece.dataset, "rows"));
    }
    const auto [it, added] = index_.emplace(key, stored);
    if (!added && it->second.spec.shape != stored.spec.shape) {
      throw IoError(file.path(), ": '", key, "' has two shapes; restore the file from a copy");
    }
    pieces_[key].push_back(std::move(piece));
  }
}

void CheckpointReader::check_whole() const {
  for (const auto& [key, pieces] : pieces_) {
    const Shape& shape = index_.at(key).spec.shape;
    const int64_t rows = shape.rank() == 0 ? 1 : shape[0];
    std::vector<Piece> sorted = pieces;
    std::ranges::sort(sorted, {}, &Piece::first);
    int64_t next = 0;
    for (const Piece& piece : sorted) {
      if (piece.first != next) break;
      next += piece.count;
    }
    const bool twice = pieces.size() > 1 && rows == 0;
    if (next != rows || twice) {
      throw IoError(path_, ": the pieces of '", key, "' do not cover its ", rows,
                    " rows exactly once; restore the file from a copy");
    }
  }
}

Tensor CheckpointReader::read(const std::string& key) const {
  const std::vector<Piece>& pieces = pieces_.at(key);
  if (pieces.size() == 1) return pieces[0].file->read(pieces[0].dataset);
  return read(key, 0, index_.at(key).spec.shape[0]);
}

Tensor CheckpointReader::read(const std::string& key, int64_t begin, int64_t end) const {
  const TensorSpec& spec = index_.at(key).spec;
  if (spec.shape.rank() == 0) return read(key);
  const Shape shape = spec.shape.with(0, end - begin);
  if (shape.size() == 0) return Tensor::uninitialized(shape, spec.dtype);
  const int64_t row = shape.size() / (end - begin);
  Tensor out;
  read_rows(key, begin, end, [&](int64_t first, const Tensor& rows) {
    if (rows.shape() == shape) {
      out = rows;
      return;
    }
    if (!out) out = Tensor::uninitialized(shape, spec.dtype);
    const int64_t at = (first - begin) * row;
    if (spec.dtype == DType::kString) {
      std::ranges::copy(rows.data<std::string>(), out.mutable_data<std::string>().begin() + at);
      return;
    }
    const auto bytes = static_cast<int64_t>(size_of(spec.dtype));
    std::ranges::copy(rows.raw(), out.mutable_raw().begin() + at * bytes);
  });
  return out;
}

void CheckpointReader::read_rows(const std::string& key, int64_t begin, int64_t end,
                                 FunctionRef<void(int64_t begin, const Tensor& values)> use) const {
  const int64_t block = rows_at_once(index_.at(key).spec);
  for (const Piece& piece : pieces_.at(key)) {
    const int64_t stop = std::min(end, piece.first + piece.count);
    for (int64_t at = std::max(begin, piece.first); at < stop; at += block) {
      const int64_t count = std::min(block, stop - at);
      use(at, piece.file->read_rows(piece.dataset, at - piece.first, count));
    }
  }
}

}  // namespace keel
