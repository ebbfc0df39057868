#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <algorithm>

#include <keel/layers/core/dense.h>
#include <keel/layers/core/internal/quantized_projection.h>
#include <keel/layers/internal/cast.h>
#include <keel/layers/registry.h>

namespace keel {
namespace {

bool all_letters(const std::string& term) {
  return !term.empty() && std::ranges::all_of(term, [](char c) { return absl::ascii_isalpha(c); });
}

// Returns the position of a letter in a term, or -1.
int position(const std::string& term, char letter) {
  const size_t at = term.find(letter);
  return at == std::string::npos ? -1 : static_cast<int>(at);
}

}  // namespace

Config encode(const PartialShape& shape) { return encode(shape.shape); }

void decode(const Config& config, PartialShape& shape) {
  if (config.is_list()) {
    decode(config, shape.shape);
  } else {
    shape = PartialShape(config.integer());
  }
}

EinsumDenseLayer::EinsumDenseLayer(Options options)
    : ProjectionLayer(kClassName, options),
      options_(std::move(options)),
      terms_(terms_of(options_.equation, caller())) {
  set_activity_regularizer(options_.activity_regularizer);
}

EinsumDenseLayer::Terms EinsumDenseLayer::terms_of(const std::string& equation,
                                                   const std::string& caller) {
  const auto fail = [&] {
    throw ValueError(caller, ": equation must be like \"ab,bc->ac\", \"...b,bc->...c\" or ",
                     "\"ab...,bc->ac...\", received \"", equation, "\"");
  };
  const size_t comma = equation.find(','), arrow = equation.find("->");
  if (comma == std::string::npos || arrow == std::string::npos || arrow < comma) fail();
  Terms out = {.input = equation.substr(0, comma),
               .kernel = equation.substr(comma + 1, arrow - comma - 1),
               .output = equation.substr(arrow + 2)};
  constexpr std::string_view kDots = "...";
  out.dots_first = out.input.starts_with(kDots) && out.output.starts_with(kDots);
  out.dots_last = !out.dots_first && out.input.ends_with(kDots) && out.output.ends_with(kDots);
  for (std::string* term : {&out.input, &out.output}) {
    if (out.dots_first) term->erase(0, kDots.size());
    if (out.dots_last) term->erase(term->size() - kDots.size());
  }
  if (!all_letters(out.input) || !all_letters(out.kernel) || !all_letters(out.output)) fail();
  return out;
}

Shape EinsumDenseLayer::lettered_output(const Shape& input) const {
  const int dots = input.rank() - static_cast<int>(terms_.input.size());
  if (dots < 0 || (dots > 0 && !terms_.dots_first && !terms_.dots_last)) {
    throw ValueError(caller(), ": ", options_.equation, " does not match an input of shape ", input,
                     "; name one letter for each axis of the input");
  }
  // If the dots come first, they include the batch.
  const bool has_batch = !terms_.dots_first || dots == 0;
  const Shape given = options_.output_shape.shape;
  Shape out = has_batch ? Shape{input[0]} + given : given;
  if (out.rank() != static_cast<int>(terms_.output.size())) {
    throw ValueError(caller(),
                     ": output_shape must have one dimension for each axis of the output except "
                     "the batch axis in ",
                     options_.equation, ", received ", given);
  }
  const int first = terms_.dots_first ? dots : 0;
  for (int i = 0; i < out.rank(); ++i) {
    const int at = position(terms_.input, terms_.output[i]);
    if (at < 0) continue;
    const int64_t dim = input[first + at];
    if (out[i] != kUnknown && dim != kUnknown && out[i] != dim) {
      throw ValueError(caller(), ": ", options_.equation, " and output_shape ", given,
                       " do not match an input of shape ", input,
                       "; a letter must have the same length in both");
    }
    if (out[i] == kUnknown) out = out.with(i, dim);
  }
  return out;
}

Shape EinsumDenseLayer::kernel_shape(const Shape& input, const Shape& output) const {
  const int first = terms_.dots_first ? input.rank() - static_cast<int>(terms_.input.size()) : 0;
  Shape out;
  for (char letter : terms_.kernel) {
    const int in_input = position(terms_.input, letter);
    const int in_output = position(terms_.output, letter);
    if (in_input < 0 && in_output < 0) {
      throw ValueError(caller(), ": '", letter, "' of the kernel is in neither the input nor the ",
                       "output of ", options_.equation, "; remove it, or add it to one of them");
    }
    out = out.inserted(out.rank(), in_input >= 0 ? input[first + in_input] : output[in_output]);
  }
  if (!out.fully_defined()) {
    throw ValueError(caller(), ": the kernel's shape ", out,
                     " must be known, received an input of ", "shape ", input);
  }
  return out;
}

Shape EinsumDenseLayer::bias_shape(const Shape& output, int dots) const {
  int first = output.rank();
  for (char letter : *options_.bias_axes) {
    const int at = position(terms_.output, letter);
    if (at < 0) {
      throw ValueError(caller(), ": '", letter, "' of bias_axes is not in the output of ",
                       options_.equation, "; use letters of the output");
    }
    first = std::min(first, at);
  }
  Shape out;
  for (int i = first; i < output.rank(); ++i) {
    const bool own = position(*options_.bias_axes, terms_.output[i]) >= 0;
    out = out.inserted(out.rank(), own ? output[i] : 1);
  }
  for (int i = 0; terms_.dots_last && i < dots; ++i) out = out.inserted(out.rank(), 1);
  if (!out.fully_defined()) {
    throw ValueError(caller(), ": the shape of the bias, ", out, ", must be known");
  }
  return out;
}

void EinsumDenseLayer::build_weights(const TensorSpec& input) {
  const Shape output = lettered_output(input.shape);
  const Shape kernel = kernel_shape(input.shape, output);
  const int dots = input.shape.rank() - static_cast<int>(terms_.input.size());
  const Shape bias = options_.bias_axes ? bias_shape(output, dots) : Shape{};
  build_projection(input.shape.rank(), kernel,
                   options_.bias_axes ? std::optional(bias) : std::nullopt);
}

Config EinsumDenseLayer::get_config() const {
  Config out = to_config(options_);
  add_projection_keys(out);
  return out;
}

ProjectionTerms EinsumDenseLayer::projection_terms(int input_rank) const {
  std::string dots;
  const std::string used = terms_.input + terms_.kernel + terms_.output;
  const auto count = static_cast<size_t>(input_rank) - terms_.input.size();
  for (char label = 'a'; dots.size() < count; label = label == 'z' ? 'A' : label + 1) {
    if (!absl::StrContains(used, label)) dots += label;
  }
  const auto with_dots = [&](const std::string& labels) {
    return terms_.dots_last ? labels + dots : dots + labels;
  };
  return {.input = with_dots(terms_.input),
          .kernel = terms_.kernel,
          .output = with_dots(terms_.output)};
}

Tensor EinsumDenseLayer::call(const Tensor& x, const CallContext&) {
  const Tensor input = as_dtype(x, dtype());
  Tensor y = is_quantized() ? quantized_product(input)
                            : ops::einsum(options_.equation, input, effective_kernel());
  if (bias()) y = y + bias();
  return options_.activation(y);
}

KEEL_REGISTER(Layer, EinsumDenseLayer, .package = "keras",
              .ignored_keys = "gptq_unpacked_column_size=null")

}  // namespace keel
