#include <keel/framework/kernels/gemm/dense_gradient.h>

#include <array>
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <keel/framework/base/parallel.h>
#include <keel/framework/kernels/gemm/amx_tiles.h>

#include "tests/support/expectations.h"
#include "tests/support/random_values.h"

namespace keel::kernels::dense_gradient_test {

using testing_support::expect_near;
using testing_support::random_values;

struct Layer {
  Layer(int64_t m, int64_t k, int64_t n, MatmulPrecision way)
      : precision(way),
        rows(m),
        in(k),
        out(n),
        x(random_values(m * k, 1)),
        w(random_values(k * n, 2)),
        y(random_values(m * n, 3)),
        dy(random_values(m * n, 4)) {}

  struct Gradients {
    std::vector<float> dx, dw, db;
    bool operator==(const Gradients&) const = default;
  };

  Gradients gradients(bool relu) const {
    Gradients g = {std::vector<float>(rows * in, 7), std::vector<float>(in * out, 7),
                   std::vector<float>(out, 7)};
    dense_gradient(args(relu, g.dx.data(), g.dw.data(), g.db.data()));
    return g;
  }
  DenseGradientArgs args(bool relu, float* dx, float* dw, float* db) const {
    return {.rows = rows,
            .in = in,
            .out = out,
            .x = x.data(),
            .w = w.data(),
            .y = relu ? y.data() : nullptr,
            .dy = dy.data(),
            .dx = dx,
            .dw = dw,
            .db = db,
            .precision = precision};
  }
  float dz(bool relu, int64_t i, int64_t j) const {
    return relu && y[i * out + j] <= 0 ? 0 : dy[i * out + j];
  }

  MatmulPrecision precision;
  int64_t rows, in, out;
  std::vector<float> x, w, y, dy;
};

const std::vector<std::array<int64_t, 3>> kShapes = {
    {1, 1, 1},   {5, 3, 2},    {70, 13, 40},   {257, 20, 16},  {600, 35, 50},
    {300, 9, 1}, {513, 1, 33}, {300, 45, 150}, {500, 130, 128}};

class DenseGradientTest : public testing::TestWithParam<MatmulPrecision> {};

INSTANTIATE_TEST_SUITE_P(Products, DenseGradientTest,
                         testing::Values(MatmulPrecision::kHighest, MatmulPrecision::kHigh),
                         [](const auto& way) { return std::string(name_of(way.param)); });

TEST_P(DenseGradientTest, AgreesWithTheDefinition) {
  for (const auto& [m, k, n] : kShapes) {
    const Layer layer(m, k, n, GetParam());
    for (const bool relu : {false, true}) {
      const Layer::Gradients g = layer.gradients(relu);
      const double close = 1e-4;
      for (int64_t p = 0; p < k; ++p) {
        for (int64_t j = 0; j < n; ++j) {
          double sum = 0;
          for (int64_t i = 0; i < m; ++i) sum += layer.x[i * k + p] * layer.dz(relu, i, j);
          ASSERT_NEAR(g.dw[p * n + j], sum, close * std::sqrt(m)) << m << " " << k << " " << n;
        }
      }
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t p = 0; p < k; ++p) {
          double sum = 0;
          for (int64_t j = 0; j < n; ++j) sum += layer.dz(relu, i, j) * layer.w[p * n + j];
          ASSERT_NEAR(g.dx[i * k + p], sum, close) << m << " " << k << " " << n;
        }
      }
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (int64_t i = 0; i < m; ++i) sum += layer.dz(relu, i, j);
        ASSERT_NEAR(g.db[j], sum, close) << m << " " << k << " " << n;
      }
    }
  }
}

TEST_P(DenseGradientTest, BitsDoNotDependOnTheNumberOfWorkers) {
  const int before = num_workers();
  for (const auto& [m, k, n] : kShapes) {
    const Layer layer(m, k, n, GetParam());
    for (const bool relu : {false, true}) {
      set_num_workers(1);
      const Layer::Gradients alone = layer.gradients(relu);
      for (const int workers : {2, 4}) {
        set_num_workers(workers);
        EXPECT_EQ(layer.gradients(relu), alone) << m << " " << k << " " << n;
      }
    }
  }
  set_num_workers(before);
}

TEST_P(DenseGradientTest, UnrequestedGradientsAreNotWritten) {
  for (const auto& [m, k, n] : {std::array<int64_t, 3>{300, 20, 33}, {500, 130, 128}}) {
    const Layer layer(m, k, n, GetParam());
    for (const bool relu : {false, true}) {
      const Layer::Gradients all = layer.gradients(relu);
      std::vector<float> dx(all.dx.size()), dw(all.dw.size()), db(all.db.size());
      dense_gradient(layer.args(relu, dx.data(), nullptr, nullptr));
      dense_gradient(layer.args(relu, nullptr, dw.data(), nullptr));
      dense_gradient(layer.args(relu, nullptr, nullptr, db.data()));
      EXPECT_EQ((Layer::Gradients{dx, dw, db}), all);
    }
  }
}

TEST_P(DenseGradientTest, NoRowsHaveNoGradientOfTheKernel) {
  const Layer::Gradients g = Layer(0, 3, 20, GetParam()).gradients(true);
  EXPECT_EQ(g.dw, std::vector<float>(60));
  EXPECT_EQ(g.db, std::vector<float>(20));
}

TEST(DenseGradientInTilesTest, MatchesMultiplyAdds) {
  const Layer plain(500, 130, 128, MatmulPrecision::kHighest);
  const Layer in_tiles(500, 130, 128, MatmulPrecision::kHigh);
  for (const bool relu : {false, true}) {
    const Layer::Gradients expected = plain.gradients(relu), found = in_tiles.gradients(relu);
    expect_near(found.dx, expected.dx, {.absolute = 1e-6 * 128});
    expect_near(found.dw, expected.dw, {.absolute = 1e-6 * 500});
    EXPECT_EQ(found.db, expected.db);
    EXPECT_EQ(found.dw == expected.dw, !internal::may_use_tiles());
  }
}

}  // namespace keel::kernels::dense_gradient_test
