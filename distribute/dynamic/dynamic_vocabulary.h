// DynamicVocabulary: makes an embedding table map any 64-bit integers or strings to rows. The table
// needs no vocabulary: it admits new ids during training and evicts old ones.
//
//   const Table items = make_table({
//       .dim = 16, .optimizer = adagrad, .name = "items",
//       .dynamic = DynamicVocabulary{.capacity = 1'000'000,
//                                    .admission = Admission::count(2),
//                                    .eviction = Eviction::lfu({.ttl = 100'000}),
//                                    .not_admitted = NotAdmitted::default_row()}});
//
// Lookups never change a table. An update counts the ids of the global batch, admits and evicts
// ids, and updates rows. Updates of a table are numbered 0, 1, 2, ...; the end of an update is a
// *boundary*. Admission and eviction depend only on the state of the table and on the ids of the
// global batch, not on their order, on threads or on the distribution of the batch over replicas.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <keel/framework/config/config.h>
#include <keel/framework/initializers.h>

namespace keel {

// The type of the ids of a table.
enum class KeyType { kInt64, kString };
// What a full table without an eviction policy does with new ids that qualify.
enum class OnFull {
  kError,  // the update throws RuntimeError before any table has changed
  // Ids with the highest counts get the remaining rows. The others are refused and counted.
  kRefuse
};
// The unit of `ttl` and `window`.
enum class Clock {
  kStep,  // counts updates
  kUser   // a number that the program sets (DynamicTable::set_clock)
};

// Options of Admission::count.
struct CountAdmissionOptions {
  // > 0: a boundary drops the count of an id that has not occurred for this time.
  int64_t window = 0;
  // > 0: the maximum number of ids that are counted. If there are more, those with the lowest
  // counts are dropped.
  int64_t max_pending = 0;
};
// Options of Admission::sketch.
struct SketchAdmissionOptions {
  int64_t width = 4096;     // the sketch takes 4096 * width bytes
  int64_t halve_every = 0;  // > 0: all counts are halved every so many updates
};

// Which ids get a row. Occurrences in an update do not count towards admission in the same update.
struct Admission {
  // The kinds of admission; see the functions of these names.
  enum class Kind { kAlways, kCount, kSketch, kProbability };
  Kind kind = Kind::kAlways;       // see Kind
  int64_t occurrences = 1;         // of kCount and kSketch
  CountAdmissionOptions counts{};  // of kCount
  SketchAdmissionOptions cells{};  // of kSketch
  double share = 1;                // of kProbability

  // Admits every id at its first occurrence.
  static Admission always() { return {}; }
  // Admits an id that has occurred m - 1 times in earlier updates. Exact; takes about 25 bytes for
  // each id that is counted. count(1) equals always().
  static Admission count(int64_t m, CountAdmissionOptions options = {}) {
    return {.kind = Kind::kCount, .occurrences = m, .counts = options};
  }
  // Like count(), but counts in a count-min sketch of fixed size, which may overestimate. `m` is at
  // most 256.
  static Admission sketch(int64_t m, SketchAdmissionOptions options = {}) {
    return {.kind = Kind::kSketch, .occurrences = m, .cells = options};
  }
  // Admits an id with probability p in each update in which it occurs.
  static Admission probability(double p) { return {.kind = Kind::kProbability, .share = p}; }
};

// Options of Eviction.
struct EvictionOptions {
  int64_t ttl = 0;  // > 0: evicts a row after this time without an occurrence of its id
  // > 0: evicts a row whose L2 norm is lower. Rows admitted by the same update are exempt.
  double min_l2_norm = 0;
  int64_t interval = 1;     // ttl and min_l2_norm are checked every so many updates
  int64_t halve_every = 0;  // lfu only; > 0: all counts are halved every so many updates
};

// Which rows are evicted. If there are more rows than `capacity` after an update, lru() evicts the
// rows whose ids have not occurred for the longest time, and lfu() those with the fewest
// occurrences. Equal rows are ordered by count or time, then by id.
//
// Without aging, lfu() never evicts ids that were frequent once, which costs as much quality as
// hashing: set `halve_every` or `ttl` with it.
struct Eviction {
  // The policies; see the functions of these names.
  enum class Policy { kNone, kLru, kLfu };
  Policy policy = Policy::kNone;  // see Policy
  EvictionOptions options{};      // see EvictionOptions

