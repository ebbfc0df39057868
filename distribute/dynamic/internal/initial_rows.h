// InitialRows: the initial values of the rows of a dynamic table, and the random draws of its
// admission. They are functions of the key alone, not of the time or order of arrival.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include <keel/framework/initializers.h>

namespace keel::distribute {

// Rows of `dim` elements.
class InitialRows {
 public:
  // `stream` is the stream from which `initializer` would fill a static table. The initializers
  // must satisfy check_row_initializers().
  InitialRows(int64_t dim, Initializer initializer, Initializer fallback, RandomStream stream);

  int64_t dim() const { return dim_; }
  // Fills `out` [dim] with the initial row of a key.
  void fill(int64_t key, std::span<float> out) const;
  void fill(const std::string& key, std::span<float> out) const;
  // Fills `out` [dim] with the initial values of a fallback row.
  void fill_fallback(int64_t row, std::span<float> out) const;
  // Returns the number in [0, 1) drawn for the key with this stream_key() in an update.
  double draw(uint64_t stream_key, int64_t update) const;

  const RandomStream& stream() const { return stream_; }
  void set_stream(const RandomStream& stream) { stream_ = stream; }

 private:
  RandomStream stream_for(uint64_t kind, uint64_t number) const;
  void fill_from(const Initializer& initializer, const RandomStream& stream,
                 std::span<float> out) const;

  int64_t dim_;
  Initializer initializer_, fallback_;
  RandomStream stream_;
  std::optional<int64_t> row_id_offset_;  // set if the initializer is row_id
};

}  // namespace keel::distribute
