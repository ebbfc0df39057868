#include <algorithm>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>
#include <keel/layers/attention/attention.h>
#include <keel/layers/attention/grouped_query_attention.h>
#include <keel/layers/attention/multi_head_attention.h>
#include <keel/layers/core/reversible_embedding.h>
#include <keel/layers/layer_types.h>
#include <keel/layers/normalization/normalization.h>
#include <keel/layers/preprocessing/lookup.h>
#include <keel/layers/preprocessing/preprocessing.h>
#include <keel/layers/preprocessing/text_vectorization.h>
#include <keel/layers/registry.h>

#include "tests/conformance/golden_arrays.h"
#include "tests/conformance/golden_sections.h"

namespace keel::conformance {
namespace {

// The call arguments of a record: its inputs (a list if there are several) and options.
struct Call {
  std::vector<Tensor> watched;  // the inputs, in the record's order
  Tensors inputs = {};
  bool training = false;
  bool reverse = false;  // ReversibleEmbedding only
  // Attention layers only:
  std::optional<bool> use_causal_mask = {}, return_attention_scores = {};
  Tensor attention_mask = {};
};

// Reads null, an array, or a list with one array for each input, starting with the first.
std::vector<Tensor> one_or_more(const Config* found) {
  if (found == nullptr) return {};
  return found->is_list() ? golden_tensors(*found) : std::vector<Tensor>{golden_tensor(*found)};
}

std::optional<bool> optional_boolean(Fields& fields, const std::string& key) {
  const Config* found = fields.find(key);
  return found == nullptr ? std::nullopt : std::optional<bool>(found->boolean());
}

Call call_of(Fields& fields) {
  Call out = {.watched = golden_tensors(fields.need("inputs"))};
  out.training = fields.boolean("training", false);
  std::vector<Tensor> tensors = out.watched;
  if (const Config* found = fields.find("call_kwargs")) {
    Fields options(*found, "call_kwargs");
    const std::vector<Tensor> masks = one_or_more(options.find("mask"));
    if (masks.size() > tensors.size()) throw ValueError("call_kwargs: more masks than inputs");
    for (size_t i = 0; i < masks.size(); ++i) tensors[i] = tensors[i].with_mask(masks[i]);
    for (const char* more : {"initial_state", "count_weights"}) {
      for (const Tensor& input : one_or_more(options.find(more))) tensors.push_back(input);
    }
    if (const Config* mask = options.find("attention_mask")) {
      out.attention_mask = golden_tensor(*mask);
    }
    out.training = options.boolean("training", out.training);
    out.use_causal_mask = optional_boolean(options, "use_causal_mask");
    out.return_attention_scores = optional_boolean(options, "return_attention_scores");
    out.reverse = options.boolean("reverse", false);
    options.finish();
  }
  out.inputs = Tensors::list(Tensors::Items(tensors.begin(), tensors.end()));
  if (tensors.size() == 1) out.inputs = tensors[0];
  return out;
}

// Calls an attention layer of a class with several heads, or returns nothing if it is of another
// class.
template <class T>
std::optional<Tensors> run_heads(Layer& layer, const Call& call) {
  auto* attention = dynamic_cast<T*>(&layer);
  if (attention == nullptr) return {};
  return (*attention)(call.inputs,
                      {.training = call.training,
                       .attention_mask = call.attention_mask,
                       .return_attention_scores = call.return_attention_scores.value_or(false),
                       .use_causal_mask = call.use_causal_mask.value_or(false)});
}

Tensors run(const LayerHandle<Layer>& layer, const Call& call) {
  if (call.reverse) {
    auto* embedding = dynamic_cast<ReversibleEmbeddingLayer*>(&*layer);
    if (embedding == nullptr) throw ValueError("call_kwargs: the layer does not take 'reverse'");
    return (*embedding)(call.inputs, {.training = call.training, .reverse = true});
  }
  if (!call.use_causal_mask && !call.return_attention_scores && !call.attention_mask) {
    return layer(call.inputs, {.training = call.training});
  }
  if (const auto out = run_heads<MultiHeadAttentionLayer>(*layer, call)) return *out;
  if (const auto out = run_heads<GroupedQueryAttentionLayer>(*layer, call)) return *out;
  auto* attention = dynamic_cast<AttentionBase*>(&*layer);
  if (attention == nullptr || call.attention_mask) {
    throw ValueError("call_kwargs: the layer does not take these arguments");
  }
  return (*attention)(call.inputs,
                      {.training = call.training,
                       .return_attention_scores = call.return_attention_scores.value_or(false),
                       .use_causal_mask = call.use_causal_mask.value_or(false)});
}

Config vocabulary_of(const std::vector<std::string>& words) { return encode(words); }
Config vocabulary_of(const std::vector<int64_t>& words) { return encode(words); }

// Adapts a layer with a vocabulary, or returns false if it is of another class.
template <class T>
bool adapt_vocabulary(Layer& layer, const Config& data, Fields& fields, Comparison& result) {
  auto* lookup = dynamic_cast<T*>(&layer);
  if (lookup == nullptr) return false;
  lookup->adapt(golden_tensor(data));
  const Config& expected = fields.need("vocabulary_after_adapt");
  const Config got = vocabulary_of(lookup->get_vocabulary());
  if (got != expected) result.report("vocabulary", to_json(expected), to_json(got));
  return true;
}

// Calls adapt() if the record has data for it, and compares what the layer has learned. Returns
// false if there is no data.
bool adapt(Layer& layer, Fields& fields, Comparison& result) {
  const Config* data = fields.find("adapt_data");
  if (data == nullptr) return false;
  if (auto* normalization = dynamic_cast<NormalizationLayer*>(&layer)) {
    normalization->adapt(golden_tensor(*data));
    for (const char* name : {"mean", "variance"}) {
      const Config& expected = fields.need(str(name, "_after_adapt"));
      for (const Variable& weight : layer.weights()) {
        if (weight.name() != name) continue;
        result.compare(name, golden_array(expected), array_of(weight.read()));
      }
    }
  } else if (auto* discretization = dynamic_cast<DiscretizationLayer*>(&layer)) {
    discretization->adapt(golden_tensor(*data));
    const Array expected = array_of(fields.need("bin_boundaries_after_adapt"));
    result.compare("bin boundaries", expected,
                   {.shape = expected.shape, .values = discretization->bin_boundaries()});
  } else if (!adapt_vocabulary<StringLookupLayer>(layer, *data, fields, result) &&
             !adapt_vocabulary<IntegerLookupLayer>(layer, *data, fields, result) &&
             !adapt_vocabulary<TextVectorizationLayer>(layer, *data, fields, result)) {
    throw ValueError("adapt_data: the layer has no adapt()");
  }
  return true;
}

// Returns the weights in Keras's order: the layer's own weights, trainable ones first, then those
// of each sublayer. Weights that the layer shares with sublayers count as its own.
std::vector<Variable> weights_of(const Layer& layer) {
  std::vector<Variable> out;
  if (const auto* shares = dynamic_cast<const SharedWeights*>(&layer)) {
    out = shares->shared_weights();
  }
  std::vector<Variable> inside;
  for (const auto& part : layer.sublayers()) {
    for (const Variable& v : weights_of(*part)) {
      if (std::ranges::find(inside, v) != inside.end()) continue;
      if (std::ranges::find(out, v) == out.end()) inside.push_back(v);
    }
  }
  const std::vector<Variable> shared = out;
  for (const Variable& v : layer.weights()) {
    if (std::ranges::find(inside, v) != inside.end()) continue;
    if (std::ranges::find(shared, v) == shared.end()) out.push_back(v);
  }
  out.insert(out.end(), inside.begin(), inside.end());
  return out;
}

// Sets the layer's weights. Returns false and reports why if the record's arrays do not match them.
bool set_weights(const Config& expected, const std::vector<Variable>& weights, Comparison& result) {
  const std::vector<Tensor> values = golden_tensors(expected);
  if (values.size() != weights.size()) {
    result.compare("number of weights", static_cast<int64_t>(values.size()),
                   static_cast<int64_t>(weights.size()));
    return false;
  }
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i].shape() != weights[i].shape()) {
      result.report("shape of weight " + weights[i].path(), str(values[i].shape()),
                    str(weights[i].shape()));
      return false;
    }
    weights[i].assign(values[i].cast(weights[i].dtype()));
  }
  return true;
}

