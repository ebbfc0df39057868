#include "examples/ctr/synthetic.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <numeric>
#include <vector>

#include <keel/framework/base/errors.h>
#include <keel/framework/base/internal/atomic_file.h>
#include <keel/framework/internal/math.h>
#include <keel/framework/random.h>

namespace keel::examples {
namespace {

constexpr int kHidden = 2;

struct Column {
  const char* name;
  int64_t values;
  float weight;  // standard deviation of the effects of the values
};
constexpr std::array<Column, 4> kColumns = {
    {{"user", 200, 0.9F}, {"item", 120, 0.9F}, {"device", 6, 0.4F}, {"country", 40, 0.5F}}};

// The hidden parameters from which the clicks are drawn: effects and vectors.
class World {
 public:
  explicit World(uint64_t seed) : seed_(seed) {
    for (size_t c = 0; c < kColumns.size(); ++c) {
      effects_[c].resize(kColumns[c].values);
      stream(10 + c).normal(effects_[c], 0, 0, kColumns[c].weight);
    }
    user_vectors_.resize(kColumns[0].values * kHidden);
    item_vectors_.resize(kColumns[1].values * kHidden);
    stream(20).normal(user_vectors_, 0, 0, 0.7F);
    stream(21).normal(item_vectors_, 0, 0, 0.7F);
  }

  RandomStream stream(uint64_t purpose) const { return {.seed = seed_, .purpose = purpose}; }

  double click_probability(const std::array<int64_t, 4>& ids, double age, double price,
                           double hour) const {
    double z = -1.6;
    for (size_t c = 0; c < kColumns.size(); ++c) z += effects_[c][ids[c]];
    for (int h = 0; h < kHidden; ++h) {
      z += user_vectors_[ids[0] * kHidden + h] * item_vectors_[ids[1] * kHidden + h];
    }
    z += 0.6 * math::sin(hour / 24 * 2 * M_PI) - 0.4 * math::log1p(price / 20) +
         0.5 * math::exp(-math::pow((age - 35) / 12, 2));
    return 1 / (1 + math::exp(-z));
  }

 private:
  const uint64_t seed_;
  std::array<std::vector<float>, 4> effects_;
  std::vector<float> user_vectors_, item_vectors_;
};

// Returns the area under the ROC curve of distinct scores, computed from ranks.
double exact_auc(const std::vector<double>& scores, const std::vector<int>& labels) {
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](size_t i) { return scores[i]; });
  double rank_sum = 0;
  double positives = 0;
  for (size_t rank = 0; rank < order.size(); ++rank) {
    if (labels[order[rank]] == 0) continue;
    rank_sum += static_cast<double>(rank) + 1;
    ++positives;
  }
  const double negatives = static_cast<double>(scores.size()) - positives;
  return (rank_sum - positives * (positives + 1) / 2) / (positives * negatives);
}

double write_rows(const World& world, const std::filesystem::path& file, int64_t first,
                  int64_t rows) {
  std::ofstream out(file);
  out << "label,age,price,hour,user,item,device,country\n";
  std::vector<double> scores;
  std::vector<int> labels;
  std::array<float, 8> u{};
  for (int64_t row = first; row < first + rows; ++row) {
    world.stream(1).uniform(u, static_cast<uint64_t>(row) * u.size(), 0, 1);
    std::array<int64_t, 4> ids{};
    for (size_t c = 0; c < ids.size(); ++c) {
      const auto n = static_cast<double>(kColumns[c].values);
      ids[c] = std::min<int64_t>(kColumns[c].values - 1,
                                 static_cast<int64_t>(math::pow(n + 1, double{u[c]})) - 1);
    }
    const int age = 18 + static_cast<int>(u[4] * u[4] * 60);
    const double price = std::round(100 * math::exp(3 * u[5])) / 100;
    const int hour = static_cast<int>(u[6] * 24);
    const double p = world.click_probability(ids, age, price, hour);
    const int label = u[7] < p ? 1 : 0;
    scores.push_back(p);
    labels.push_back(label);
    out << label << ',' << age << ',' << price << ',' << hour;
    for (size_t c = 0; c < ids.size(); ++c) out << ',' << kColumns[c].name[0] << ids[c];
    out << '\n';
  }
  if (!out.flush()) throw IoError("cannot write ", file.string());
  return exact_auc(scores, labels);
}

}  // namespace

double write_synthetic_ctr(const std::filesystem::path& folder, const SyntheticOptions& options) {
  create_folder(folder);
  std::ofstream schema(folder / "schema.json");
  schema << R"({"label": "label", "numeric": ["age", "price", "hour"], )"
         << R"("categorical": ["user", "item", "device", "country"]})" << '\n';
  if (!schema.flush()) throw IoError("cannot write ", (folder / "schema.json").string());
  const World world(options.seed);
  write_rows(world, folder / "train.csv", 0, options.train_rows);
  return write_rows(world, folder / "test.csv", options.train_rows, options.test_rows);
}

}  // namespace keel::examples
