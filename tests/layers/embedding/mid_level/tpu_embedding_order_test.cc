// Tests every order of calls of two replicas against a model of the expected results. A legal order
// gives the model's numbers. An illegal one throws RuntimeError and never blocks, and the object
// remains usable.
#include <iostream>
#include <stdexcept>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/layers/embedding/mid_level/mid_level_testing.h"
#include "tests/support/errors.h"

namespace keel::mid_level::tpu_embedding_order_test {

using distribute::PerReplica;
using distribute::TPUStrategy;
using testing::HasSubstr;
using testing_support::message_of;

// Calls of one replica: T and I enqueue for training and for inference, D dequeues, A applies.
using Calls = std::string;

constexpr float kGradients[] = {1, 2};  // by replica; the rate is 1

Tensors feature() { return {{"f", Tensor::zeros({1, 1}, DType::kInt64)}}; }

// Suppresses warnings about batches that are not updated.
class Quiet {
 public:
  Quiet() : buffer_(std::cerr.rdbuf(nullptr)) {}
  ~Quiet() {
    std::cerr.rdbuf(buffer_);
    std::cerr.clear();
  }
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;

 private:
  std::streambuf* const buffer_;
};

// One weight, two replicas.
struct Pair {
  explicit Pair(bool pipelined = false) {
    const auto scope = strategy.scope();
    const Table table = make_table(
        {.vocabulary_size = 1, .dim = 1, .initializer = "zeros", .combiner = "sum", .name = "t"});
    embedding = std::make_unique<tpu::TPUEmbedding>(Nest<FeatureConfig>{{"f", on(table)}},
                                                    tpu::SGD{.learning_rate = 1.0}, pipelined);
    embedding->build(1);
  }

  void call(char c, Values& seen) {
    switch (c) {
      case 'T':
      case 'I':
        return embedding->enqueue(feature(), {.training = c == 'T'});
      case 'D':
        seen.push_back(flat(embedding->dequeue())[0]);
        return;
      default:
        embedding->apply_gradients(
            {{"f", Gradient(Tensor::full<float>({1, 1}, kGradients[this_replica()]))}});
    }
  }
  // Returns the activations of the replicas in one step of these calls. The features are the step's
  // own arguments.
  std::vector<Values> step(const PerReplica<Calls>& calls) {
    const PerReplica<Tensors> features = for_all(feature(), strategy);
    return strategy
        .run(
            [&](const Calls& mine, const Tensors& x) {
              Values seen;
              for (char c : mine) {
                if (c == 'T' || c == 'I') {
                  embedding->enqueue(x, {.training = c == 'T'});
                } else {
                  call(c, seen);
                }
              }
              return seen;
            },
            calls, features)
        .values();
  }
  float weight() { return values_of(*embedding, "t")[0]; }
  void reset() { set_state(*embedding, "t", Tensor::zeros({1, 1})); }

