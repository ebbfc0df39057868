// An LSTM that classifies sentences of a made-up language, trained with fit, then saved and loaded.
#include <iostream>
#include <random>

#include <keel/layers/core/dense.h>
#include <keel/layers/core/embedding.h>
#include <keel/layers/functional/sequential.h>
#include <keel/layers/recurrent/lstm.h>
#include <keel/layers/wrappers/wrappers.h>
#include <keel/optimizers/adam.h>
#include <keel/savedmodel/saved_model.h>

using namespace keel;

// Word ids. 0 is padding.
constexpr int64_t kNot = 1, kBut = 2, kGood = 3, kBad = 23, kOther = 43, kWords = 200;
constexpr int64_t kLength = 16;

struct Sentences {
  Tensor words;   // int64 [rows, kLength]
  Tensor labels;  // float32 [rows, 1]
};

// Makes sentences of one clause, or of two joined by "but". A clause is good or bad by its
// adjective, or the opposite if "not" is the word before it. The last clause decides. The label
// thus depends on the order of the words.
Sentences make_sentences(int64_t rows, uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](int64_t n) { return static_cast<int64_t>(random() % n); };
  std::vector<int64_t> words;
  std::vector<float> labels;
  for (int64_t row = 0; row < rows; ++row) {
    std::vector<int64_t> sentence;
    bool good = false;
    const auto add_others = [&](int64_t count) {
      for (int64_t i = 0; i < count; ++i) sentence.push_back(kOther + below(kWords - kOther));
    };
    const auto add_clause = [&] {
      if (below(2) == 0) sentence.push_back(kNot);
      add_others(1 + below(3));
      const bool negated = below(2) == 0;
      if (negated) sentence.push_back(kNot);
      good = below(2) == 0;
      sentence.push_back((good ? kGood : kBad) + below(20));
      good = good != negated;
      add_others(below(2));
    };
    add_clause();
    if (below(2) == 0) {
      sentence.push_back(kBut);
      add_clause();
    }
    sentence.resize(kLength, 0);
    words.insert(words.end(), sentence.begin(), sentence.end());
    labels.push_back(good ? 1.0F : 0.0F);
  }
  return {.words = Tensor::from(words, {rows, kLength}), .labels = Tensor::from(labels, {rows, 1})};
}

int main() {
  set_random_seed(1);
  const layers::LSTM lstm({.units = 16, .dropout = 0.1});
  const Sequential model(
      {.layers = {layers::Embedding({.input_dim = kWords, .output_dim = 16, .mask_zero = true}),
                  layers::Bidirectional({.layer = lstm}),
                  layers::Dense({.units = 1, .activation = "sigmoid"})},
       .name = "text_classifier"});
  model->compile({.optimizer = optimizers::Adam({.learning_rate = 0.01}),
                  .loss = "binary_crossentropy",
                  .metrics = {"accuracy"}});
  const Sentences train = make_sentences(4000, 1), test = make_sentences(1000, 2);
  model->fit(train.words, train.labels, {.epochs = 8, .batch_size = 64});
  double accuracy = 0;
  for (const auto& [name, value] : model->evaluate(test.words, test.labels)) {
    std::cout << name << ' ' << value << '\n';
    if (name == "accuracy") accuracy = value;
  }

  const std::string path = "text_classifier.keras";
  save_model(model, path);
  const ModelHandle loaded = load_model(path);
  const bool same = loaded->predict(test.words).tensor().to_vector<float>() ==
                    model->predict(test.words).tensor().to_vector<float>();
  std::cout << "predictions after a trip through the file: " << (same ? "equal" : "different")
            << '\n';
  return std::cout.flush() && same && accuracy > 0.95 ? 0 : 1;
}
