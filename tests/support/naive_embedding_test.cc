// Compares the naive reference with cases that were computed independently.
#include "tests/support/naive_embedding.h"

#include <cmath>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include <keel/framework/config/config.h>

#include "tests/support/expectations.h"

namespace keel::naive::naive_embedding_test {

std::vector<Config> cases_of_kind(const std::string& kind) {
  std::ifstream in(KEEL_SOURCE_DIR "/tests/cases/embedding_cases.json");
  std::ostringstream text;
  text << in.rdbuf();
  std::vector<Config> out;
  const Config cases = parse_json(text.str());
  for (const Config& item : cases.items()) {
    if (item["inputs"]["kind"].string().starts_with(kind)) out.push_back(item);
  }
  return out;
}

template <class T>
std::vector<T> list_of(const Config& list) {
  std::vector<T> out;
  for (const Config& item : list.items()) out.push_back(static_cast<T>(item.number()));
  return out;
}

Rows rows_of(const Config& list) {
  Rows out;
  for (const Config& row : list.items()) out.push_back(list_of<double>(row));
  return out;
}

// Appends the innermost lists of a nested list.
void append_rows(const Config& nested, Rows& out) {
  if (nested.items().empty() || !nested.items()[0].is_list()) {
    out.push_back(list_of<double>(nested));
    return;
  }
  for (const Config& item : nested.items()) append_rows(item, out);
}

Ids ids_of(const Config& inputs) {
  Ids out = {.kind = inputs.find("row_lengths") == nullptr ? Kind::kSparse : Kind::kRagged};
  out.values = list_of<int64_t>(inputs["values"]);
  if (out.kind == Kind::kRagged) {
    out.row_lengths = list_of<int64_t>(inputs["row_lengths"]);
  } else {
    out.shape = list_of<int64_t>(inputs["dense_shape"]);
    for (const Config& index : inputs["indices"].items()) {
      out.indices.push_back(list_of<int64_t>(index));
    }
  }
  const Config* weights = inputs.find("weights");
  if (weights != nullptr && !weights->is_null()) out.weights = list_of<double>(*weights);
  return out;
}

Feature feature_of(const Config& inputs) {
  Feature out = {.combiner = inputs["combiner"].string()};
  if (const Config* length = inputs.find("max_sequence_length")) {
    out.max_sequence_length = length->integer();
  }
  if (const Config* shape = inputs.find("output_shape"))
    out.output_shape = list_of<int64_t>(*shape);
  if (const Config* validate = inputs.find("validate")) out.validate = validate->boolean();
  if (const Config* q = inputs.find("quantization")) {
    out.quantization =
        Quantization{(*q)["num_buckets"].number(), (*q)["lower"].number(), (*q)["upper"].number()};
  }
  return out;
}

Optimizer optimizer_of(const Config& config) {
  Optimizer out;
  const auto number = [&](const char* name, double& value) {
    if (const Config* found = config.find(name)) value = found->number();
  };
  const auto flag = [&](const char* name, bool& value) {
    if (const Config* found = config.find(name)) value = found->boolean();
  };
  const auto bound = [&](const char* name, std::optional<double>& value) {
    const Config* found = config.find(name);
    if (found != nullptr && !found->is_null()) value = found->number();
  };
  out.type = config["type"].string();
  flag("use_gradient_accumulation", out.accumulate);
  bound("clip_gradient_min", out.clip_gradient_min);
  bound("clip_gradient_max", out.clip_gradient_max);
  bound("clip_weight_min", out.clip_weight_min);
  bound("clip_weight_max", out.clip_weight_max);
  number("weight_decay_factor", out.decay);
  flag("multiply_weight_decay_factor_by_learning_rate", out.decay_times_rate);
  number("initial_accumulator_value", out.initial_accumulator);
  number("momentum", out.momentum);
  flag("use_nesterov", out.nesterov);
  number("exponent", out.exponent);
  number("rho", out.rho);
  for (const char* name : {"beta_1", "beta1"}) number(name, out.beta_1);
  for (const char* name : {"beta_2", "beta2"}) number(name, out.beta_2);
  number("epsilon", out.epsilon);
  number("learning_rate_power", out.power);
  number("l1_regularization_strength", out.l1);
  number("l2_regularization_strength", out.l2);
  number("beta", out.beta);
  flag("multiply_linear_by_learning_rate", out.multiply_linear);
  flag("lazy_adam", out.lazy);
  flag("sum_inside_sqrt", out.sum_inside_sqrt);
  return out;
}

void expect_rows_near(const Rows& received, const Rows& expected) {
  ASSERT_EQ(received.size(), expected.size());
  for (size_t row = 0; row < received.size(); ++row) {
    SCOPED_TRACE(row);
    testing_support::expect_near(received[row], expected[row],
                                 {.absolute = 1e-9, .relative = 1e-9});
  }
}

TEST(NaiveEmbeddingTest, LookupsMatchTheReferenceCases) {
  int checked = 0;
  for (const char* kind : {"sparse", "ragged"}) {
    for (const Config& item : cases_of_kind(kind)) {
      const Config& inputs = item["inputs"];
      if (inputs["kind"].string() == "sparse_gradient") continue;
      SCOPED_TRACE(item["name"].string());
      const std::string mode = inputs["mode"].string();
      Rows expected;
      append_rows(item["expected"]["output"], expected);
      for (const Rules rules : {Rules::kHost, Rules::kEngine}) {
        if (mode == (rules == Rules::kHost ? "engine" : "host")) continue;
        const Batch batch = encode(feature_of(inputs), ids_of(inputs), rules);
        expect_rows_near(look_up(rows_of(inputs["table"]), batch), expected);
        ++checked;
      }
    }
  }
  EXPECT_GT(checked, 20);
}

TEST(NaiveEmbeddingTest, RowGradientsMatchTheReferenceCases) {
  for (const Config& item : cases_of_kind("sparse_gradient")) {
    const Config& inputs = item["inputs"];
    const Batch batch = encode(feature_of(inputs), ids_of(inputs), Rules::kEngine);
    const auto summed =
        sum_by_row(row_contributions(batch, rows_of(inputs["activation_gradient"])));
    const std::vector<int64_t> touched = list_of<int64_t>(item["expected"]["touched_rows"]);
    ASSERT_EQ(summed.size(), touched.size());
    Rows got(inputs["vocabulary_size"].integer(), Row(summed.begin()->second.size(), 0.0));
    for (const auto& [id, row] : summed) got[id] = row;
    expect_rows_near(got, rows_of(item["expected"]["row_gradient"]));
  }
}

TEST(NaiveEmbeddingTest, StepsOfEveryOptimizerMatchTheReferenceCases) {
  const std::vector<Config> cases = cases_of_kind("training");
  EXPECT_EQ(cases.size(), 21U);
  for (const Config& item : cases) {
    SCOPED_TRACE(item["name"].string());
    const Config& inputs = item["inputs"];
    const std::vector<double> rates = list_of<double>(inputs["learning_rates"]);
    NaiveTable table(rows_of(inputs["initial_table"]), optimizer_of(inputs["optimizer"]));
    for (size_t k = 0; k < inputs["steps"].items().size(); ++k) {
      std::vector<Contribution> contributions;
      for (const auto& [name, feature] : inputs["steps"].items()[k].entries()) {
        const Batch batch =
            encode({.combiner = inputs["combiner"].string()}, ids_of(feature), Rules::kEngine);
        for (Contribution& c : row_contributions(batch, rows_of(feature["gradient"]))) {
          contributions.push_back(std::move(c));
        }
      }
      table.step(contributions, rates[k % rates.size()]);
      const Config& expected = item["expected"]["per_step"].items()[k];
      expect_rows_near(table.rows(), rows_of(expected["table"]));
      for (const auto& [slot, rows] : expected["slots"].entries()) {
        expect_rows_near(table.slots().at(slot), rows_of(rows));
      }
    }
  }
}

}  // namespace keel::naive::naive_embedding_test
