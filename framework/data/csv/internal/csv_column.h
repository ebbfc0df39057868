// CsvColumnReader: converts the fields of one column to a tensor. Private to framework/data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <keel/framework/data/csv/csv.h>
#include <keel/framework/data/csv/internal/csv_splitter.h>

namespace keel::data {

// Converts the fields of one column to tensors.
class CsvColumnReader {
 public:
  // `field` is the position of the column in a record. Throws ValueError or TypeError, with
  // `caller` in the message, for an invalid dtype or default value.
  CsvColumnReader(const CsvColumn& column, size_t field, const std::string& caller);

  // Returns the name of the column.
  const std::string& name() const { return column_.name; }

  // Makes room for rows [0, rows) of the next tensor. Rows that have been read are kept.
  void reserve(int64_t rows);
  // Returns the number of rows for which there is room.
  int64_t room() const { return room_; }
  // Reads the records that were split last into rows [row, row + records). Several threads may read
  // into disjoint rows at the same time. Returns the first record whose field is not a valid value
  // of this column, or `records`.
  int64_t read(const CsvSplitter& split, int64_t records, int64_t row) const;
  // Throws ValueError because the column's field of a record is invalid. `place` names the row.
  [[noreturn]] void fail(const std::string& place, const CsvSplitter& split, int64_t record) const;
  // Returns rows [0, rows), which have been read. Later rows go to a new tensor.
  Tensor finish(int64_t rows);

 private:
  template <class T>
  int64_t read_numbers(const CsvSplitter& split, int64_t records, T* out) const;
  int64_t read_texts(const CsvSplitter& split, int64_t records, std::string* out) const;
  template <class T>
  bool read_number(std::string_view text, T& out) const;

  const CsvColumn column_;
  const size_t field_;
  int64_t room_ = 0;
  Tensor values_;             // [room]
  void* elements_ = nullptr;  // elements of values_
};

}  // namespace keel::data
