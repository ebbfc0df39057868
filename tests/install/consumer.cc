// Proves that an installed Keel can be found, compiled against, linked and run.
#include <iostream>

#include <keel/keel.h>

int main() {
  using namespace keel;
  Sequential model({.layers = {layers::Dense({.units = 2, .kernel_initializer = "ones"})}});
  const Tensor y = model(Tensor::from<float>({1, 2, 3}, {1, 3}));
  std::cout << y << '\n';
  const CtrSchema schema =
      parse_ctr_schema(R"({"label": "y", "numeric": ["x"], "categorical": []})");
  const CtrFeatures features(schema, {{"x", Tensor::from<float>({1, 2}, {2})}});
  std::cout << "Keel " << KEEL_VERSION << ", " << make_ctr_model(features).model->name() << '\n';
  return y.to_vector<float>() == std::vector<float>{6, 6} ? 0 : 1;
}
