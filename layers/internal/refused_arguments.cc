#include <keel/layers/internal/refused_arguments.h>

namespace keel {

const std::vector<RefusedArgument>& refused_arguments() {
  static const std::string kWeights =
      "initial values are not a part of a layer; assign them to its weights after it is built";
  static const std::string kLora = "for Dense and EinsumDense; freeze the table instead";
  static const std::string kBatchShape = "pass batch_shape, which includes the batch";
  static const std::vector<RefusedArgument> kRefused = {
      {"Bidirectional", "weights", kWeights},
      {"EinsumDense", "gptq_unpacked_column_size",
       "GPTQ needs calibration data; quantize with int8 or int4"},
      {"Embedding", "lora_alpha", kLora},
      {"Embedding", "lora_rank", kLora},
      {"Embedding", "weights", kWeights},
      {"InputLayer", "batch_size", kBatchShape},
      {"InputLayer", "input_tensor", "a graph begins with its own tensors; call the model instead"},
      {"InputLayer", "optional", "an input cannot be left out; pass a tensor of zeros"},
      {"InputLayer", "shape", kBatchShape},
  };
  return kRefused;
}

std::string why_refused(const std::string& class_name, const std::string& argument) {
  for (const RefusedArgument& refused : refused_arguments()) {
    if (refused.class_name == class_name && refused.argument == argument) return refused.why;
  }
  return {};
}

}  // namespace keel
