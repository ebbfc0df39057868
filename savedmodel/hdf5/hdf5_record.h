// The record of what Hdf5Writer has written, which is compared with what is read back.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <keel/savedmodel/hdf5/hdf5_file.h>

namespace keel {

// Stores names and checksums, not values.
class Hdf5Record {
 public:
  // Each of these records one object or attribute that has been written.
  void add_group(const std::string& group);
  void add_dataset(const std::string& dataset, const TensorSpec& spec);
  // Records the values of a whole dataset.
  void add_values(const std::string& dataset, const Tensor& value);
  // Records rows of a numeric dataset, from row `first` on.
  void add_rows(const std::string& dataset, int64_t first, const Tensor& rows);
  void add_text(const std::string& object, const std::string& name, std::string_view text);
  void add_integer(const std::string& object, const std::string& name, int64_t value);
  void add_list(const std::string& object, const std::string& name,
                const std::vector<std::string>& values);

  // Throws IoError unless the file contains everything recorded. Reads large datasets in pieces.
  void check(const Hdf5File& file) const;

 private:
  static constexpr int64_t kWhole = -1;
  struct Piece {
    std::string dataset;
    int64_t first = 0, count = kWhole;  // rows
    uint64_t sum = 0;
  };
  struct Attribute {
    enum class Kind { kText, kInteger, kList };
    std::string object, name;
    Kind kind = Kind::kText;
    uint64_t sum = 0;
  };
  static uint64_t stored_sum(const Hdf5File& file, const Attribute& attribute);

  std::vector<std::string> groups_;
  std::vector<std::pair<std::string, TensorSpec>> specs_;
  std::vector<Piece> pieces_;
  std::vector<Attribute> attributes_;
};

}  // namespace keel
