// CsvColumnReader: one column on its way from fields to a tensor. Private to framework/data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <keel/framework/data/csv/csv.h>
#include <keel/framework/data/csv/internal/csv_splitter.h>

namespace keel::data {

class CsvColumnReader {
 public:
  // `field`: its position in a record. ValueError or TypeError, naming `caller`, for a column that
  // cannot be.
  CsvColumnReader(const CsvColumn& column, size_t field, const std::string& caller);

  const std::string& name() const { return column_.name; }

  // Makes room for rows [0, rows) of the tensor to be; those that were read stay.
  void reserve(int64_t rows);
  int64_t room() const { return room_; }
  // Reads the records that were split last into rows [row, row + records), by any thread, rows of
  // which no other reads at the time. Returns the first record whose field is no value of this
  // column, or `records`.
  int64_t read(const CsvSplitter& split, int64_t records, int64_t row) const;
  // Says that the column's field of a record is no value. `place` names the row.
  [[noreturn]] void fail(const std::string& place, const CsvSplitter& split, int64_t record) const;
  // Rows [0, rows), which were read. The next ones go to another tensor.
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
  void* elements_ = nullptr;  // of it
};

}  // namespace keel::data