  // Evicts nothing because of `capacity`.
  static Eviction none(EvictionOptions options = {}) {
    return {.policy = Policy::kNone, .options = options};
  }
  // Evicts the least recently used rows.
  static Eviction lru(EvictionOptions options = {}) {
    return {.policy = Policy::kLru, .options = options};
  }
  // Evicts the least frequently used rows.
  static Eviction lfu(EvictionOptions options = {}) {
    return {.policy = Policy::kLfu, .options = options};
  }
};

// What an id without a row reads.
struct NotAdmitted {
  // The kinds; see the functions of these names.
  enum class Kind { kZero, kIgnore, kDefaultRow, kHashed };
  Kind kind = Kind::kZero;                      // see Kind
  int64_t rows = 1;                             // of kHashed
  std::optional<Initializer> initializer = {};  // unset: that of the table

  // A row of zeros, which counts in the divisors of mean and sqrtn. Its gradient is dropped.
  static NotAdmitted zero() { return {}; }
  // Nothing: the id is left out of sums and divisors. A sequence keeps its position and holds zeros
  // there.
  static NotAdmitted ignore() { return {.kind = Kind::kIgnore}; }
  // One fallback row, which is trained.
  static NotAdmitted default_row(std::optional<Initializer> initializer = {}) {
    return {.kind = Kind::kDefaultRow, .initializer = std::move(initializer)};
  }
  // One of k fallback rows, which are trained: row (id mod k) for integers, a hash for strings.
  static NotAdmitted hashed(int64_t k, std::optional<Initializer> initializer = {}) {
    return {.kind = Kind::kHashed, .rows = k, .initializer = std::move(initializer)};
  }
  // Returns the number of fallback rows.
  int64_t fallback_rows() const {
    return kind == Kind::kHashed ? rows : kind == Kind::kDefaultRow ? 1 : 0;
  }
};

// The options of a table for unbounded ids.
struct DynamicVocabulary {
  KeyType key = KeyType::kInt64;  // the type of the ids
  int64_t capacity = 0;           // maximum number of rows after an update; 0: unbounded
  // The share of `capacity`, and of `max_pending`, that is freed when the limit is exceeded, so
  // that the cost of eviction is spread over many updates.
  double headroom = 0.05;
  Admission admission = Admission::always();       // which ids get a row
  Eviction eviction = Eviction::none();            // which rows are evicted
  NotAdmitted not_admitted = NotAdmitted::zero();  // what ids without a row read
  OnFull on_full = OnFull::kError;                 // applies without lru and lfu
  Clock clock = Clock::kStep;                      // the unit of `ttl` and `window`
};

// Throws ValueError, naming `table` and the option, unless the options are valid: negative numbers;
// headroom outside [0, 1); count(m) with m < 1; sketch(m) with m outside 1 ... 256 or width < 1;
// probability(p) with p outside (0, 1]; an interval < 1; a negative or NaN norm; halve_every
// without lfu; hashed(k) with k < 1; lru or lfu without a capacity; kRefuse with lru or lfu or
// without a capacity.
void check(const DynamicVocabulary& dynamic, const std::string& table);

// Throws ValueError, naming `table` and the initializer, if the values of a row depend on a number
// of rows or on other rows: orthogonal, identity, and variance_scaling with mode fan_in or fan_avg,
// which includes Glorot, He and LeCun. Also if row_id is used with string ids, or for fallback
// rows.
void check_row_initializers(const DynamicVocabulary& dynamic, const Initializer& initializer,
                            const std::string& table);

// Encodes the options as {"key", "capacity", "headroom", "clock", "admission": {"type", ...},
// "eviction": {"policy", ...}, "not_admitted": {"type", ...}, "on_full"}.
Config encode(const DynamicVocabulary& dynamic);
// Decodes the form that encode() writes. Absent keys have their defaults; null is unset. Throws
// ValueError for unknown keys and names.
void decode(const Config& config, std::optional<DynamicVocabulary>& dynamic);

}  // namespace keel
