#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <algorithm>
#include <map>

#include <keel/autodiff/internal/autocast.h>
#include <keel/autodiff/operation.h>
#include <keel/autodiff/ops.h>
#include <keel/autodiff/ops/ops_internal.h>
#include <keel/autodiff/tape.h>

namespace keel {
namespace {

// One label for each axis of the operands and of the result.
struct Equation {
  std::string a, b, out;

  std::string text() const { return a + "," + b + "->" + out; }
};

bool has(const std::string& labels, char label) { return absl::StrContains(labels, label); }

// Returns the labels of `from` for which keep(label) is true.
template <class Keep>
std::string filtered(const std::string& from, const Keep& keep) {
  std::string out;
  std::ranges::copy_if(from, std::back_inserter(out), keep);
  return out;
}

// Sums products over the labels that the result does not have.
class Einsum final : public Op {
 public:
  explicit Einsum(Equation equation)
      : Op("Einsum"), equation_(std::move(equation)), operands_(AutocastScope::operands()) {}

  std::vector<TensorSpec> infer(std::span<const TensorSpec> in) const override {
    ops::internal::check_floating("einsum", in[0]);
    ops::internal::check_same_dtype("einsum", in[0], in[1]);
    return {{.shape = result_shape(in[0].shape, in[1].shape), .dtype = in[0].dtype}};
  }

  // Computes one batched matrix product, whose batch axes are the labels common to both operands
  // and the result.
  std::vector<Tensor> compute(std::span<const Tensor> in) const override {
    const SuspendRecording parts;
    const AutocastScope products(operands_);
    const auto& [a, b, out] = equation_;
    const std::string batch = filtered(out, [&](char l) { return has(a, l) && has(b, l); });
    const std::string rows = filtered(out, [&](char l) { return !has(b, l); });
    const std::string columns = filtered(out, [&](char l) { return !has(a, l); });
    const std::string inner = filtered(b, [&](char l) { return has(a, l) && !has(out, l); });
    const Tensor x = summed(in[0], a, batch + rows + inner);
    const Tensor y = summed(in[1], b, batch + inner + columns);
    const int first = static_cast<int>(batch.size());
    const auto size = [&](const Tensor& t, size_t begin, size_t count) {
      const int from = static_cast<int>(begin);
      return t.shape().slice(from, from + static_cast<int>(count)).size();
    };
    const int64_t blocks = size(x, 0, batch.size());
    const int64_t depth = size(y, first, inner.size());
    const int64_t m = size(x, first, rows.size());
    const int64_t n = size(y, first + inner.size(), columns.size());
    Tensor z =
        ops::matmul(ops::reshape(x, {blocks, m, depth}), ops::reshape(y, {blocks, depth, n}));
    z = ops::reshape(z, x.shape().slice(0, first + static_cast<int>(rows.size())) +
                            y.shape().slice(first + static_cast<int>(inner.size()), y.rank()));
    return {in_order(z, batch + rows + columns, out)};
  }

  std::vector<Gradient> vjp(const VjpArgs& args) const override {
    const AutocastScope products(operands_);
    const auto& [a, b, out] = equation_;
    const Tensor dy = args.output_gradients[0].dense();
    std::vector<Gradient> gradients(2);
    if (args.wants(0)) gradients[0] = gradient(dy, args.inputs[1], b, args.input_specs[0].shape, a);
    if (args.wants(1)) gradients[1] = gradient(dy, args.inputs[0], a, args.input_specs[1].shape, b);
    return gradients;
  }
  Retain retain() const override { return {.inputs = 3, .outputs = 0}; }

 private:
  Shape result_shape(const Shape& a, const Shape& b) const {
    std::map<char, int64_t> dims;
    const auto add = [&](const std::string& labels, const Shape& shape) {
      for (int i = 0; i < shape.rank(); ++i) {
        int64_t& dim = dims.try_emplace(labels[i], shape[i]).first->second;
        if (dim == kUnknown) dim = shape[i];
        if (shape[i] != kUnknown && shape[i] != dim) {
          throw ValueError("einsum: shapes ", a, " and ", b, " do not match the equation ",
                           equation_.text(), "; axes with one letter must have one length");
        }
      }
    };
    add(equation_.a, a);
    add(equation_.b, b);
    Shape out;
    for (char label : equation_.out) out = out.inserted(out.rank(), dims.at(label));
    return out;
  }

