// A two-tower model as a user-defined class with sublayers as members and the function call().
#include <iostream>

#include <keel/autodiff/ops.h>
#include <keel/layers/core/dense.h>
#include <keel/layers/training/model.h>
#include <keel/optimizers/adam.h>

using namespace keel;
using layers::Dense;

class TwoTower final : public Model {
 public:
  explicit TwoTower(int64_t units) : Model("TwoTower"), units_(units) {}

 private:
  Tensors call(const Tensors& inputs, const CallContext&) override {
    const Tensor user = user_out_(user_in_(inputs["user"].tensor()));
    const Tensor item = item_out_(item_in_(inputs["item"].tensor()));
    return score_(user * item);
  }

  const int64_t units_;
  Dense user_in_ = track(Dense({.units = 2 * units_, .activation = "relu"}));
  Dense user_out_ = track(Dense({.units = units_}));
  Dense item_in_ = track(Dense({.units = 2 * units_, .activation = "relu"}));
  Dense item_out_ = track(Dense({.units = units_}));
  Dense score_ = track(Dense({.units = 1, .activation = "sigmoid"}));
};

int main() {
  const auto model = make_layer<TwoTower>(8);
  // The label depends on whether user and item match, so only the product of the towers predicts
  // it.
  const Tensors x = {{"user", Tensor::from<float>({1, 0, 0, 1, 1, 0, 0, 1}, {4, 2})},
                     {"item", Tensor::from<float>({1, 0, 1, 0, 0, 1, 0, 1}, {4, 2})}};
  const Tensor y = Tensor::from<float>({1, 0, 0, 1}, {4, 1});
  model->compile({.optimizer = optimizers::Adam({.learning_rate = 0.02}),
                  .loss = "binary_crossentropy",
                  .metrics = {"binary_accuracy"}});
  model->fit(x, y, {.epochs = 60, .batch_size = 4, .verbose = Verbose::kSilent});
  for (const auto& [name, value] : model->evaluate(x, y, {.verbose = Verbose::kSilent})) {
    std::cout << name << ' ' << value << '\n';
  }
  return std::cout.flush() ? 0 : 1;  // a full disk is an error
}