  TPUStrategy strategy{{.num_cores = 2}};
  std::unique_ptr<tpu::TPUEmbedding> embedding;
};

// Returns the collectives of one replica's calls, for example "D0T", "A0"; unset if a call is
// illegal.
std::optional<std::vector<std::string>> collectives(const Calls& calls) {
  std::vector<std::string> out;
  std::vector<std::string> waiting;  // serial and kind
  std::string updatable;
  int next = 0;
  for (char c : calls) {
    if (c == 'T' || c == 'I') {
      waiting.push_back(std::to_string(next++) + c);
    } else if (c == 'D') {
      if (waiting.empty()) return {};
      updatable = waiting.front().back() == 'T' ? waiting.front() : "";
      out.push_back("D" + waiting.front());
      waiting.erase(waiting.begin());
    } else {
      if (updatable.empty()) return {};
      out.push_back("A" + updatable);
      updatable.clear();
    }
  }
  return out;
}

// Returns the activation of each dequeue and the final weight; unset if the step is illegal.
std::optional<Values> expected(const Calls& first, const Calls& second) {
  const auto a = collectives(first);
  const auto b = collectives(second);
  if (!a || !b || *a != *b) return {};
  Values seen;
  float weight = 0;
  for (const std::string& collective : *a) {
    if (collective[0] == 'D') {
      seen.push_back(weight);
    } else {
      weight -= kGradients[0] + kGradients[1];
    }
  }
  seen.push_back(weight);
  return seen;
}

Calls nth_calls(int n, int length) {
  Calls out;
  for (int i = 0; i < length; ++i) out += "TIDA"[n >> (2 * i) & 3];
  return out;
}

void explore(Pair& pair, const Calls& first, const Calls& second) {
  const std::string what = str("'", first, "' and '", second, "'");
  const std::optional<Values> good = expected(first, second);
  pair.reset();
  std::vector<Values> seen;
  try {
    seen = pair.step(PerReplica<Calls>({first, second}));
    ASSERT_TRUE(good) << what << " went through";
  } catch (const RuntimeError& error) {
    ASSERT_FALSE(good) << what << " failed: " << error.what();
    return;
  }
  seen[0].push_back(pair.weight());
  seen[1].push_back(pair.weight());
  ASSERT_EQ(seen[0], *good) << what;
  ASSERT_EQ(seen[1], *good) << what;
  // A failed run drops the batches that were not dequeued. Otherwise the next step would use them.
  EXPECT_THROW(pair.strategy.run([] { throw std::logic_error("forget them"); }), std::logic_error);
}

struct Lengths {
  int first = 0, second = 0;
};
void PrintTo(const Lengths& l, std::ostream* out) { *out << l.first << "_and_" << l.second; }

class TPUEmbeddingOrderTest : public testing::TestWithParam<Lengths> {};

TEST_P(TPUEmbeddingOrderTest, EveryOrderOfCallsGivesCorrectResultsOrAnError) {
  const auto [first, second] = GetParam();
  const Quiet quiet;
  Pair pair;
  for (int a = 0; a < 1 << (2 * first); ++a) {
    for (int b = 0; b < 1 << (2 * second); ++b) {
      explore(pair, nth_calls(a, first), nth_calls(b, second));
      if (HasFatalFailure()) return;
    }
  }
  // After any failure, a legal step gives the right results.
  pair.reset();
  EXPECT_EQ(pair.step(PerReplica<Calls>({"TDATD", "TDATD"}))[1], (Values{0, -3}));
}

std::vector<Lengths> lengths_up_to(int total) {
  std::vector<Lengths> out;
  for (int a = 0; a <= total; ++a) {
    for (int b = 0; a + b <= total; ++b) out.push_back({a, b});
  }
  return out;
}

INSTANTIATE_TEST_SUITE_P(UpToSixCalls, TPUEmbeddingOrderTest, testing::ValuesIn(lengths_up_to(6)),
                         testing::PrintToStringParamName());

// After a failure, batches in flight are dropped, and a legal step gives the right results.
void expect_usable(Pair& pair) {
  EXPECT_THROW(pair.strategy.run([&] { pair.embedding->dequeue(); }), RuntimeError);
  EXPECT_THROW(pair.strategy.run([&] { pair.embedding->apply_gradients({{"f", Gradient()}}); }),
               RuntimeError);
  pair.reset();
  EXPECT_EQ(pair.step(PerReplica<Calls>({"TDATD", "TDATD"}))[0].size(), 2u);
  pair.embedding->tracked()->state_entries();
}

class TPUEmbeddingFailureTest : public testing::TestWithParam<bool> {};

TEST_P(TPUEmbeddingFailureTest, AReplicaMayThrowBetweenAnyTwoCalls) {
  const Quiet quiet;
  for (int phase = 0; phase <= 4; ++phase) {
    Pair pair(GetParam());
    const Calls calls = "TDAT";
    EXPECT_THROW(pair.strategy.run(
                     [&](const Tensors& x) {
                       Values seen;
                       for (int i = 0; i <= 4; ++i) {
                         if (i == phase && this_replica() == 1) throw std::out_of_range("mine");
                         if (i == 4) break;
                         if (calls[i] == 'T') {
                           pair.embedding->enqueue(x);
                         } else {
                           pair.call(calls[i], seen);
                         }
                       }
                     },
                     for_all(feature(), pair.strategy)),
                 std::out_of_range)
        << phase;
    expect_usable(pair);
  }
}

TEST_P(TPUEmbeddingFailureTest, ACallMissingInOneReplicaIsAnError) {
  const Quiet quiet;
  for (const auto& [first, second] : std::vector<std::pair<Calls, Calls>>{{"TDA", "TD"},
                                                                          {"TD", "TDA"},
                                                                          {"TD", "T"},
                                                                          {"T", "TD"},
                                                                          {"TDATDA", "TDATD"},
                                                                          {"TD", ""}}) {
    Pair pair(GetParam());
    EXPECT_THROW(pair.step(PerReplica<Calls>({first, second})), RuntimeError)
        << first << " and " << second;
    expect_usable(pair);
  }
}

TEST_P(TPUEmbeddingFailureTest, AFailedStepDropsBatchesEnqueuedOutside) {
  const Quiet quiet;
  Pair pair(GetParam());
  for (int i = 0; i < 3; ++i) pair.embedding->enqueue(for_all(feature(), pair.strategy));
  EXPECT_THROW(pair.strategy.run([&] {
    pair.embedding->dequeue();
    throw std::out_of_range("mine");
  }),
               std::out_of_range);
  pair.embedding->enqueue(for_all(feature(), pair.strategy), {.training = false});
  pair.strategy.run([&] { pair.embedding->dequeue(); });
  expect_usable(pair);
}

INSTANTIATE_TEST_SUITE_P(Pipelined, TPUEmbeddingFailureTest, testing::Bool(),
                         testing::PrintToStringParamName());

TEST(TPUEmbeddingReplicasTest, ReplicasMustUseTheSameBatch) {
  const Quiet quiet;
  Pair pair;
  EXPECT_THAT(message_of<RuntimeError>([&] { pair.step(PerReplica<Calls>({"TD", "ID"})); }),
              HasSubstr("batch 0"));
  EXPECT_THROW(pair.strategy.run(
                   [&](const Tensors& x) {
                     const std::string name = this_replica() == 0 ? "a" : "b";
                     pair.embedding->enqueue(x, {.name = name});
                     pair.embedding->dequeue(name);
                   },
                   for_all(feature(), pair.strategy)),
               RuntimeError);
  expect_usable(pair);
}

TEST(TPUEmbeddingReplicasTest, AHostThreadMayEnqueueWhileStepsRun) {
  Pair pair;
  constexpr int kSteps = 50;
  pair.embedding->enqueue(for_all(feature(), pair.strategy));
  std::atomic<int> enqueued = 1;
  std::jthread host([&] {
    for (int i = 1; i < kSteps; ++i) {
      pair.embedding->enqueue(for_all(feature(), pair.strategy));
      ++enqueued;
      enqueued.notify_one();
    }
  });
  Values seen;
  for (int i = 0; i < kSteps; ++i) {
    for (int n = enqueued; n <= i; n = enqueued) enqueued.wait(n);
    pair.strategy.run([&] {
      Values mine;
      pair.call('D', mine);
      pair.call('A', mine);
      if (this_replica() == 0) seen.push_back(mine[0]);
    });
  }
  for (int i = 0; i < kSteps; ++i) EXPECT_EQ(seen[i], -3 * i);
}

}  // namespace keel::mid_level::tpu_embedding_order_test