// Returns the arrays of one array or of a list, whose items may be lists.
std::vector<Config> list_of(const Config& one_or_more) {
  if (!one_or_more.is_list()) return {one_or_more};
  std::vector<Config> out;
  for (const Config& item : one_or_more.items()) {
    const std::vector<Config> inside = list_of(item);
    out.insert(out.end(), inside.begin(), inside.end());
  }
  return out;
}

// Compares gradients if the record has them. An absent gradient counts as zeros.
void compare_gradients(const std::string& what, const Config& expected,
                       const std::vector<Gradient>& gradients, Comparison& result) {
  result.compare("number of " + what, static_cast<int64_t>(expected.items().size()),
                 static_cast<int64_t>(gradients.size()));
  for (size_t i = 0; i < std::min(expected.items().size(), gradients.size()); ++i) {
    const Config& item = expected.items()[i];
    if (item.is_null()) continue;
    const Array wanted = golden_array(item);
    Array got = {.shape = wanted.shape, .values = std::vector<double>(wanted.values.size(), 0)};
    if (gradients[i]) got = array_of(gradients[i].dense());
    result.compare(what + " " + std::to_string(i), wanted, got);
  }
}

void compare_strings(const std::string& what, const Tensor& expected, const Tensor& got,
                     Comparison& result) {
  if (expected.dtype() == DType::kString && expected.shape() == got.shape() &&
      std::ranges::equal(expected.data<std::string>(), got.data<std::string>())) {
    return;
  }
  result.report(what, str(expected), str(got));
}

