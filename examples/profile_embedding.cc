// profile_embedding: prints the lookup statistics that training wrote to a directory.
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include <keel/layers/embedding/v1/lookup_statistics.h>
#include <keel/layers/visualization/internal/text_table.h>

using namespace keel;

namespace {

constexpr char kUsage[] =
    "usage: profile_embedding DIR\n\n"
    "Prints the lookup statistics in DIR, the profile_data_directory of an EmbeddingConfigSpec:\n"
    "one line for each embedding table, then the most frequent rows. Imbalance is the load of\n"
    "the fullest shard divided by the mean load: 1 is even. 'best' is the partition_strategy\n"
    "that distributes the ids more evenly.\n";

std::string decimals(double value) {
  char out[32];
  std::snprintf(out, sizeof out, "%.3f", value);
  return out;
}

std::string best(const tpu::TableProfile& p) {
  if (p.div_imbalance() == p.mod_imbalance()) return "either";
  return p.div_imbalance() < p.mod_imbalance() ? "div" : "mod";
}

void print_tables(const std::vector<tpu::TableProfile>& profiles) {
  std::vector<std::vector<std::string>> rows;
  for (const tpu::TableProfile& p : profiles) {
    rows.push_back({p.key.table_name, str(p.key.vocabulary_size, " x ", p.key.dimension),
                    p.key.sharding_strategy, str(p.div_load.size()),
                    str(p.examples, " of ", p.examples_seen), decimals(p.mean_ids_per_example()),
                    str(p.distinct_ids), decimals(p.div_imbalance()), decimals(p.mod_imbalance()),
                    best(p)});
  }
  print_table({{.title = "table"},
               {.title = "rows x dim", .right_aligned = true, .wraps = false},
               {.title = "strategy", .wraps = false},
               {.title = "shards", .right_aligned = true, .wraps = false},
               {.title = "examples", .right_aligned = true, .wraps = false},
               {.title = "ids/example", .right_aligned = true, .wraps = false},
               {.title = "distinct", .right_aligned = true, .wraps = false},
               {.title = "div imb.", .right_aligned = true, .wraps = false},
               {.title = "mod imb.", .right_aligned = true, .wraps = false},
               {.title = "best", .wraps = false}},
              rows, 120, std::cout);
}

void print_hot_rows(const std::vector<tpu::TableProfile>& profiles) {
  std::cout << "\nMost frequent rows, with their share of all ids:\n";
  for (const tpu::TableProfile& p : profiles) {
    std::cout << "  " << p.key.table_name << ':';
    for (const tpu::HotRow& row : p.hot_rows) {
      const double share = 100.0 * static_cast<double>(row.count) / static_cast<double>(p.ids);
      std::cout << "  " << row.id << " (" << decimals(share) << " %)";
    }
    std::cout << '\n';
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments == std::vector<std::string>{"--help"} ||
      arguments == std::vector<std::string>{"-h"}) {
    std::cout << kUsage;
    return 0;
  }
  if (arguments.size() != 1 || arguments[0].starts_with("-")) {
    std::cerr << "profile_embedding: pass exactly one directory\n" << kUsage;
    return 2;
  }
  try {
    const std::vector<tpu::TableProfile> profiles = tpu::read_profiles(arguments[0]);
    if (profiles.empty()) {
      std::cout << arguments[0] << " has no lookup statistics\n";
      return 0;
    }
    print_tables(profiles);
    print_hot_rows(profiles);
  } catch (const Error& error) {
    std::cerr << "profile_embedding: " << error.what() << '\n';
    return 2;
  }
  return 0;
}
