// profile_embedding: prints the lookup statistics that training wrote to a directory.
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include <keel/layers/embedding/v1/internal/lookup_statistics.h>
#include <keel/layers/visualization/internal/text_table.h>

#include "examples/program.h"

using namespace keel;

namespace {

std::string decimals(double value) { return absl::StrFormat("%.3f", value); }

std::string best(const tpu::TableProfile& p) {
  if (p.div_imbalance() == p.mod_imbalance()) return "either";
  return p.div_imbalance() < p.mod_imbalance() ? "div" : "mod";
}

void print_tables(const std::vector<tpu::TableProfile>& profiles) {
  std::vector<std::vector<std::string>> rows;
  for (const tpu::TableProfile& p : profiles) {
    rows.push_back({p.key.table_name, absl::StrCat(p.key.vocabulary_size, " x ", p.key.dimension),
                    p.key.sharding_strategy, absl::StrCat(p.div_load.size()),
                    absl::StrCat(p.examples, " of ", p.examples_seen),
                    decimals(p.mean_ids_per_example()), absl::StrCat(p.distinct_ids),
                    decimals(p.div_imbalance()), decimals(p.mod_imbalance()), best(p)});
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

int run(const std::string& folder) {
  const std::vector<tpu::TableProfile> profiles = tpu::read_profiles(folder);
  if (profiles.empty()) {
    std::cout << folder << " has no lookup statistics\n";
    return 0;
  }
  print_tables(profiles);
  print_hot_rows(profiles);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::string folder;
  tool::CommandLine line(
      "profile_embedding",
      "profile_embedding: prints the lookup statistics that training wrote to a folder.",
      "Prints one line for each embedding table, then the most frequent rows. Imbalance is the "
      "load\n"
      "of the fullest shard divided by the mean load: 1 is even. 'best' is the partition_strategy\n"
      "that distributes the ids more evenly.");
  line.argument("DIR", &folder, "the profile_data_directory of an EmbeddingConfigSpec");
  return examples::run_program(line, argc, argv, [&folder] { return run(folder); });
}
