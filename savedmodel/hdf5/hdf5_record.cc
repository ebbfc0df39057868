#include <keel/savedmodel/hdf5/hdf5_record.h>

#include <absl/strings/str_cat.h>
#include <algorithm>
#include <span>

#include <keel/framework/base/errors.h>
#include <keel/framework/base/internal/checksum.h>

namespace keel {
namespace {

constexpr size_t kPieceBytes = size_t{16} << 20;  // bounds the memory of reading back

// The sizes separate the strings: "ab", "c" and "a", "bc" differ.
uint64_t sum_of_strings(std::span<const std::string> strings) {
  std::string all;
  for (const std::string& s : strings) absl::StrAppend(&all, s.size(), ":", s);
  return checksum_of(all.data(), all.size());
}

uint64_t sum_of(const Tensor& value) {
  if (value.dtype() == DType::kString) return sum_of_strings(value.data<std::string>());
  return checksum_of(value.raw().data(), value.raw().size());
}

uint64_t sum_of_text(std::string_view text) { return checksum_of(text.data(), text.size()); }

}  // namespace

void Hdf5Record::add_group(const std::string& group) { groups_.push_back(group); }

void Hdf5Record::add_dataset(const std::string& dataset, const TensorSpec& spec) {
  specs_.emplace_back(dataset, spec);
}

void Hdf5Record::add_values(const std::string& dataset, const Tensor& value) {
  add_dataset(dataset, value.spec());
  if (value.size() == 0) return;
  const bool rows_are_readable =
      value.rank() > 0 && value.dtype() != DType::kString && value.dtype() != DType::kBool;
  if (!rows_are_readable) {
    pieces_.push_back({.dataset = dataset, .sum = sum_of(value)});
    return;
  }
  const auto bytes = value.raw();
  const int64_t rows = value.dim(0);
  const size_t row_bytes = bytes.size() / rows;
  const int64_t step = std::max<int64_t>(1, static_cast<int64_t>(kPieceBytes / row_bytes));
  for (int64_t first = 0; first < rows; first += step) {
    const int64_t count = std::min(step, rows - first);
    pieces_.push_back({.dataset = dataset,
                       .first = first,
                       .count = count,
                       .sum = checksum_of(&bytes[first * row_bytes], count * row_bytes)});
  }
}

void Hdf5Record::add_rows(const std::string& dataset, int64_t first, const Tensor& rows) {
  pieces_.push_back(
      {.dataset = dataset, .first = first, .count = rows.dim(0), .sum = sum_of(rows)});
}

void Hdf5Record::add_text(const std::string& object, const std::string& name,
                          std::string_view text) {
  attributes_.push_back(
      {.object = object, .name = name, .kind = Attribute::Kind::kText, .sum = sum_of_text(text)});
}

void Hdf5Record::add_integer(const std::string& object, const std::string& name, int64_t value) {
  attributes_.push_back({.object = object,
                         .name = name,
                         .kind = Attribute::Kind::kInteger,
                         .sum = static_cast<uint64_t>(value)});
}

void Hdf5Record::add_list(const std::string& object, const std::string& name,
                          const std::vector<std::string>& values) {
  attributes_.push_back({.object = object,
                         .name = name,
                         .kind = Attribute::Kind::kList,
                         .sum = sum_of_strings(values)});
}

uint64_t Hdf5Record::stored_sum(const Hdf5File& file, const Attribute& attribute) {
  const auto& [object, name, kind, sum] = attribute;
  switch (kind) {
    case Attribute::Kind::kText:
      return sum_of_text(file.string_attribute(object, name));
    case Attribute::Kind::kList:
      return sum_of_strings(file.string_list(object, name));
    case Attribute::Kind::kInteger:
      break;
  }
  return static_cast<uint64_t>(file.integer_attribute(object, name));
}

void Hdf5Record::check(const Hdf5File& file) const {
  const auto require = [&](bool equal, const std::string& object, const std::string& what) {
    if (equal) return;
    throw IoError(
        file.path(), ", ", object, what,
        ": the bytes read back differ from those written; check the disk and write the file again");
  };
  for (const std::string& group : groups_) require(file.is_group(group), group, "");
  for (const auto& [dataset, spec] : specs_) require(file.spec(dataset) == spec, dataset, "");
  for (const Piece& piece : pieces_) {
    const Tensor found = piece.count == kWhole
                             ? file.read(piece.dataset)
                             : file.read_rows(piece.dataset, piece.first, piece.count);
    require(sum_of(found) == piece.sum, piece.dataset, "");
  }
  for (const Attribute& attribute : attributes_) {
    require(stored_sum(file, attribute) == attribute.sum, attribute.object,
            ", attribute " + attribute.name);
  }
}

}  // namespace keel
