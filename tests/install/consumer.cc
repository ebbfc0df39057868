// Proves that an installed Keel can be found, compiled against, linked and run, and that its
// headers are sufficient to derive optimizers and recurrent cells.
#include <iostream>
#include <memory>
#include <vector>

#include <keel/keel.h>

namespace {

using namespace keel;

// Steps by the sign of the gradient: w -= lr sign(g).
class SignRule final : public UpdateRule {
 public:
  void update(float* w, const float* g, float* const*, int64_t n, const Step& step) const override {
    update_all(w, g, n, step);
  }
  void update(double* w, const double* g, double* const*, int64_t n,
              const Step& step) const override {
    update_all(w, g, n, step);
  }

 private:
  template <class T>
  static void update_all(T* w, const T* g, int64_t n, const Step& step) {
    const T rate = static_cast<T>(step.learning_rate);
    for (int64_t i = 0; i < n; ++i) w[i] -= rate * static_cast<T>((g[i] > 0) - (g[i] < 0));
  }
};

struct SignOptions : OptimizerOptions {
  static constexpr void fields(auto& self, auto&& field) { optimizer_fields(self, field); }
  void check(const char* /*caller*/) const {}
  std::shared_ptr<const UpdateRule> rule() const { return std::make_shared<const SignRule>(); }
};
using Sign = Handle<RuleOptimizer<"Consumer>Sign", SignOptions>>;

// Trains one step on a loss whose gradients are 2, 0 and -3.
bool optimizer_steps_by_the_sign() {
  SignOptions options;
  options.learning_rate = 0.5;
  const Sign optimizer(options);
  const Variable w(Tensor::from<float>({1, 1, 1}, {3}), {.name = "w"});
  GradientTape tape;
  const Tensor loss = ops::sum(w.read() * Tensor::from<float>({2, 0, -3}, {3}));
  optimizer->apply_gradients(tape.gradient(loss, {w}), {w});
  return w.read().to_vector<float>() == std::vector<float>{0.5F, 1, 1.5F};
}

struct DecayOptions : RecurrentCellSettings {
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};
};

// A cell whose output is x . kernel + bias + h . recurrent_kernel, without an activation.
class DecayCell final : public RecurrentCell {
 public:
  explicit DecayCell(DecayOptions options) : RecurrentCell("DecayCell", options) {}

  Step make_step(const Masks& masks) const override {
    return
        [masks, kernels = recurrent_kernels(masks)](const Tensor& projected, const States& states) {
          return States{projected + recur(states[0], kernels, masks)};
        };
  }

 private:
  int gates() const override { return 1; }
};

struct DecayLayerOptions {
  bool return_sequences = true, return_state = false, go_backwards = false, stateful = false,
       zero_output_for_mask = false;
  Regularizer activity_regularizer = {};
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};
};

class DecayLayer final : public RecurrentLayer {
 public:
  DecayLayer(DecayLayerOptions options, const LayerHandle<RecurrentCell>& cell)
      : RecurrentLayer("DecayLayer", options, cell) {}
};

// With kernel 1 and recurrent kernel 1 / 2, the outputs for 1, 2, 4 are 1, 2.5 and 5.25.
bool cell_runs_in_a_recurrent_layer() {
  DecayOptions options;
  options.units = 1;
  options.kernel_initializer = "ones";
  options.recurrent_initializer = initializers::constant(0.5);
  const auto layer = make_layer<DecayLayer>(DecayLayerOptions{}, make_layer<DecayCell>(options));
  const Tensor y = layer(Tensor::from<float>({1, 2, 4}, {1, 3, 1}));
  return y.to_vector<float>() == std::vector<float>{1, 2.5F, 5.25F};
}

}  // namespace

int main() {
  Sequential model({.layers = {layers::Dense({.units = 2, .kernel_initializer = "ones"})}});
  const Tensor y = model(Tensor::from<float>({1, 2, 3}, {1, 3}));
  std::cout << y << '\n';
  const CtrSchema schema =
      parse_ctr_schema(R"({"label": "y", "numeric": ["x"], "categorical": []})");
  const CtrFeatures features(schema, {{"x", Tensor::from<float>({1, 2}, {2})}});
  std::cout << "Keel " << KEEL_VERSION << ", " << make_ctr_model(features).model->name() << '\n';
  if (y.to_vector<float>() != std::vector<float>{6, 6}) return 1;
  if (!optimizer_steps_by_the_sign()) return 2;
  return cell_runs_in_a_recurrent_layer() ? 0 : 3;
}