void compare_outputs(const Config& expected, const std::vector<TensorLike>& outputs,
                     Comparison& result) {
  const std::vector<Config> wanted = list_of(expected);
  result.compare("number of outputs", static_cast<int64_t>(wanted.size()),
                 static_cast<int64_t>(outputs.size()));
  for (size_t i = 0; i < std::min(wanted.size(), outputs.size()); ++i) {
    const std::string what = wanted.size() == 1 ? "output" : "output " + std::to_string(i);
    const Tensor& got = outputs[i].tensor();
    if (got.dtype() == DType::kString) {
      compare_strings(what, golden_tensor(wanted[i]), got, result);
    } else {
      result.compare(what, golden_array(wanted[i]), array_of(got));
    }
  }
}

// Returns the sum over all outputs of sum(output * coef).
Tensor weighted_sum(const std::vector<TensorLike>& outputs, const Config& coefficients) {
  const std::vector<Config> coefs = list_of(coefficients);
  if (coefs.size() != outputs.size()) throw ValueError("coef must be one for each output");
  Tensor out;
  for (size_t i = 0; i < coefs.size(); ++i) {
    if (coefs[i].is_null()) continue;
    const Tensor sum = ops::sum(outputs[i].tensor() * golden_tensor(coefs[i]));
    out = out ? out + sum : sum;
  }
  return out;
}

}  // namespace

void replay_layer(Fields& fields, Comparison& result) {
  fields.find("tag");
  const LayerHandle<Layer> layer = layers::deserialize(class_and_config(fields));
  const Call call = call_of(fields);
  const Config &weight_values = fields.need("weights"), &output = fields.need("output");
  const Config* coef = fields.find("coef");
  const Config* grad_inputs = fields.find("grad_inputs");
  const Config* grad_weights = fields.find("grad_weights");
  const Config* weights_after = fields.find("weights_after");

  // Records do not list the weights that adapt() sets.
  std::vector<Variable> weights;
  if (!adapt(*layer, fields, result)) {
    layer->build(specs_of(call.inputs));
    weights = weights_of(*layer);
    if (!set_weights(weight_values, weights, result)) return;
  }
  GradientTape tape({.persistent = true});
  for (const Tensor& x : call.watched) {
    if (is_floating(x.dtype())) tape.watch(x);
  }
  const std::vector<TensorLike> outputs = flatten(run(layer, call));
  compare_outputs(output, outputs, result);
  if (coef != nullptr) {
    const Tensor target = weighted_sum(outputs, *coef);
    if (grad_inputs != nullptr) {
      compare_gradients("gradient of input", *grad_inputs,
                        tape.input_gradient(target, call.watched), result);
    }
    if (grad_weights != nullptr && !weights.empty()) {
      compare_gradients("gradient of weight", *grad_weights, tape.gradient(target, weights),
                        result);
    }
  }
  if (weights_after == nullptr) return;
  for (size_t i = 0; i < weights.size(); ++i) {
    result.compare("after the call, weight " + weights[i].path(),
                   golden_array(weights_after->items().at(i)), array_of(weights[i].read()));
  }
}

}  // namespace keel::conformance
