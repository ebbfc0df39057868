#include <keel/layers/embedding/v1/internal/lookup_statistics.h>

#include <absl/strings/str_format.h>
#include <algorithm>
#include <filesystem>
#include <numeric>

#include <keel/framework/base/internal/atomic_file.h>
#include <keel/framework/random.h>

namespace keel::tpu {
namespace {

namespace fs = std::filesystem;

constexpr char kFormat[] = "keel-embedding-profile";
constexpr int64_t kVersion = 1;
constexpr char kSuffix[] = ".profile.json";
constexpr uint64_t kSampling =
    0x70726f66;  // "prof": separates this random stream from others with the same seed

class Fnv1a {
 public:
  void add(std::string_view bytes) {
    for (const char c : bytes) hash_ = (hash_ ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  void add(int64_t number) {
    const auto bits = static_cast<uint64_t>(number);
    for (int shift = 0; shift < 64; shift += 8) {
      hash_ = (hash_ ^ ((bits >> shift) & 0xFF)) * 0x100000001b3;
    }
  }
  uint64_t value() const { return hash_; }

 private:
  uint64_t hash_ = 0xcbf29ce484222325;
};

std::string path_in(const std::string& directory, const std::string& name) {
  return (fs::path(directory) / name).string();
}

// Returns the largest load divided by the mean load; 1 without load.
double imbalance(const std::vector<int64_t>& load) {
  const int64_t sum = std::accumulate(load.begin(), load.end(), int64_t{0});
  if (sum == 0) return 1;
  return static_cast<double>(*std::ranges::max_element(load)) * static_cast<double>(load.size()) /
         static_cast<double>(sum);
}

Config encode_profile(const TableProfile& profile) {
  Config::List hot_rows;
  for (const HotRow& row : profile.hot_rows) hot_rows.push_back(to_config(row));
  return Config::dict({{"format", kFormat},
                       {"version", kVersion},
                       {"key", to_config(profile.key)},
                       {"examples_seen", profile.examples_seen},
                       {"examples", profile.examples},
                       {"ids", profile.ids},
                       {"mean_ids_per_example", profile.mean_ids_per_example()},
                       {"distinct_ids", profile.distinct_ids},
                       {"div_load", encode(profile.div_load)},
                       {"mod_load", encode(profile.mod_load)},
                       {"hot_rows", std::move(hot_rows)}});
}

void require(bool condition, const char* what) {
  if (!condition) throw ValueError(what);
}

// Rejects files whose numbers contradict each other.
void check_numbers(const TableProfile& p) {
  const auto total = [](const std::vector<int64_t>& load) {
    int64_t sum = 0;
    for (const int64_t n : load) {
      require(n >= 0, "a load is negative");
      require(!__builtin_add_overflow(sum, n, &sum), "a load is too large");
    }
    return sum;
  };
  require(p.examples >= 0 && p.examples <= p.examples_seen, "examples are out of range");
  require(p.ids >= 0 && p.distinct_ids >= 0 && p.distinct_ids <= p.ids, "ids are out of range");
  require(!p.div_load.empty() && p.div_load.size() == p.mod_load.size(),
          "loads have different numbers of shards");
  require(total(p.div_load) == p.ids && total(p.mod_load) == p.ids, "loads do not add up to ids");
}

TableProfile decode_profile(const Config& config) {
  require(config.is_dict(), "is not a JSON object");
  require(config["format"] == Config(kFormat), "has an unknown format");
  require(config["version"] == Config(kVersion), "has an unsupported version");
  TableProfile out;
  out.key = from_config<ProfileKey>(config["key"], "key");
  decode(config["examples_seen"], out.examples_seen);
  decode(config["examples"], out.examples);
  decode(config["ids"], out.ids);
  decode(config["distinct_ids"], out.distinct_ids);
  decode(config["div_load"], out.div_load);
  decode(config["mod_load"], out.mod_load);
  for (const Config& row : config["hot_rows"].items()) {
    out.hot_rows.push_back(from_config<HotRow>(row, "hot row"));
  }
  check_numbers(out);
  return out;
}

TableProfile read_file(const std::string& path) {
  constexpr int64_t kLongestFile = 64 << 20;  // bounds the memory for invalid files
  const std::string text = read_text_file(path, kLongestFile);
  TableProfile out;
  try {
    out = decode_profile(parse_json(text));
  } catch (const Error& error) {
    throw IoError(path, ": not a file of lookup statistics: ", error.what());
  }
  if (fs::path(path).filename() != profile_file_name(out.key)) {
    throw IoError(path, ": holds the statistics of another table, '", out.key.table_name,
                  "'; use another directory");
  }
  return out;
}

}  // namespace

std::string profile_file_name(const ProfileKey& key) {
  Fnv1a hash;
  // The lengths separate the strings, so that different keys do not give the same bytes.
  hash.add(static_cast<int64_t>(key.table_name.size()));
  hash.add(key.table_name);
  hash.add(key.num_features);
  hash.add(key.vocabulary_size);
  hash.add(key.dimension);
  hash.add(static_cast<int64_t>(key.sharding_strategy.size()));
  hash.add(key.sharding_strategy);
  hash.add(key.task_count);
  return absl::StrFormat("%016x", hash.value()) + kSuffix;
}

double TableProfile::mean_ids_per_example() const {
  return examples == 0 ? 0 : static_cast<double>(ids) / static_cast<double>(examples);
}
double TableProfile::div_imbalance() const { return imbalance(div_load); }
double TableProfile::mod_imbalance() const { return imbalance(mod_load); }

void write_profile(const std::string& directory, const TableProfile& profile) {
  std::error_code failed;
  fs::create_directories(directory, failed);
  if (failed) throw IoError(directory, ": cannot be created: ", failed.message());
  write_file_atomically(path_in(directory, profile_file_name(profile.key)),
                        to_json(encode_profile(profile)) + "\n");
}

std::optional<TableProfile> read_profile(const std::string& directory, const ProfileKey& key) {
  const std::string path = path_in(directory, profile_file_name(key));
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return {};
  TableProfile out = read_file(path);
  if (!(out.key == key)) {
    throw IoError(path, ": holds the statistics of another table, '", out.key.table_name,
                  "'; use another directory");
  }
  return out;
}

std::vector<TableProfile> read_profiles(const std::string& directory) {
  std::error_code failed;
  std::vector<std::string> paths;
  for (fs::directory_iterator it(directory, failed), end; !failed && it != end;
       it.increment(failed)) {
    if (it->path().string().ends_with(kSuffix)) paths.push_back(it->path().string());
  }
  if (failed) throw IoError(directory, ": cannot be listed: ", failed.message());
  std::vector<TableProfile> out;
  for (const std::string& path : paths) out.push_back(read_file(path));
  std::ranges::sort(out, [](const TableProfile& a, const TableProfile& b) {
    return std::pair(a.key.table_name, profile_file_name(a.key)) <
           std::pair(b.key.table_name, profile_file_name(b.key));
  });
  return out;
}

std::string choose_sharding_strategy(const std::string& directory,
                                     const std::vector<ProfileKey>& tables,
                                     const std::string& strategy) {
  int64_t div = 0, mod = 0;
  for (ProfileKey key : tables) {
    key.sharding_strategy = strategy;
    std::optional<TableProfile> found = read_profile(directory, key);
    if (!found) {
      key.sharding_strategy = strategy == "div" ? "mod" : "div";
      found = read_profile(directory, key);
    }
    if (!found) continue;
    // Compares the loads of the fullest shards in elements: ids times dimension.
    div += *std::ranges::max_element(found->div_load) * key.dimension;
    mod += *std::ranges::max_element(found->mod_load) * key.dimension;
  }
  if (div == mod) return strategy;
  return div < mod ? "div" : "mod";
}

LookupProfiler::LookupProfiler(std::vector<ProfileKey> tables, int cores_per_host,
                               ProfilerOptions options)
    : options_(options), cores_per_host_(cores_per_host) {
  if (!(options.sample_fraction > 0 && options.sample_fraction <= 1)) {
    throw ValueError("LookupProfiler: sample_fraction must be in (0, 1], received ",
                     options.sample_fraction);
  }
  for (ProfileKey& key : tables) {
    const auto partition = [&](distribute::ShardingStrategy strategy) {
      return distribute::Partition(
          key.vocabulary_size, {.hosts = static_cast<int>(key.task_count), .strategy = strategy});
    };
    counters_.push_back({.div = partition(distribute::ShardingStrategy::kDiv),
                         .mod = partition(distribute::ShardingStrategy::kMod)});
    const auto shards = static_cast<size_t>(key.task_count * cores_per_host);
    TableProfile& profile = profiles_.emplace_back();
    profile.key = std::move(key);
    profile.div_load.resize(shards);
    profile.mod_load.resize(shards);
  }
}

void LookupProfiler::count(size_t table, int64_t id) {
  TableProfile& profile = profiles_[table];
  Counter& counter = counters_[table];
  if (id < 0 || id >= profile.key.vocabulary_size) return;
  ++profile.ids;
  const auto shard = [&](const distribute::Partition& p) {
    return p.owner(id) * cores_per_host_ + p.index_in_host(id) % cores_per_host_;
  };
  ++profile.div_load[shard(counter.div)];
  ++profile.mod_load[shard(counter.mod)];
  // Bounds the memory: once full, only ids that are tracked already are counted.
  const bool full = static_cast<int64_t>(counter.counts.size()) >= TableProfile::kMaxTrackedIds;
  if (full && !counter.counts.contains(id)) return;
  ++counter.counts[id];
}

void LookupProfiler::record(const std::vector<std::vector<TensorLike>>& features_by_table,
                            int64_t batch_size) {
  const RandomStream stream = {.seed = options_.seed, .purpose = kSampling};
  // An example is sampled if its 32 random bits are below this fraction of 2^32.
  const auto threshold = static_cast<uint64_t>(options_.sample_fraction * 4294967296.0);
  std::vector<bool> sampled(batch_size);
  for (int64_t row = 0; row < batch_size; ++row) {
    sampled[row] = stream.bits(static_cast<uint64_t>(examples_seen_ + row))[0] < threshold;
  }
  examples_seen_ += batch_size;
  const auto count_sampled = [&](size_t table, const TensorLike& ids) {
    const auto values = ids.values().data<int64_t>();
    const auto n = static_cast<int64_t>(values.size());
    if (ids.layout() == Layout::kRagged) {
      const auto splits = ids.ragged().row_splits.data<int64_t>();
      for (int64_t row = 0; row < batch_size; ++row) {
        if (!sampled[row]) continue;
        for (int64_t i = splits[row]; i < splits[row + 1]; ++i) count(table, values[i]);
      }
      return;
    }
    const int64_t* rows = nullptr;
    if (ids.layout() == Layout::kSparse) rows = ids.sparse().indices.data<int64_t>().data();
    for (int64_t i = 0; i < n; ++i) {
      const int64_t row = rows != nullptr ? rows[2 * i] : i * batch_size / n;
      if (sampled[row]) count(table, values[i]);
    }
  };
  for (size_t table = 0; table < profiles_.size(); ++table) {
    profiles_[table].examples_seen = examples_seen_;
    profiles_[table].examples += std::ranges::count(sampled, true);
    for (const TensorLike& ids : features_by_table.at(table)) count_sampled(table, ids);
  }
}

TableProfile LookupProfiler::finished(size_t table) const {
  TableProfile out = profiles_[table];
  const auto& counts = counters_[table].counts;
  out.distinct_ids = static_cast<int64_t>(counts.size());
  std::vector<HotRow> rows;
  for (const auto& [id, count] : counts) rows.push_back({.id = id, .count = count});
  // Breaks ties by id, so that the order is deterministic.
  const auto hotter = [](const HotRow& a, const HotRow& b) {
    return a.count != b.count ? a.count > b.count : a.id < b.id;
  };
  const size_t kept = std::min<size_t>(rows.size(), TableProfile::kHotRows);
  std::ranges::partial_sort(rows, rows.begin() + static_cast<std::ptrdiff_t>(kept), hotter);
  rows.resize(kept);
  out.hot_rows = std::move(rows);
  return out;
}

std::vector<TableProfile> LookupProfiler::profiles() const {
  std::vector<TableProfile> out;
  for (size_t table = 0; table < profiles_.size(); ++table) out.push_back(finished(table));
  return out;
}

int LookupProfiler::save(const std::string& directory) const {
  int saved = 0;
  for (const TableProfile& profile : profiles()) {
    if (profile.examples < options_.min_examples) continue;
    write_profile(directory, profile);
    ++saved;
  }
  return saved;
}

}  // namespace keel::tpu
