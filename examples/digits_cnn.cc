// A convolutional network that reads digits. It is trained with fit on generated images of 28 x 28
// pixels, which random augmentations move and turn, and predicts the same after a trip through a
// file of Keras.
//
//   digits_cnn [FILE]   FILE is digits.keras by default
#include <array>
#include <cmath>
#include <iostream>
#include <string>

#include <keel/keel.h>

using namespace keel;

namespace {

constexpr int64_t kSize = 28;
constexpr int64_t kPixels = kSize * kSize;

// The segments of each digit on a display of seven: upper, upper left, upper right, middle, lower
// left, lower right, lower.
constexpr std::array<const char*, 10> kSegments = {"1110111", "0010010", "1011101", "1011011",
                                                   "0111010", "1101011", "1101111", "1010010",
                                                   "1111111", "1111011"};
// The ends of each segment, in a box of width 1 and height 2: x and y of both.
constexpr double kEnds[7][4] = {{0, 0, 1, 0}, {0, 0, 0, 1}, {1, 0, 1, 1}, {0, 1, 1, 1},
                                {0, 1, 0, 2}, {1, 1, 1, 2}, {0, 2, 1, 2}};

double distance(double x, double y, const double* ends) {
  const double dx = ends[2] - ends[0], dy = ends[3] - ends[1];
  const double along = ((x - ends[0]) * dx + (y - ends[1]) * dy) / (dx * dx + dy * dy);
  const double t = std::clamp(along, 0.0, 1.0);
  return std::hypot(x - ends[0] - t * dx, y - ends[1] - t * dy);
}

// Draws a digit whose place, size, slant and strokes vary, on noise.
void draw(int digit, uint64_t seed, float* image) {
  std::array<float, 6> random;
  const RandomStream stream = {.seed = seed};
  stream.uniform(random, 0, 0, 1);
  const double scale = 6 + 3 * random[0], left = 8 + 4 * random[1], top = 3 + 4 * random[2];
  const double slant = 0.5 * (random[3] - 0.5), stroke = 1 + random[4];
  std::array<float, kPixels> noise;
  stream.normal(noise, 64, 0, 0.1F);
  for (int64_t row = 0; row < kSize; ++row) {
    for (int64_t column = 0; column < kSize; ++column) {
      const double y = (static_cast<double>(row) - top) / scale;
      const double x = (static_cast<double>(column) - left) / scale + slant * (y - 1);
      double nearest = 10;
      for (int s = 0; s < 7; ++s) {
        if (kSegments[digit][s] == '1') nearest = std::min(nearest, distance(x, y, kEnds[s]));
      }
      const double ink = std::clamp(stroke + 0.5 - nearest * scale, 0.0, 1.0);
      const int64_t pixel = row * kSize + column;
      image[pixel] = static_cast<float>(255 * std::clamp(ink + noise[pixel], 0.0, 1.0));
    }
  }
}

// Returns images [n, 28, 28, 1] with values in [0, 255], and their digits [n].
std::pair<Tensor, Tensor> digits(int64_t n, uint64_t seed) {
  Tensor images = Tensor::uninitialized({n, kSize, kSize, 1}, DType::kFloat32);
  std::vector<int64_t> labels;
  float* const pixels = images.mutable_data<float>().data();
  for (int64_t i = 0; i < n; ++i) {
    labels.push_back((i * 7 + i / 10) % 10);
    draw(static_cast<int>(labels.back()), seed + static_cast<uint64_t>(i), pixels + i * kPixels);
  }
  return {images, Tensor::from(labels, {n})};
}

data::Dataset batches(const std::pair<Tensor, Tensor>& samples) {
  return data::Dataset::from_tensor_slices(Tensors::tuple({samples.first, samples.second}))
      .shuffle(4096, {.seed = 1})
      .batch(64);
}

Functional make_model() {
  const Tensor input = layers::input({.shape = {kSize, kSize, 1}, .name = "image"});
  Tensor x = layers::Pipeline(
      {.layers = {layers::RandomRotation({.factor = 0.02, .seed = 1}),
                  layers::RandomTranslation(
                      {.height_factor = 0.07, .width_factor = 0.07, .seed = 2})}})(input);
  x = layers::Rescaling({.scale = 1.0 / 255})(x);
  x = layers::Conv2D({.filters = 16, .kernel_size = 3, .activation = "relu"})(x);
  x = layers::MaxPooling2D({})(x);
  x = layers::Conv2D({.filters = 32, .kernel_size = 3, .activation = "relu"})(x);
  x = layers::MaxPooling2D({})(x);
  x = layers::Flatten({})(x);
  x = layers::Dropout({.rate = 0.3, .seed = 3})(x);
  x = layers::Dense({.units = 10, .activation = "softmax"})(x);
  return Functional({.inputs = input, .outputs = x, .name = "digits"});
}

}  // namespace

int main(int argc, char** argv) {
  const std::string path = argc > 1 ? argv[1] : "digits.keras";
  set_random_seed(1);
  const Functional model = make_model();
  summary(*model);
  model->compile({.optimizer = optimizers::Adam({.learning_rate = 2e-3}),
                  .loss = "sparse_categorical_crossentropy",
                  .metrics = {"accuracy"}});
  model->fit(batches(digits(4000, 1'000'000)), {.epochs = 4});
  const auto test = digits(1000, 2'000'000);
  const auto results = model->evaluate(batches(test));
  std::cout << "test accuracy " << results.at("accuracy") << '\n';

  save_model(model, path);
  const ModelHandle loaded = load_model(path);
  const Tensor before = model(test.first), after = loaded(test.first);
  const bool same = before.to_vector<float>() == after.to_vector<float>();
  std::cout << "predictions after a trip through " << path << ": "
            << (same ? "the same bits" : "different") << '\n';
  return same && results.at("accuracy") >= 0.99 && std::cout.flush() ? 0 : 1;
}
