#include <keel/autodiff/keras_ops/products.h>

#include <absl/strings/match.h>
#include <algorithm>
#include <numeric>

#include <keel/autodiff/keras_ops/elementwise.h>
#include <keel/autodiff/keras_ops/internal/function_op.h>
#include <keel/autodiff/keras_ops/reductions.h>
#include <keel/autodiff/keras_ops/shapes.h>
#include <keel/autodiff/ops.h>

namespace keel::keras_ops {
namespace {

// Multiplies matrices with equal leading axes. Integers are multiplied in float64, which is exact
// up to 2^53.
Tensor matrix_product(const Tensor& a, const Tensor& b) {
  if (is_floating(a.dtype())) return ops::matmul(a, b);
  const DType dtype = internal::countable(a).dtype();
  const DType wide = DType::kFloat64;
  return ops::cast(ops::matmul(ops::cast(a, wide), ops::cast(b, wide)), dtype);
}

// ---- einsum: each term is a list of labels, one for each axis.
struct Equation {
  std::vector<std::string> terms;
  std::string result;
};

// Labels of the axes of "...": the last one is the last of the ellipsis.
constexpr std::string_view kEllipsisLabels = "01234567";

std::string expand_ellipsis(const std::string& term, int rank) {
  const size_t at = term.find("...");
  if (at == std::string::npos) return term;
  const int count = rank - static_cast<int>(term.size() - 3);
  if (count < 0) {
    throw ValueError("einsum: the term '", term, "' has more axes than rank ", rank,
                     "; shorten the term");
  }
  const std::string labels(kEllipsisLabels.substr(kEllipsisLabels.size() - count));
  return term.substr(0, at) + labels + term.substr(at + 3);
}

Equation parse(std::string subscripts, const std::vector<Tensor>& operands) {
  std::erase(subscripts, ' ');
  const size_t arrow = subscripts.find("->");
  std::string left = subscripts.substr(0, arrow);
  Equation out;
  for (size_t begin = 0; begin <= left.size();) {
    const size_t end = std::min(left.find(',', begin), left.size());
    out.terms.push_back(left.substr(begin, end - begin));
    begin = end + 1;
  }
  if (out.terms.size() != operands.size()) {
    throw ValueError("einsum: '", subscripts, "' has ", out.terms.size(), " terms for ",
                     operands.size(),
                     " operands; write one term for each operand, separated by commas");
  }
  int most = 0;
  std::string labels;
  for (size_t i = 0; i < operands.size(); ++i) {
    const int rank = operands[i].rank();
    const bool has = absl::StrContains(out.terms[i], "...");
    if (has) most = std::max(most, rank - static_cast<int>(out.terms[i].size() - 3));
    out.terms[i] = expand_ellipsis(out.terms[i], rank);
    if (static_cast<int>(out.terms[i].size()) != rank) {
      throw ValueError("einsum: the term '", out.terms[i], "' does not match shape ",
                       operands[i].shape(), "; write one letter for each axis");
    }
    labels += out.terms[i];
  }
  if (arrow != std::string::npos) {
    const std::string result = subscripts.substr(arrow + 2);
    const bool has = absl::StrContains(result, "...");
    out.result = expand_ellipsis(result, static_cast<int>(result.size()) - (has ? 3 - most : 0));
    return out;
  }
  // Without "->", the result has the labels that occur once, in alphabetical order.
  std::ranges::sort(labels);
  for (const char label : labels) {
    const bool in_ellipsis = kEllipsisLabels.find(label) != std::string_view::npos;
    if ((in_ellipsis || std::ranges::count(labels, label) == 1) &&
        !absl::StrContains(out.result, label)) {
      out.result += label;
    }
  }
  return out;
}

// Replaces repeated labels of a term by the diagonal.
Tensor without_repeats(Tensor x, std::string& term) {
  for (size_t i = 0; i < term.size(); ++i) {
    const size_t again = term.find(term[i], i + 1);
    if (again == std::string::npos) continue;
    const char label = term[i];
    x = diagonal(x, 0, static_cast<int>(i), static_cast<int>(again));
    term.erase(again, 1);
    term.erase(i, 1);
    term += label;
    i = static_cast<size_t>(-1);
  }
  return x;
}

// Sums x over its labels that are not among `kept`.
Tensor summed(const Tensor& x, std::string& term, const std::string& kept) {
  std::vector<int> axes;
  std::string rest;
  for (size_t i = 0; i < term.size(); ++i) {
    if (kept.find(term[i]) == std::string::npos) {
      axes.push_back(static_cast<int>(i));
    } else {
      rest += term[i];
    }
  }
  term = rest;
  return axes.empty() ? x : sum(x, axes);
}

// Returns x with the axes in the order of `labels`; labels that it lacks have dimension 1.
Tensor aligned(const Tensor& x, const std::string& term, const std::string& labels) {
  std::vector<int> order;
  std::vector<int64_t> dims;
  for (const char label : labels) {
    const size_t at = term.find(label);
    if (at != std::string::npos) order.push_back(static_cast<int>(at));
    dims.push_back(at == std::string::npos ? 1 : x.dim(static_cast<int>(at)));
  }
  return ops::reshape(order.empty() ? x : ops::transpose(x, order), Shape(dims));
}

struct Term {
  Tensor x;
  std::string labels;
};

// Multiplies two terms and sums over the labels that are not among `kept`, as a matrix product with
// the axes [labels of both, labels of a, summed] x [labels of both, summed, labels of b].
Term contracted(Term a, Term b, const std::string& kept) {
  a.x = summed(a.x, a.labels, kept + b.labels);
  b.x = summed(b.x, b.labels, kept + a.labels);
  std::string both, only_a, only_b, over;
  for (const char label : a.labels) {
    const bool shared = absl::StrContains(b.labels, label);
    const bool stays = absl::StrContains(kept, label);
    (shared ? (stays ? both : over) : only_a) += label;
  }
  for (const char label : b.labels) {
    if (!absl::StrContains(a.labels, label)) only_b += label;
  }
  if (over.empty()) {
    const std::string labels = both + only_a + only_b;
    return {aligned(a.x, a.labels, labels) * aligned(b.x, b.labels, labels), labels};
  }
  Tensor p = aligned(a.x, a.labels, both + only_a + over);
  Tensor q = aligned(b.x, b.labels, both + over + only_b);
  const int batch = static_cast<int>(both.size()), rows = static_cast<int>(only_a.size());
  const int inner = static_cast<int>(over.size());
  const Shape lead =
      broadcast_shapes(p.shape().slice(0, batch), q.shape().slice(0, batch), "einsum");
  const Shape of_a = p.shape().slice(batch, batch + rows);
  const Shape of_b = q.shape().slice(batch + inner, q.rank());
  const Shape middle = p.shape().slice(batch + rows, p.rank());
  p = ops::broadcast_to(p, lead + of_a + middle);
  q = ops::broadcast_to(q, lead + middle + of_b);
  const int64_t count = lead.size(), m = of_a.size(), k = middle.size(), n = of_b.size();
  const Tensor product =
      matrix_product(ops::reshape(p, {count, m, k}), ops::reshape(q, {count, k, n}));
  return {ops::reshape(product, lead + of_a + of_b), both + only_a + only_b};
}

}  // namespace

Tensor matmul(const Tensor& x1, const Tensor& x2) {
  auto [a, b] = internal::promoted(x1, x2);
  if (a.rank() == 0 || b.rank() == 0) throw ValueError("matmul: operands must not be scalars");
  const bool row = a.rank() == 1, column = b.rank() == 1;
  if (row) a = ops::expand_dims(a, 0);
  if (column) b = ops::expand_dims(b, 1);
  if (b.rank() != 2 || !is_floating(a.dtype())) {
    const Shape lead = broadcast_shapes(a.shape().slice(0, a.rank() - 2),
                                        b.shape().slice(0, b.rank() - 2), "matmul");
    a = ops::broadcast_to(a, lead + a.shape().slice(a.rank() - 2, a.rank()));
    b = ops::broadcast_to(b, lead + b.shape().slice(b.rank() - 2, b.rank()));
  }
  Tensor out = matrix_product(a, b);
  if (row) out = ops::squeeze(out, -2);
  return column ? ops::squeeze(out, -1) : out;
}

Tensor dot(const Operand& x1, const Operand& x2) {
  const auto [a, b] = internal::promoted(x1, x2);
  if (a.rank() == 0 || b.rank() == 0) return multiply(a, b);
  return tensordot(a, b, {{a.rank() - 1}, {b.rank() == 1 ? 0 : b.rank() - 2}});
}
Tensor inner(const Operand& x1, const Operand& x2) {
  const auto [a, b] = internal::promoted(x1, x2);
  if (a.rank() == 0 || b.rank() == 0) return multiply(a, b);
  return tensordot(a, b, {{a.rank() - 1}, {b.rank() - 1}});
}
Tensor outer(const Tensor& x1, const Tensor& x2) {
  return multiply(ops::reshape(x1, {-1, 1}), ops::reshape(x2, {1, -1}));
}
Tensor vdot(const Tensor& x1, const Tensor& x2) { return sum(multiply(ravel(x1), ravel(x2))); }

Tensor tensordot(const Tensor& x1, const Tensor& x2, int axes) {
  std::vector<int> of_x1(axes), of_x2(axes);
  std::iota(of_x1.begin(), of_x1.end(), x1.rank() - axes);
  std::iota(of_x2.begin(), of_x2.end(), 0);
  return tensordot(x1, x2, {of_x1, of_x2});
}
Tensor tensordot(const Tensor& x1, const Tensor& x2,
                 const std::pair<std::vector<int>, std::vector<int>>& axes) {
  const auto [a, b] = internal::promoted(x1, x2);
  if (axes.first.size() != axes.second.size()) {
    throw ValueError("tensordot: axes must come in pairs, received ", axes.first.size(), " and ",
                     axes.second.size());
  }
  // Labels: a, b, ... for x1; the summed ones are shared with x2.
  std::string left, right, kept;
  for (int i = 0; i < a.rank(); ++i) left += static_cast<char>('a' + i);
  for (int i = 0; i < b.rank(); ++i) right += static_cast<char>('n' + i);
  kept = left + right;
  for (size_t i = 0; i < axes.first.size(); ++i) {
    const int at = a.shape().normalize_axis(axes.first[i]);
    const int with = b.shape().normalize_axis(axes.second[i]);
    std::erase(kept, left[at]);
    std::erase(kept, right[with]);
    right[with] = left[at];
  }
  return einsum(left + "," + right + "->" + kept, {a, b});
}

Tensor einsum(const std::string& subscripts, const std::vector<Tensor>& operands) {
  if (operands.empty()) throw ValueError("einsum: requires at least one operand");
  const Equation equation = parse(subscripts, operands);
  Operand dtype = operands[0];
  for (const Tensor& x : operands) dtype = Tensor::zeros({}, result_type({dtype, x}));
  std::vector<Term> terms;
  for (size_t i = 0; i < operands.size(); ++i) {
    std::string labels = equation.terms[i];
    const Tensor x = ops::cast(operands[i], dtype.tensor().dtype());
    terms.push_back({without_repeats(x, labels), ""});
    terms.back().labels = labels;
  }
  Term out = terms[0];
  for (size_t i = 1; i < terms.size(); ++i) {
    std::string kept = equation.result;
    for (size_t j = i + 1; j < terms.size(); ++j) kept += terms[j].labels;
    out = contracted(out, terms[i], kept);
  }
  out.x = summed(out.x, out.labels, equation.result);
  return aligned(out.x, out.labels, equation.result);
}

Tensor kron(const Tensor& x1, const Tensor& x2) {
  const auto [a, b] = internal::promoted(x1, x2);
  const int rank = std::max(a.rank(), b.rank());
  std::vector<int64_t> of_a(2 * rank, 1), of_b(2 * rank, 1), dims(rank, 1);
  for (int i = 1; i <= rank; ++i) {
    if (i <= a.rank()) of_a[2 * (rank - i)] = a.dim(-i);
    if (i <= b.rank()) of_b[2 * (rank - i) + 1] = b.dim(-i);
    dims[rank - i] = of_a[2 * (rank - i)] * of_b[2 * (rank - i) + 1];
  }
  const Tensor products = multiply(ops::reshape(a, Shape(of_a)), ops::reshape(b, Shape(of_b)));
  return ops::reshape(products, Shape(dims));
}

Tensor cross(const Tensor& x1, const Tensor& x2, int axisa, int axisb, int axisc, Axis axis) {
  if (axis) axisa = axisb = axisc = *axis;
  const auto [p, q] = internal::promoted(x1, x2);
  const Tensor a = moveaxis(p, {axisa}, {-1}), b = moveaxis(q, {axisb}, {-1});
  for (const Tensor& x : {a, b}) {
    if (x.dim(-1) != 2 && x.dim(-1) != 3) {
      throw ValueError("cross: vectors must have 2 or 3 elements, received ", x.dim(-1));
    }
  }
  const auto element = [](const Tensor& x, int i) {
    const Tensor some = ops::slice(x, -1, 0, 1);
    return i < x.dim(-1) ? ops::slice(x, -1, i, 1) : ops::zeros_like(some);
  };
  const auto component = [&](int i, int j) {
    return element(a, i) * element(b, j) - element(a, j) * element(b, i);
  };
  if (a.dim(-1) == 2 && b.dim(-1) == 2) return ops::squeeze(component(0, 1), -1);
  return moveaxis(ops::concat({component(1, 2), component(2, 0), component(0, 1)}, -1), {-1},
                  {axisc});
}

Tensor correlate(const Tensor& x1, const Tensor& x2, const std::string& mode) {
  const auto [a, b] = internal::promoted_floating(x1, x2);
  if (a.rank() != 1 || b.rank() != 1) throw ValueError("correlate: operands must be vectors");
  const int64_t n = a.dim(0), m = b.dim(0), shorter = std::min(n, m), longer = std::max(n, m);
  int64_t first = 0, count = n + m - 1;  // range of the full correlation
  if (mode == "valid") {
    first = shorter - 1;
    count = longer - shorter + 1;
  } else if (mode == "same") {
    first = (shorter - 1) / 2;
    count = longer;
  } else if (mode != "full") {
    throw ValueError("correlate: mode must be valid, same or full, received '", mode, "'");
  }
  // Row i has the elements of x1 that meet x2 when its last element is at i.
  const Tensor windows = internal::remap(a, {count, m}, [&](const auto& i) {
    const int64_t at = first + i[0] + i[1] - (m - 1);
    return at >= 0 && at < n ? at : internal::kFill;
  });
  return ops::sum(windows * b, {1});
}

Tensor corrcoef(const Tensor& x) {
  const Tensor rows = x.rank() < 2 ? ops::reshape(x, {1, -1}) : x;
  const Tensor in = internal::floating(rows);
  const Tensor centered = in - ops::mean(in, {-1}, true);
  const Tensor covariance = ops::matmul(centered, centered, false, true);
  const Tensor deviation = ops::sqrt(diagonal(covariance));
  const Tensor out = covariance / outer(deviation, deviation);
  return x.rank() < 2 ? ops::reshape(out, {}) : out;
}

Tensor cdist(const Tensor& x, const Tensor& y) {
  const auto [a, b] = internal::promoted_floating(x, y);
  const Tensor difference = ops::expand_dims(a, -2) - ops::expand_dims(b, -3);
  return ops::sqrt(ops::sum(ops::square(difference), {-1}));
}

}  // namespace keel::keras_ops
