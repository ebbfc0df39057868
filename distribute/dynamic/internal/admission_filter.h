// AdmissionFilter: decides which keys of a dynamic table get a row, and counts the keys that do not
// have one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <keel/distribute/dynamic/dynamic_vocabulary.h>
#include <keel/distribute/dynamic/internal/count_min_sketch.h>
#include <keel/distribute/dynamic/internal/initial_rows.h>
#include <keel/distribute/dynamic/internal/key_directory.h>

namespace keel::distribute {

// Key is int64_t or std::string. Any number of threads may call the const members while no thread
// changes the filter.
template <class Key>
class AdmissionFilter {
 public:
  explicit AdmissionFilter(const Admission& admission);

  // Returns true if a key without a row qualifies for an update.
  bool qualifies(const Key& key, uint64_t hash, int64_t update, const InitialRows& initial) const;
  // Returns the number of earlier occurrences of a key without a row, as far as they are counted.
  int64_t count(const Key& key, uint64_t hash) const;
  // Counts occurrences of a key that was not admitted.
  void observe(const Key& key, uint64_t hash, int64_t occurrences, int64_t now);
  // Forgets the exact count of a key and returns it. The sketch does not change.
  int64_t take(const Key& key, uint64_t hash);
  // Drops keys that have not occurred within the window.
  void drop_window(int64_t now);
  // Ends an update: halves the sketch if that is due. The owner of the filter drops the keys beyond
  // max_pending before.
  void end_update(int64_t update);

  // The keys that are counted exactly, with their counts and times.
  const KeyDirectory<Key>& pending() const { return pending_; }
  KeyDirectory<Key>& pending() { return pending_; }
  // The sketch; unset for other kinds of admission.
  const std::optional<CountMinSketch>& sketch() const { return sketch_; }
  std::optional<CountMinSketch>& sketch() { return sketch_; }

 private:
  Admission admission_;
  KeyDirectory<Key> pending_;
  std::optional<CountMinSketch> sketch_;
};

extern template class AdmissionFilter<int64_t>;
extern template class AdmissionFilter<std::string>;

}  // namespace keel::distribute