  static Tensor in_order(const Tensor& x, const std::string& labels, const std::string& wanted) {
    if (labels == wanted) return x;
    std::vector<int> permutation;
    for (char label : wanted) permutation.push_back(static_cast<int>(labels.find(label)));
    return ops::transpose(x, permutation);
  }

  // Returns x summed over the axes that are not in `wanted`, with the others in that order.
  static Tensor summed(const Tensor& x, const std::string& labels, const std::string& wanted) {
    std::vector<int> rest;
    for (size_t i = 0; i < labels.size(); ++i) {
      if (!has(wanted, labels[i])) rest.push_back(static_cast<int>(i));
    }
    const std::string kept = filtered(labels, [&](char l) { return has(wanted, l); });
    return in_order(rest.empty() ? x : ops::sum(x, rest), kept, wanted);
  }

  // Returns the gradient of the operand with `labels`. Axes that only this operand has and that
  // were summed over get the same gradient at every position.
  Tensor gradient(const Tensor& dy, const Tensor& other, const std::string& other_labels,
                  const Shape& shape, const std::string& labels) const {
    const std::string reached =
        filtered(labels, [&](char l) { return has(equation_.out, l) || has(other_labels, l); });
    Tensor dx = dispatch1(Einsum({equation_.out, other_labels, reached}), {dy, other});
    for (size_t i = 0; i < labels.size(); ++i) {
      if (!has(reached, labels[i])) dx = ops::expand_dims(dx, static_cast<int>(i));
    }
    return ops::broadcast_to(dx, shape);
  }

  const Equation equation_;
  const ProductOperands operands_;
};

[[noreturn]] void throw_invalid(const std::string& equation, const std::string& why) {
  throw ValueError("einsum: invalid equation \"", equation, "\": ", why,
                   "; pass one such as \"ab,bc->ac\"");
}

// Returns the labels of a term for a tensor of this rank. Digits stand for the axes of an ellipsis.
std::string expanded(const std::string& equation, std::string term, int rank) {
  const size_t dots = term.find("...");
  const int letters =
      static_cast<int>(std::ranges::count_if(term, [](char c) { return absl::ascii_isalpha(c); }));
  if (dots != std::string::npos) {
    const int elided = std::max(0, rank - letters);
    term = term.substr(0, dots) + std::string("01234567").substr(0, elided) + term.substr(dots + 3);
    if (static_cast<int>(term.size()) != letters + elided)
      throw_invalid(equation, "labels must be letters");
  } else if (static_cast<int>(term.size()) != letters) {
    throw_invalid(equation, "labels must be letters");
  }
  std::string sorted = term;
  std::ranges::sort(sorted);
  if (std::ranges::adjacent_find(sorted) != sorted.end()) {
    throw_invalid(equation, "a label is used twice in one term");
  }
  return term;
}

Equation parse(const std::string& equation, int rank_a, int rank_b) {
  const std::string text = filtered(equation, [](char c) { return !absl::ascii_isspace(c); });
  const size_t comma = text.find(','), arrow = text.find("->");
  if (comma == std::string::npos || arrow == std::string::npos || arrow < comma) {
    throw_invalid(equation, "expected two terms and a result");
  }
  Equation out = {.a = expanded(equation, text.substr(0, comma), rank_a),
                  .b = expanded(equation, text.substr(comma + 1, arrow - comma - 1), rank_b),
                  .out = {}};
  if (static_cast<int>(out.a.size()) != rank_a || static_cast<int>(out.b.size()) != rank_b) {
    throw_invalid(equation, absl::StrCat("the terms do not match operands of ranks ", rank_a,
                                         " and ", rank_b));
  }
  const auto digits = [](const std::string& labels) {
    return std::ranges::count_if(labels, [](char c) { return c >= '0' && c <= '7'; });
  };
  const auto elided = std::max(digits(out.a), digits(out.b));
  const std::string result = text.substr(arrow + 2);
  const auto letters = std::ranges::count_if(result, [](char c) { return absl::ascii_isalpha(c); });
  out.out = expanded(equation, result, static_cast<int>(letters + elided));
  for (char label : out.out) {
    if (!has(out.a, label) && !has(out.b, label)) {
      throw_invalid(equation, "the result has a label that neither operand has");
    }
  }
  return out;
}

}  // namespace

Tensor ops::einsum(const std::string& equation, const Tensor& a, const Tensor& b) {
  return dispatch1(Einsum(parse(equation, a.rank(), b.rank())), {a, b});
}

}  // namespace keel
