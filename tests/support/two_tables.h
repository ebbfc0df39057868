// A layer with two small tables that is trained by gradients known in advance, and what the tables
// are by the formulas, in float64: for tests of the options of tables and of their optimizers.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <keel/distribute/strategy.h>
#include <keel/layers/embedding/tpu_embedding.h>

namespace keel::two_tables {

using Row = std::vector<double>;
using Rows = std::map<int64_t, Row>;  // by row number
using Tables = std::vector<std::vector<Row>>;

// Where the tables are: as variables of one replica, as variables of several, or in an engine.
struct Holder {
  bool engine = true;
  int hosts = 1, cores = 1;
  bool cpu = false;
};
void PrintTo(const Holder& h, std::ostream* out);
inline const Holder kCpu = {.engine = false, .cpu = true};
inline const std::vector<Holder> kHolders = {kCpu,
                                             {.engine = false, .cores = 2},
                                             {.engine = true, .cores = 1},
                                             {.engine = true, .cores = 2},
                                             {.engine = true, .hosts = 2, .cores = 2}};
inline const std::vector<Holder> kEngines = {{.cores = 1}, {.cores = 2}, {.hosts = 2, .cores = 2}};

// The sizes of the two tables. Both have the combiner sum; features 0 and 1 look up the first,
// feature 2 the second.
constexpr int64_t kDims[2] = {3, 2}, kRows[2] = {6, 4};

// The tables before the first step.
Tables starting_tables();
// The rows' gradients of one step, by table; they are the same in every step.
std::vector<Rows> gradients();

// The sum of the squares of all elements.
double squares(const Rows& rows);
void scale(Rows& rows, double factor);

// The tables after `steps` steps of SGD by gradients that `change` has changed.
template <class Change>
Tables after_sgd(double rate, int steps, const Change& change) {
  Tables tables = starting_tables();
  for (int i = 0; i < steps; ++i) {
    std::vector<Rows> all = gradients();
    change(all);
    for (int t = 0; t < 2; ++t) {
      for (const auto& [id, g] : all[t]) {
        for (size_t d = 0; d < g.size(); ++d) tables[t][id][d] -= rate * g[d];
      }
    }
  }
  return tables;
}

// A layer with the two tables, named first and second, and the optimizer of its variables.
class Training {
 public:
  // `own` is the optimizer that the layer receives; unset: `optimizer`.
  Training(const Holder& holder, const OptimizerHandle& optimizer, TableConfig first = {},
           TableConfig second = {}, const std::optional<EmbeddingOptimizer>& own = {},
           bool pipelined = false, const std::string& partition = "div");

  const layers::TPUEmbedding& layer() const { return *layer_; }

  void step();

  std::vector<float> table(int t) const;
  void expect_tables(const Tables& expected, double tolerance = 1e-5) const;
  std::vector<std::string> state_names() const;

 private:
  const std::unique_ptr<distribute::Strategy> strategy_;
  const distribute::Strategy::Scope scope_;
  const OptimizerHandle optimizer_;
  std::vector<Table> tables_;
  std::optional<layers::TPUEmbedding> layer_;
};

}  // namespace keel::two_tables
